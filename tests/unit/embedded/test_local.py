"""What every broker with handlers does is in tests/contract; here is the rest."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.client import aio
from penstock.clock import ManualClock
from penstock.embedded.aio import AsyncBroker
from penstock.embedded.domain import Domain
from penstock.embedded.event import Event
from penstock.embedded.local import LocalLink
from penstock.embedded.local_broker import LocalOptions
from penstock.embedded.outgoing import Intent
from penstock.errors import (
    InvalidBatch,
    LimitReached,
    LogClosed,
    PenstockError,
    WriteFailed,
)
from penstock.log import Log, LogOptions
from penstock.testing import CrashDisk
from tests.unit.embedded.scene import HeldSyncs


@asynccontextmanager
async def opened(
    disk: CrashDisk | None = None, **options: Any
) -> AsyncIterator[LocalLink]:
    clock = ManualClock()
    link = await LocalLink.open(
        "/data", LocalOptions(**options), clock=clock, files=disk or CrashDisk()
    )
    try:
        yield link
    finally:
        await link.close()


def go(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


def test_events_of_one_turn_are_stored_together() -> None:
    async def run() -> None:
        async with opened() as link:
            group = link.broker.group
            stored = await asyncio.gather(
                *(link.publish(Intent("t", b"%d" % n)) for n in range(50))
            )

            assert [one.offset for one in stored] == list(range(50))
            assert len({one.id for one in stored}) == 50
            assert link.broker.group == group + 1

    go(run)


def test_a_refused_event_harms_no_other_of_its_turn() -> None:
    async def run() -> None:
        async with opened() as link:
            found = await asyncio.gather(
                link.publish(Intent("t", b"0")),
                link.publish(Intent("t", b"1", priority=999)),
                link.publish(Intent("t", b"2", id="two")),
                link.publish(Intent("u", b"3", key="text")),  # type: ignore[arg-type]
                return_exceptions=True,
            )

            first, second, third, fourth = found
            assert not isinstance(first, BaseException) and first.offset == 0
            assert isinstance(second, InvalidBatch)
            assert not isinstance(third, BaseException)
            assert (third.offset, third.id) == (1, "two")
            assert isinstance(fourth, InvalidBatch)
            assert not link.broker.log.has_topic("u")

    go(run)


def test_a_cancelled_publisher_harms_no_other() -> None:
    async def run() -> None:
        async with opened() as link:
            tasks = [
                asyncio.create_task(link.publish(Intent("t", b"%d" % n)))
                for n in range(3)
            ]
            await asyncio.sleep(0)
            tasks[1].cancel()
            first, _, third = await asyncio.gather(*tasks, return_exceptions=True)

            assert (first.offset, third.offset) == (0, 2)  # type: ignore[union-attr]

    go(run)


def test_dedup_ids_are_known_within_one_turn_too() -> None:
    async def run() -> None:
        async with opened() as link:
            stored = await link.publish_many(
                [Intent("t", b"x", dedup_id=one) for one in "abab"]
                + [Intent("t", b"plain")]
            )

            assert [one.offset for one in stored[:4]] in ([0, 1, 0, 1], [1, 2, 1, 2])
            assert stored[0].id == stored[2].id != stored[1].id

    go(run)


def test_a_limit_of_the_broker_is_told() -> None:
    async def run() -> None:
        from penstock.broker.options import BrokerOptions

        async with opened(broker=BrokerOptions(max_topics=1)) as link:
            await link.publish(Intent("t", b"x"))
            with pytest.raises(LimitReached):
                await link.publish(Intent("u", b"x"))

    go(run)


def test_more_than_the_log_takes_at_once_is_stored_bit_by_bit() -> None:
    async def run() -> None:
        log = LogOptions(group_bytes=20_000)
        async with opened(log=log) as link:
            found = await asyncio.gather(
                *(
                    link.publish(Intent(f"t{n % 3}", b"x" * 9000, priority=n % 2))
                    for n in range(30)
                )
            )

            assert sorted((one.topic, one.offset) for one in found) == [
                (f"t{topic}", offset) for topic in range(3) for offset in range(10)
            ]

    go(run)


def test_what_is_too_much_for_now_waits_until_there_is_room() -> None:
    async def run() -> None:
        log = LogOptions(group_bytes=20_000)
        async with opened(log=log) as link:
            syncs = HeldSyncs(link.engine, asyncio.get_running_loop())
            tasks = []
            for _ in range(8):
                intent = Intent("t", b"x" * 9000)
                tasks.append(asyncio.create_task(link.publish(intent)))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            waiting = bool(link._open)
            syncs.go_on()
            stored = await asyncio.gather(*tasks)

            assert waiting
            assert sorted(one.offset for one in stored) == list(range(8))

    go(run)


def test_a_failed_commit_is_told_and_the_next_one_works() -> None:
    async def run() -> None:
        disk = CrashDisk()
        async with opened(disk) as link:
            await link.publish(Intent("t", b"0"))
            disk.fail(
                lambda action, path: (
                    OSError(errno.ENOSPC, "full") if action == "write" else None
                )
            )
            with pytest.raises(WriteFailed):
                await link.publish(Intent("t", b"1"))
            disk.fail(None)
            clock = link.clock
            assert isinstance(clock, ManualClock)
            clock.advance(5)
            assert (await link.publish(Intent("t", b"2"))).offset == 1

    go(run)


@pytest.mark.parametrize("topics", ["abc", "aaa"])
def test_a_group_that_fails_while_others_are_stored_confirms_nothing(
    topics: str,
) -> None:
    async def run() -> None:
        disk = CrashDisk()
        async with opened(disk) as link:
            for topic in topics:
                await link.publish(Intent(topic, b"0"))
            log = link.broker.log
            assert isinstance(log, Log)
            log.options = dataclasses.replace(log.options, group_bytes=3000)
            before = {topic: log.topic(topic).next_offset for topic in topics}
            disk.fail(full_once())

            wanted = [Intent(topic, b"x" * 2000) for topic in topics]
            too_large = Intent("a", b"x" * (log.options.max_event_bytes + 1))
            told: list[Any] = await asyncio.gather(
                *(link.publish(one) for one in [wanted[0], too_large, *wanted[1:]]),
                return_exceptions=True,
            )

            assert isinstance(told[0], WriteFailed)
            assert isinstance(told[1], PenstockError)
            for topic in set(topics):
                mine = [one for one in told if getattr(one, "topic", "") == topic]
                there = range(before[topic], log.topic(topic).next_offset)
                assert [one.offset for one in mine] == list(there)

    go(run)


def full_once() -> Callable[[str, str], OSError | None]:
    """A disk that has no room for one write."""
    faults = [OSError(errno.ENOSPC, "full")]

    def fail(action: str, path: str) -> OSError | None:
        return faults.pop() if action == "write" and faults else None

    return fail


def test_a_closed_broker_takes_no_more() -> None:
    async def run() -> None:
        async with opened() as link:
            pass
        with pytest.raises(LogClosed):
            await link.publish(Intent("t", b"x"))

    go(run)


def test_what_was_published_before_closing_is_stored() -> None:
    async def run() -> None:
        disk = CrashDisk()
        async with opened(disk) as link:
            task = asyncio.create_task(link.publish(Intent("t", b"x")))
            await asyncio.sleep(0)
        assert (await task).offset == 0
        async with opened(disk) as link:
            assert link.broker.log.topic("t").next_offset == 1

    go(run)


def test_the_desk_answers_when_what_it_did_is_on_disk() -> None:
    async def run() -> None:
        disk = CrashDisk()
        async with opened(disk) as link:
            await link.ask("topics.create", {"name": "t"})
            with pytest.raises(PenstockError):
                await link.ask("topics.create", {"name": "t"})
            with pytest.raises(PenstockError):
                await link.ask("no.such.verb", {})
            await link.publish(Intent("t", b"x"))
            await link.ask("topics.delete", {"name": "t"})
            assert not link.broker.log.has_topic("t")

    go(run)


def test_commands_work_on_a_running_program(tmp_path: Path) -> None:
    async def run() -> None:
        link = await LocalLink.open(tmp_path, LocalOptions())
        broker = AsyncBroker(link)
        try:
            await broker.publish("t", b"x")
            async with await aio.connect(tmp_path) as client:
                view: Any = await client.ask("topics")
                offsets = await client.publish("t", b"y")
        finally:
            await broker.close()

        assert [one["name"] for one in view["topics"]] == ["t"]
        assert list(offsets) == [1]

    go(run)


def test_a_directory_that_cannot_listen_is_let_go(tmp_path: Path) -> None:
    async def run() -> None:
        (tmp_path / "penstock.sock").mkdir()
        with pytest.raises(OSError):
            await LocalLink.open(tmp_path, LocalOptions())
        link = await LocalLink.open(tmp_path, LocalOptions(listen=False))
        await link.close()

    go(run)


def test_a_topic_that_is_made_anew_has_another_mark() -> None:
    async def run() -> None:
        async with opened() as link:
            marks = [link.mark("t")]
            await link.publish(Intent("t", b"x"))
            marks += [link.mark("t"), link.mark("t")]
            await link.ask("topics.delete", {"name": "t"})
            marks.append(link.mark("t"))
            await link.publish(Intent("t", b"x"))
            marks.append(link.mark("t"))

        none, first, same, gone, second = marks
        assert none is gone is None
        assert first == same != second is not None

    go(run)


def test_what_others_were_at_when_it_closes_is_lost_and_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> object:
        link = await LocalLink.open(tmp_path, LocalOptions())
        async with await aio.connect(tmp_path) as client:
            await client.publish("t", [b"x"])
            one = await client.subscribe("t", "me", start="earliest", tries=3)
            await one.next()
            await link.close()
        link = await LocalLink.open(tmp_path, LocalOptions())
        try:
            return msgspec.to_builtins(await link.ask("errors", {}))
        finally:
            await link.close()

    found: Any = asyncio.run(run())

    assert [one["kind"] for one in found["errors"]] == ["Lost"]
    assert "consumer" in found["errors"][0]["message"]
    assert caplog.records == []


def test_handlers_are_told_as_connected_with_what_they_consume() -> None:
    billing = Domain("billing")

    @billing.on("orders")
    async def charge(event: Event[bytes]) -> None: ...

    async def program() -> None:
        async with opened() as link:
            broker = AsyncBroker(link)
            await broker.start(billing)

            page: Any = await broker.ask("connections")
            look: Any = await broker.ask("overview")

            (row,) = page.connections
            assert (row.gateway, row.name) == ("embedded", "billing")
            assert [one.topic for one in row.subscriptions] == ["orders"]
            assert look.connections == {"embedded": 1}
            await broker.close()

    asyncio.run(program())
