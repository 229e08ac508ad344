from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.desk.figures import Figures
from penstock.http import live as module
from penstock.http.live import Live, LiveView
from tests.unit.desk.office import Office

TIMEOUT_S = 60.0


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    yield office
    office.broker.log.abandon()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds take no time."""
    monkeypatch.setattr(module, "FRAME_S", 0.001)
    monkeypatch.setattr(module, "LATE_S", 0.0)


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, TIMEOUT_S))


def told(frame: bytes) -> dict[str, Any]:
    """What one event has, by name."""
    found = {}
    for event in frame.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in event.split("\n"))
        found[fields["event"]] = json.loads(fields["data"])
    return found


def names(look: dict[str, Any]) -> list[str]:
    return [row["name"] for row in look["topics"]]


def test_who_begins_to_look_sees_everything(office: Office) -> None:
    async def scene() -> None:
        office.publish("a", b"x")
        live = Live(Figures(office.broker))

        with live.look(LiveView()) as looker:
            look = told(looker.take())["overview"]

        assert look["whole"]
        assert names(look) == ["a"]

    run(scene())


def test_then_only_what_changed(office: Office) -> None:
    async def scene() -> None:
        office.publish("a", b"x")
        office.publish("b", b"x")
        live = Live(Figures(office.broker))
        with live.look(LiveView()) as looker:
            looker.take()
            assert looker.take() == b""  # there is no other frame yet
            office.publish("b", b"y")

            assert await looker.notifier.wait(TIMEOUT_S)
            look = told(looker.take())["overview"]

        assert not look["whole"]
        assert names(look) == ["b"]
        assert look["totals"]["in"] == 3

    run(scene())


def test_a_frame_is_made_once_for_all(office: Office) -> None:
    async def scene() -> None:
        figures = Figures(office.broker)
        live = Live(figures)
        with live.look(LiveView()) as one, live.look(LiveView()) as other:
            assert one.take() == other.take()
            await one.notifier.wait(TIMEOUT_S)
            number = live.number
            first, second = one.take(), other.take()

            assert first is second
            assert live.number == number

    run(scene())


def test_who_missed_frames_sees_everything_again(office: Office) -> None:
    async def scene() -> None:
        office.publish("a", b"x")
        live = Live(Figures(office.broker))
        with live.look(LiveView()) as looker:
            looker.take()
            first = live.number
            while live.number < first + 2:
                await looker.notifier.wait(TIMEOUT_S)

            look = told(looker.take())["overview"]

        assert look["whole"]
        assert names(look) == ["a"]

    run(scene())


def test_nothing_is_made_while_nobody_looks(office: Office) -> None:
    async def scene() -> None:
        live = Live(Figures(office.broker))
        assert live.number == 0
        with live.look(LiveView()):
            pass
        number = live.number

        await asyncio.sleep(0.05)  # fifty frames' time

        assert live.number == number
        with live.look(LiveView()) as looker:
            assert told(looker.take())["overview"]["whole"]

    run(scene())


def test_topics_and_flow_are_told_to_those_who_want_them(office: Office) -> None:
    async def scene() -> None:
        office.publish("a", b"x")
        live = Live(Figures(office.broker))
        with (
            live.look(LiveView(topics=False)) as few,
            live.look(LiveView(flow=True)) as many,
        ):
            look, both = told(few.take()), told(many.take())

        assert names(look["overview"]) == []
        assert list(both) == ["overview", "flow"]
        assert [one["id"] for one in both["flow"]["nodes"]] == ["topic:a", "producer:"]

    run(scene())


def test_a_mistake_costs_a_frame_and_nothing_else(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Figures):
        broken = False
        failed = asyncio.Event()

        def overview(self, **asked: Any) -> Any:
            if self.broken:
                self.failed.set()
                raise RuntimeError("as planned")
            return super().overview(**asked)

    async def scene() -> None:
        figures = Failing(office.broker)
        live = Live(figures)
        with live.look(LiveView()) as looker:
            looker.take()
            figures.broken = True
            await figures.failed.wait()
            figures.broken = False

            assert await looker.notifier.wait(TIMEOUT_S)
            assert looker.take()

        assert caplog.records[0].action == "figures_failed"  # type: ignore[attr-defined]

    run(scene())
