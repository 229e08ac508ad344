from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.errors import DiskFull
from penstock.log import Columns, LogOptions
from penstock.server.web import EnginePromises
from tests.unit.server.scene import House, house, run, turns


def publish(one: House) -> int:
    return one.broker.publish("t", Columns([b"1"], 0)).group


def test_a_promise_is_kept_when_its_group_is_on_disk(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            promises = EnginePromises(one.engine)
            group = publish(one)

            await promises.kept(group)

            assert one.broker.log.synced >= group
            await promises.kept(group)  # at once, from now on

    run(scene())


def test_all_who_wait_for_a_group_share_one_future(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            promises = EnginePromises(one.engine)
            group = publish(one)

            waiting = [asyncio.create_task(promises.kept(group)) for _ in range(50)]
            await turns(1)

            assert len(promises._groups) == 1
            await asyncio.gather(*waiting)
            assert not promises._groups

    run(scene())


def test_who_gives_up_takes_nothing_from_the_others(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            promises = EnginePromises(one.engine)
            group = publish(one)
            impatient = asyncio.create_task(promises.kept(group))
            patient = asyncio.create_task(promises.kept(group))
            await turns(1)

            impatient.cancel()

            await patient
            assert impatient.cancelled()

    run(scene())


def test_a_promise_that_cannot_be_kept_says_why(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            promises = EnginePromises(one.engine)
            assert promises.trouble() is None
            one.files.fail("write", "journal")
            group = publish(one)

            with pytest.raises(DiskFull):
                await promises.kept(group)

            assert isinstance(promises.trouble(), DiskFull)
            one.clock.advance(1)
            assert promises.trouble() is None
            await promises.kept(publish(one))

    run(scene())


def test_what_is_written_again_is_kept_at_last(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            promises = EnginePromises(one.engine)
            await promises.kept(publish(one))
            one.files.fail("write", "journal")
            group = publish(one)
            waiting = asyncio.create_task(promises.kept_at_last(group))
            await one.until(lambda: one.engine.broker.log.failure)
            await turns(5)
            assert not waiting.done()

            one.clock.advance(1)
            publish(one)
            one.engine.tick()

            await waiting

    run(scene())


def test_who_publishes_waits_until_there_is_room(tmp_path: Path) -> None:
    async def scene() -> None:
        options = LogOptions(group_bytes=1 << 16)
        async with house(tmp_path, log=options) as one:
            promises = EnginePromises(one.engine)
            await promises.room()  # at once
            one.broker.publish("t", Columns([b"x" * 1000] * 40, 0))
            one.engine.kick()
            await one.until(lambda: not one.engine.idle)
            one.broker.publish("t", Columns([b"x" * 1000] * 40, 0))
            assert one.engine.congested

            waiting = [asyncio.create_task(promises.room()) for _ in range(3)]
            await asyncio.gather(*waiting)

            assert not one.engine.congested

    run(scene())


def test_time_is_the_engines(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            assert EnginePromises(one.engine).now_s() == one.clock.now_s()

    run(scene())
