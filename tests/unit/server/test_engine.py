from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.clock import SystemClock
from penstock.errors import InDoubt
from penstock.gateway.gateway import Gateway
from penstock.gateway.line import LineGateway
from penstock.gateway.options import LineOptions
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.model.policy import Policy
from penstock.server.engine import LAZY_S, RETRY_S
from penstock.testing import MemoryJournal
from tests.unit.server.scene import House, house, run, turns

EVENT = Columns([b"x"], 0)
LOOP = threading.main_thread()


def test_a_publish_is_committed_without_being_asked_twice(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            one.broker.publish("t", EVENT)
            one.engine.kick()
            one.engine.kick()

            await one.until(lambda: one.engine.idle and not one.broker.dirty)

            assert one.broker.log.topic("t").end_offset == 1
            assert one.broker.log.outcome(1) == "synced"

    run(scene())


def test_all_who_publish_while_a_commit_is_under_way_share_the_next(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            log = one.broker.log
            one.broker.publish("t", EVENT)
            one.engine.kick()
            await asyncio.sleep(0)
            assert not one.engine.idle

            for _ in range(100):
                one.broker.publish("t", EVENT)
                one.engine.kick()
            await one.until(lambda: log.topic("t").end_offset == 101)

            assert log.syncs <= 3  # the file was begun, the first event, the others

    run(scene())


def test_what_nobody_waits_for_waits_for_others_or_a_while(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await settled(one)
            one.broker.create_topic("t")
            subscription = one.broker.subscribe("anna", "t", Policy())
            await settled(one)
            subscription.note()
            assert one.broker.dirty and not one.broker.urgent
            group = one.broker.group

            one.engine.tick()
            one.clock.advance(LAZY_S / 2)
            one.engine.tick()
            await turns(10)
            assert one.broker.group == group
            next_s = one.engine.next_s()
            assert next_s is not None
            assert next_s - one.clock.now_s() == pytest.approx(LAZY_S, abs=1e-3)
            one.clock.advance(LAZY_S)
            one.engine.tick()
            await one.until(lambda: one.broker.group > group)

            await one.until(lambda: not one.broker.dirty)

    run(scene())


def test_after_a_failed_commit_there_is_a_pause_before_the_next(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            log = one.broker.log
            one.broker.create_topic("t")
            await settled(one)
            one.files.fail("write", "journal")
            group = one.broker.publish("t", EVENT).group
            one.engine.kick()
            await one.until(lambda: log.outcome(group) == "failed")

            group = one.broker.publish("t", EVENT).group
            one.engine.tick()
            await turns(20)
            assert log.outcome(group) == "pending"
            assert one.engine.resting
            until_s = one.clock.now_s() + RETRY_S
            paused_s, next_s = one.engine.paused_until_s, one.engine.next_s()
            assert paused_s == next_s == until_s
            one.clock.advance(RETRY_S)
            assert one.engine.paused_until_s is None
            one.engine.tick()
            await one.until(lambda: log.outcome(group) == "synced")

            assert log.topic("t").end_offset == 1

    run(scene())


def test_a_pause_is_no_longer_because_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            clock = SystemClock()
            monkeypatch.setattr(one.engine, "_clock", clock)
            one.engine.mind_the_clock()
            one.files.fail("write", "journal")
            group = one.broker.publish("t", Columns([b"1"], 0)).group
            one.engine.kick()
            await one.until(lambda: one.broker.log.outcome(group) == "failed")
            real = time.time
            monkeypatch.setattr(time, "time", lambda: real() - 3600)

            one.engine.mind_the_clock()

            until_s = one.engine.paused_until_s
            assert until_s is None or until_s <= clock.now_s() + RETRY_S
            one.files.heal()

    run(scene())


def test_a_failed_commit_is_told_to_whoever_waits_for_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(lambda: LineGateway(one.broker, LineOptions()))
            client = await one.connect()
            await client.send(b'confirm on\npub t {"id":"1"}\n')
            assert (await client.lines(3))[2] == b"published t 1 0"

            one.files.fail("write", "journal")
            await client.send(b'pub t {"id":"2"}\n')
            (answer,) = await client.lines(1)
            one.clock.advance(RETRY_S)
            await client.send(b'pub t {"id":"3"}\n')

            assert answer == b"error: not stored: the write failed, publish it again"
            assert await client.lines(1) == [b"published t 3 1"]

    run(scene())


@pytest.mark.parametrize(
    ("stored", "answer"),
    [
        (True, b"published t 2 1"),
        (False, b"error: not stored: the write failed, publish it again"),
    ],
)
def test_what_is_in_doubt_is_told_to_nobody_until_it_is_known(
    tmp_path: Path, stored: bool, answer: bytes
) -> None:
    journal = MemoryJournal()

    async def scene() -> None:
        async with house(tmp_path, journal=journal) as one:
            await one.listen(lambda: LineGateway(one.broker, LineOptions()))
            client = await one.connect()
            await client.send(b'confirm on\npub t {"id":"1"}\n')
            assert (await client.lines(3))[2] == b"published t 1 0"

            journal.doubt(stored=stored, looks=2)
            await client.send(b'pub t {"id":"2"}\n')
            await one.until(lambda: one.broker.log.doubt)
            await client.send(b'pub t {"id":"3"}\n')
            one.clock.advance(RETRY_S / 2)
            one.engine.tick()
            await turns(20)
            assert one.broker.log.doubt, "it is not time yet"
            while not one.engine.idle:
                one.clock.advance(RETRY_S)
                one.engine.tick()
                await turns(5)

            assert await client.lines(1) == [answer]

    run(scene())


def test_an_engine_that_stops_in_doubt_does_not_wait_for_ever(tmp_path: Path) -> None:
    journal = MemoryJournal()

    async def scene() -> None:
        async with house(tmp_path, journal=journal) as one:
            journal.doubt(stored=True, looks=99)
            one.broker.publish("t", EVENT)
            one.engine.kick()
            await one.until(lambda: one.broker.log.doubt)

            await one.engine.stop()

            with pytest.raises(InDoubt):
                one.broker.log.close()

    run(scene())
    with Log.open(tmp_path, journal=journal.reopened()) as log:
        assert log.topic("t").end_offset == 1


def test_a_slow_journal_holds_up_nobody(tmp_path: Path) -> None:
    """An append over a network may take its time: it is never done by the loop."""
    journal = MemoryJournal()

    async def scene() -> None:
        async with house(tmp_path, journal=journal) as one:
            log = one.broker.log
            one.broker.create_topic("t", TopicOptions(durability="os"))
            await settled(one)
            journal.hold()
            group = one.broker.publish("t", EVENT).group
            one.engine.kick()
            await turns(20)
            assert log.outcome(group) == "pending"

            journal.release()
            await one.until(lambda: log.outcome(group) != "pending")

    run(scene())


def test_segments_are_written_out_beside(tmp_path: Path) -> None:
    async def scene() -> None:
        options = LogOptions(write_out_bytes=1 << 16)
        async with house(tmp_path, log=options) as one:
            log = one.broker.log
            for _ in range(10):
                one.broker.publish("t", Columns([bytes(20_000)], 0))
                await settled(one)
            await one.until(lambda: one.engine.resting)

            assert log.unwritten_bytes <= 1 << 16
            assert log.topic("t").end_offset == 10

    run(scene())


def test_too_much_under_way_stops_the_readers_until_it_is_less(tmp_path: Path) -> None:
    async def scene() -> None:
        options = LogOptions(group_bytes=1 << 16)
        async with house(tmp_path, log=options) as one:
            one.broker.publish("t", EVENT)
            found = [one.engine.congested]
            one.engine.kick()
            await turns(1)
            one.broker.publish("t", Columns([bytes(40_000)], 0))
            found.append(one.engine.congested)

            paused = Paused()
            one.engine.pause(paused)
            await one.until(lambda: paused.resumed)
            found.append(one.engine.congested)

            assert found == [False, True, False]

    run(scene())


@pytest.mark.parametrize("act", ["delete", "retain", "compact"])
def test_others_are_served_while_files_of_a_topic_take_their_time(
    tmp_path: Path, act: str
) -> None:
    """The disk does nothing more for that topic until others were served."""
    options = {
        "delete": TopicOptions(),
        "retain": TopicOptions(retention_bytes=1, segment_bytes=1024),
        "compact": TopicOptions(compact=True, segment_bytes=1024),
    }[act]

    async def scene() -> None:
        async with house(tmp_path) as one:
            log, served = one.broker.log, threading.Event()
            one.broker.create_topic("old", options)
            for _ in range(10):
                one.broker.publish("old", Columns([bytes(900)], 0, keys=[b"k"]))
                await settled(one)
            log.checkpoint()
            folder = folder_of(tmp_path, "old")
            before = log.topic("old").bytes
            slow = SlowFolder(one, folder, served)

            if act == "delete":
                one.broker.delete_topic("old")
            else:
                log.maintain_soon()
            one.engine.kick()
            await one.until(lambda: slow.reached)
            for _ in range(50):
                group = one.broker.publish("t", EVENT).group
                one.engine.kick()
                await one.until(lambda: log.outcome(group) == "synced")  # noqa: B023
            served.set()

            assert log.topic("t").end_offset == 50
            if act == "delete":
                await one.until(lambda: not Path(folder).exists())
            else:
                await one.until(lambda: log.topic("old").bytes < before / 2)

    run(scene())


def folder_of(data: Path, topic: str) -> str:
    (folder,) = data.glob(f"**/topics/{topic}-*")
    return str(folder)


class SlowFolder:
    """Has calls that erase or write anew wait for something, and says if one does."""

    def __init__(self, one: House, folder: str, event: threading.Event) -> None:
        self.reached = False
        self._folder = folder
        self._event = event
        for name in ("remove", "remove_tree"):
            setattr(one.files, name, self._slow(getattr(one.files, name)))
        one.files.open = self._slow(one.files.open)  # type: ignore[method-assign]

    def _slow(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def slow(path: str, **options: bool) -> Any:
            anew = path.endswith(".tmp") or not options
            mine = path.startswith(self._folder) and not path.endswith(".idx")
            if mine and anew and threading.current_thread() is not LOOP:
                self.reached = True
                assert self._event.wait(60)
            return call(path, **options)

        return slow


def test_whoever_was_woken_and_is_gone_is_forgotten(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            one.broker.awake[Gateway()] = None
            one.engine.kick()
            await turns(2)

            assert not one.broker.awake

    run(scene())


def test_a_drain_ends_when_all_is_committed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            one.broker.create_topic("t")
            subscription = one.broker.subscribe("anna", "t", Policy())
            await settled(one)
            one.broker.publish("t", EVENT)
            one.engine.kick()
            await asyncio.sleep(0)
            one.broker.publish("t", EVENT)
            subscription.note()

            await one.engine.drain()

            assert one.engine.idle
            assert not one.broker.dirty
            assert one.broker.log.topic("t").end_offset == 2

    run(scene())


def test_stopping_waits_for_the_commit_under_way_and_begins_no_other(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with house(tmp_path) as one:
            one.broker.publish("t", Columns([b"first"], 1))
            one.engine.kick()
            await asyncio.sleep(0)
            under_way = not one.engine.idle
            one.broker.publish("t", Columns([b"too late"], 1))

            await one.engine.stop()

            assert under_way
            assert one.engine.idle
            assert one.broker.log.topic("t").end_offset == 1
            one.broker.log.close()

    asyncio.run(story())


def test_a_drain_waits_for_the_disk_without_keeping_a_core_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            one.broker.create_topic("t")
            await settled(one)
            one.files.fail("write", "journal")
            group = one.broker.publish("t", EVENT).group
            one.engine.kick()
            await one.until(lambda: one.broker.log.outcome(group) == "failed")
            one.broker.publish("t", EVENT)
            looks = 0

            def kick() -> None:
                nonlocal looks
                looks += 1
                type(one.engine).kick(one.engine)

            monkeypatch.setattr(one.engine, "kick", kick)
            drained = asyncio.create_task(one.engine.drain())
            await turns(1000)
            looked = looks
            one.clock.advance(RETRY_S)
            await drained

            assert looked < 10
            assert one.broker.log.topic("t").end_offset == 1

    run(scene())


def test_reads_share_one_buffer(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            first = one.engine.buffer(100)

            assert one.engine.buffer(50) is first
            assert len(one.engine.buffer(200)) == 200

    run(scene())


class Paused:
    resumed = False

    def resume(self) -> None:
        self.resumed = True


async def settled(one: House) -> None:
    """Return when nothing is left to be committed."""
    one.engine.kick()
    await one.until(lambda: one.engine.idle and not one.broker.urgent)


def test_how_long_a_sync_took_is_noted(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            one.broker.publish("t", EVENT)
            one.engine.kick()

            await one.until(lambda: one.engine.idle and not one.broker.dirty)

            traffic = one.broker.traffic
            assert len(traffic.syncs) == sum(traffic.buckets) >= 1
            assert all(seconds > 0 for seconds in traffic.syncs)

    run(scene())
