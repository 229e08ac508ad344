from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from penstock.embedded import queued_channel
from penstock.embedded.link import Channel
from penstock.embedded.queued_channel import QueuedChannel, joined
from penstock.errors import PenstockError, TakenInOrder, UnknownTopic
from tests.unit.embedded.scene import FakeChannel, Stage, until


async def handle(event: Any) -> None: ...


class Door:
    """Turns people away, as often as it has reasons."""

    def __init__(self, *reasons: PenstockError) -> None:
        self.reasons = list(reasons)
        self.channel = FakeChannel()

    async def __call__(self) -> Channel:
        if self.reasons:
            raise self.reasons.pop(0)
        return self.channel


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queued_channel, "TAKEN_S", 0.001)


def test_who_finds_the_place_free_has_it_at_once() -> None:
    async def run() -> None:
        door = Door()

        assert await joined(Stage(handle).runner, door) is door.channel

    asyncio.run(run())


def test_who_waits_says_so_once_and_joins_when_the_other_has_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        runner, taken = Stage(handle).runner, TakenInOrder("me", "t")
        door = Door(taken, taken, taken)

        runner.channel = await joined(runner, door)
        assert isinstance(runner.channel, QueuedChannel)
        assert not runner.channel.owes(0)
        await until(lambda: runner.channel is door.channel)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())

    said = [getattr(one, "action", None) for one in caplog.records]
    assert said == ["handler_waiting"]


def test_who_is_refused_in_the_end_gets_no_events() -> None:
    async def run() -> None:
        runner = Stage(handle).runner
        runner.channel = await joined(
            runner, Door(TakenInOrder("me", "t"), UnknownTopic("t"))
        )

        await until(lambda: runner.gone is not None)

    asyncio.run(run())


def test_who_leaves_while_it_waits_joins_no_more() -> None:
    async def run() -> None:
        runner = Stage(handle).runner
        door = Door(*[TakenInOrder("me", "t")] * 1000)
        runner.channel = queued = await joined(runner, door)

        await runner.close(0.0)

        assert runner.channel is queued
        left = len(door.reasons)
        await asyncio.sleep(0.01)
        assert len(door.reasons) == left

    asyncio.run(run())
