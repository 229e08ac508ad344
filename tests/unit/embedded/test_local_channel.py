"""The broker in the process and a handler; more in tests/contract."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import penstock
from penstock.clock import ManualClock
from penstock.embedded import Context, Domain, Event
from penstock.embedded.aio import AsyncBroker
from penstock.embedded.local import LocalLink
from penstock.embedded.local_broker import LocalOptions
from penstock.log import LogOptions
from penstock.testing import CrashDisk, Harness
from tests.unit.embedded.scene import HeldSyncs, until


@asynccontextmanager
async def opened(disk: CrashDisk | None = None) -> AsyncIterator[AsyncBroker]:
    clock = ManualClock()
    files = disk or CrashDisk()
    async with penstock.open("/data", clock=clock, files=files) as broker:
        yield broker


def link_of(broker: AsyncBroker) -> LocalLink:
    link = broker._link
    assert isinstance(link, LocalLink)
    return link


def go(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


def test_a_try_is_written_before_the_handler_begins() -> None:
    async def run() -> None:
        disk, found = CrashDisk(), []
        domain = Domain("a")

        async with opened(disk) as broker:
            log = link_of(broker).broker.log

            @domain.on("t")
            async def handle(event: Event[bytes]) -> None:
                subscription = link_of(broker).broker.subscription("a", "t")
                found.append((log.outcome(log.written), len(subscription.owed)))

            await broker.publish("t", b"x")
            await broker.start(domain)
            await broker.wait_until_settled(60)

        assert found == [(found[0][0], 1)]
        assert found[0][0] in ("written", "synced")

    go(run)


def test_a_handler_that_ends_the_process_has_its_try_counted() -> None:
    async def run() -> None:
        disk, begun = CrashDisk(), asyncio.Event()
        domain = Domain("a")

        @domain.on("t")
        async def handle(event: Event[bytes]) -> None:
            begun.set()
            await asyncio.Event().wait()

        link = await LocalLink.open(
            "/data", LocalOptions(), clock=ManualClock(), files=disk
        )
        broker = AsyncBroker(link)
        await broker.publish("t", b"x")
        await broker.start(domain)
        await begun.wait()
        for runner in link.runners:
            await runner.abandon()
        assert link._ticker is not None
        link._ticker.cancel()
        await link.engine.stop()
        link.broker.log.abandon()

        again, tries = Domain("a"), []

        @again.on("t")
        async def handle_again(event: Event[bytes], context: Context) -> None:
            tries.append(context.tries)

        async with opened(disk) as other:
            await other.start(again)
            await other.wait_until_settled(60)

        assert tries == [2]

    go(run)


def test_a_handler_whose_commit_fails_runs_again_and_publishes_once() -> None:
    async def run() -> None:
        disk, runs, faults = CrashDisk(), [], []
        domain, reader = Domain("a"), Domain("b")
        heard: list[bytes] = []

        def fault(action: str, path: str) -> OSError | None:
            if action != "write":
                return None
            faults.append(path)
            return OSError(errno.ENOSPC, "full")

        @domain.on("t")
        async def handle(event: Event[bytes], context: Context) -> None:
            runs.append(context.tries)
            if len(runs) == 1:
                disk.fail(fault)
            context.publish("out", b"x")

        @reader.on("out")
        async def hear(event: Event[bytes]) -> None:
            heard.append(event.payload)

        async with opened(disk) as broker:
            clock = link_of(broker).clock
            assert isinstance(clock, ManualClock)
            await broker.start(domain, reader)
            await broker.publish("t", b"x")
            await until(lambda: bool(faults) and link_of(broker).engine.idle)
            disk.fail(None)
            clock.advance(5)
            await broker.wait_until_settled(60)

        assert len(runs) == 2
        assert heard == [b"x"]

    go(run)


def test_what_a_handler_publishes_waits_until_the_log_has_room() -> None:
    async def run() -> None:
        domain, reader = Domain("a"), Domain("b")
        gate, runs, heard = asyncio.Event(), [], []

        @domain.on("t", concurrency=8)
        async def handle(event: Event[bytes], context: Context) -> None:
            runs.append(event.offset)
            await gate.wait()
            for _ in range(event.offset):  # each wakes at another moment
                await asyncio.sleep(0)
            context.publish("out", b"%d" % event.offset + b"x" * 9000)

        @reader.on("out")
        async def hear(event: Event[bytes]) -> None:
            heard.append(event.payload[:1])

        options = LocalOptions(log=LogOptions(group_bytes=20_000))
        opening = penstock.open("/data", files=CrashDisk(), options=options)
        async with opening as broker:
            await broker.publish_many("t", [b"x"] * 8)
            await broker.start(domain)
            await until(lambda: len(runs) == 8)
            engine = link_of(broker).engine
            await until(lambda: engine.idle)
            syncs = HeldSyncs(engine, asyncio.get_running_loop())
            gate.set()
            channel: Any = link_of(broker).runners[0].channel
            await until(lambda: syncs.busy and bool(channel._done))
            at_hand = link_of(broker).runners[0].at_hand
            syncs.go_on()
            await broker.start(reader)
            await broker.wait_until_settled(60)

        assert at_hand > 0
        assert sorted(runs) == list(range(8))
        assert sorted(heard) == [b"%d" % n for n in range(8)]

    go(run)


@pytest.mark.parametrize("publishes", [False, True])
def test_a_subscription_that_is_forgotten_leaves_nothing_at_hand(
    publishes: bool,
) -> None:
    async def run() -> None:
        domain, gate, begun = Domain("a"), asyncio.Event(), asyncio.Event()

        @domain.on("t")
        async def handle(event: Event[bytes], context: Context) -> None:
            begun.set()
            await gate.wait()
            if publishes:
                context.publish("out", b"x")

        async with opened() as broker:
            await broker.start(domain)
            await broker.publish("t", b"x")
            await begun.wait()
            await broker.ask("subscriptions.forget", subscriber="a", topic="t")
            gate.set()
            await broker.wait_until_settled(60)
            [runner] = link_of(broker).runners

            assert runner.gone == "the subscription was forgotten"
            assert not link_of(broker).broker.log.has_topic("out")

    go(run)


def test_a_subscription_may_be_forgotten_before_a_commit_has_ended() -> None:
    async def run() -> None:
        domain, gate, begun = Domain("a"), asyncio.Event(), asyncio.Event()

        @domain.on("t", order="strict")
        async def handle(event: Event[bytes], context: Context) -> None:
            begun.set()
            await gate.wait()
            context.publish("out", b"x")

        async with opened() as broker:
            await broker.start(domain)
            await broker.publish("t", b"x")
            await begun.wait()
            link = link_of(broker)
            await until(lambda: link.engine.idle)
            syncs = HeldSyncs(link.engine, asyncio.get_running_loop())
            gate.set()
            await until(lambda: syncs.busy)
            at_hand = link.runners[0].at_hand
            link.broker.forget("a", "t")
            syncs.go_on()
            await broker.wait_until_settled(60)

            assert at_hand == 1
            assert link.runners[0].idle

    go(run)


def test_a_mistake_of_ours_ends_one_handler_and_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        bad, good, heard = Domain("bad"), Domain("good"), []

        @bad.on("t")
        async def handle(event: Event[bytes]) -> None: ...

        @good.on("t")
        async def hear(event: Event[bytes]) -> None:
            heard.append(event.payload)

        async with opened() as broker:
            await broker.start(bad, good)
            [first, _] = link_of(broker).runners

            def fail(*_: Any) -> None:
                raise AssertionError("a mistake")

            monkeypatch.setattr(first, "arrived", fail)
            await broker.publish("t", b"x")
            await until(lambda: heard == [b"x"])
            await until(lambda: first.gone is not None)

    go(run)

    actions = [getattr(one, "action", "") for one in caplog.records]
    assert actions == ["handler_stopped", "handler_ended"]


@pytest.mark.parametrize("order", ["key", "strict"])
def test_a_lane_goes_on_if_the_event_that_it_waits_for_is_gone(order: Any) -> None:
    async def run() -> None:
        seen: list[int] = []
        domain = Domain("a")

        @domain.on("t", order=order, tries=3, backoff_s=5.0)
        async def handle(event: Event[bytes]) -> None:
            seen.append(event.offset)
            if event.offset == 0:
                raise ValueError("no")

        async with opened() as broker:
            for payload in (b"0", b"1"):
                await broker.publish("t", payload, key=b"k")
            await broker.start(domain)
            link = link_of(broker)
            log, clock = link.broker.log, link.clock
            one = link.broker.subscription("a", "t")
            await until(lambda: one.owed.paused == 1 and not link.broker.dirty)
            await until(lambda: link.engine.idle)
            log.roll("t")
            log.trim("t", 1)
            link.broker.pages.forget("t")

            assert isinstance(clock, ManualClock)
            clock.advance(6)
            link.tick()
            await until(lambda: seen == [0, 1])
            await until(lambda: one.drained)
            assert log.has_topic("$dead-letters")

    go(run)


@pytest.mark.parametrize("unlucky", [False, True])
def test_events_sent_alone_do_not_wait_for_one_another_after_a_failed_commit(
    unlucky: bool,
) -> None:
    async def run() -> None:
        domain, handled = Domain("a"), []

        @domain.on("t", order="key", tries=2)
        async def handle(event: Event[bytes], context: Context) -> None:
            if context.tries == 1:
                await asyncio.sleep(1)  # the power fails meanwhile
            handled.append(event.payload)
            if len(handled) == 1:  # when this is settled the next one is taken
                broker.disk.fill(1)
            if unlucky and event.payload == b"1":
                raise ValueError("unlucky")
            context.publish("out", event.payload)

        async with Harness() as broker:
            await broker.start(domain)
            for payload in (b"1", b"2"):
                await broker.publish("t", payload, key=b"k")
            await broker.advance(0)
            await broker.crash()
            await broker.wait_until_settled()

            assert handled == [b"1", b"1", b"2"]
            out = [one.payload for one in broker.events("out")]
            letters = [one.event.payload for one in broker.dead_letters() if one.event]
            assert (letters, out) == (
                ([b"1"], [b"2"]) if unlucky else ([], [b"1", b"2"])
            )

    go(run)
