"""Work on many dead letters is the same through every client, and through the desk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from penstock.cli.offline import offline
from penstock.client import aio, connect, plan, redrive, trails
from penstock.client.plan import Plan, drive, drive_blocking
from penstock.desk.views.letters import Filter
from tests.local_server import local_server

Result = TypeVar("Result")
Run = Callable[[Path, Plan[Any]], Any]

EVENTS = 25


def blocking(data: Path, plan: Plan[Result]) -> Result:
    with connect(data) as client:

        def ask(verb: str, arguments: Mapping[str, object]) -> object:
            return client.ask(verb, **arguments)

        return drive_blocking(plan, ask, time.sleep)


def awaiting(data: Path, plan: Plan[Result]) -> Result:
    async def run() -> Result:
        async with await aio.connect(data) as client:

            async def ask(verb: str, arguments: Mapping[str, object]) -> object:
                return await client.ask(verb, **arguments)

            return await drive(plan, ask, asyncio.sleep)

    return asyncio.run(run())


def on_files(data: Path, plan: Plan[Result]) -> Result:
    with offline(str(data)) as desk:

        def ask(verb: str, arguments: Mapping[str, object]) -> object:
            return desk.ask(verb, **arguments)

        return drive_blocking(plan, ask, time.sleep)


RUNS = pytest.mark.parametrize("run", [blocking, awaiting, on_files])


@pytest.fixture
def data(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Letters of ``me``, every other with another error."""
    directory = tmp_path / "data"
    with local_server(directory) as server:
        with connect(directory) as client:
            client.publish("t", [b"%d" % number for number in range(EVENTS)])
            with client.subscribe("t", "me", start=0, tries=1) as me:
                for number in range(EVENTS):
                    delivery = me.next(5.0)
                    assert delivery is not None
                    kind = "KeyError" if number % 2 else "ValueError"
                    me.nack(delivery, f"no {number}", kind=kind)
        if request.node.callspec.params["run"] is on_files:
            server.stop()
        yield directory


@RUNS
def test_letters_are_grouped_sent_again_and_dropped(
    data: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (plan, redrive, trails):
        monkeypatch.setattr(module, "MAX_ROWS", 4)

    groups = run(data, redrive.groups())
    sent = run(data, redrive.republish_all(Filter(error="ValueError"), by="anna"))
    dropped = run(data, redrive.drop_all(reason="old", by="anna"))

    assert [(one.kind, one.count) for one in groups] == [
        ("ValueError", 13),
        ("KeyError", 12),
    ]
    assert (sent.done, sent.total, dropped.done) == (13, 13, 12)
    assert run(data, redrive.list_all()) == []
    statuses = [one.status for one in run(data, redrive.list_all(closed=True))]
    assert sorted(statuses) == ["dropped"] * 12 + ["republished"] * 13


@RUNS
def test_twice_is_once(data: Path, run: Run) -> None:
    first = run(data, redrive.republish_all(range(EVENTS)))
    again = run(data, redrive.republish_all(range(EVENTS)))

    assert (first.done, again.done, again.before) == (EVENTS, 0, EVENTS)


@RUNS
def test_errors_are_counted(data: Path, run: Run) -> None:
    groups = run(data, redrive.error_groups())

    assert {one.kind: one.count for one in groups} == {"ValueError": 13, "KeyError": 12}
