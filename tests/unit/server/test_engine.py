from __future__ import annotations

import asyncio
import time
from collections import deque
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.gateway.gateway import Gateway
from penstock.gateway.line import LineGateway
from penstock.gateway.options import LineOptions
from penstock.log import Columns, LogOptions
from penstock.model.policy import Policy
from penstock.server.engine import LAZY_S, RETRY_S
from tests.unit.server.scene import Echo, House, house, run, turns

EVENT = Columns([b"x"], 0)


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


def test_segments_are_written_out_beside(tmp_path: Path) -> None:
    async def scene() -> None:
        options = LogOptions(write_out_bytes=1 << 16)
        async with house(tmp_path, log=options) as one:
            log = one.broker.log
            for _ in range(10):
                one.broker.publish("t", Columns([bytes(20_000)], 0))
                await settled(one)
            await one.until(lambda: one.engine.idle)

            assert log.keeper.unwritten_bytes <= 1 << 16
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


def test_errands_are_run_while_no_work_is_under_way(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            gateway = Echo()
            ran: list[bool] = []
            gateway.errands = deque([lambda: ran.append(one.engine.idle)] * 2)
            one.broker.publish("t", EVENT)
            one.engine.kick()
            await asyncio.sleep(0)
            assert not one.engine.idle

            one.engine.errand(gateway)
            one.broker.publish("t", EVENT)
            await one.until(lambda: ran)

            assert ran == [True, True]
            await one.until(lambda: one.broker.log.topic("t").end_offset == 2)

    run(scene())


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
