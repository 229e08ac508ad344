from __future__ import annotations

from typing import Any

import pytest

from penstock.desk.desk import Desk
from penstock.desk.figures import Figures
from penstock.desk.views.figures import (
    ConnectionRow,
    Machine,
    Pipeline,
    Processes,
    SettingRow,
    StageRow,
)
from penstock.errors import InvalidArgument
from tests.unit.desk.office import Office

PROCESSES = Processes(
    processes=[], versions={"penstock": "1"}, machine=Machine(cores=2, memory_bytes=3)
)
PIPELINE = Pipeline(running=True, stages=[StageRow(name="a", state="ready")], at_ms=1)
SETTING = SettingRow(key="a.b", value=1, default=2, origin="flag --b", help="b")


def row(number: int, gateway: str) -> ConnectionRow:
    return ConnectionRow(
        number=number,
        gateway=gateway,
        peer="127.0.0.1",
        name="",
        since_ms=0,
        bytes_in=0,
        bytes_out=0,
        subscriptions=[],
        rate=0.0,
    )


class Around:
    """What a server would say."""

    def connections(self) -> list[ConnectionRow]:
        return [row(3, "line"), row(1, "native"), row(2, "line")]

    def connection_counts(self) -> dict[str, int]:
        return {"line": 2, "native": 1}

    def settings(self) -> list[SettingRow]:
        return [SETTING]

    def processes(self) -> Processes:
        return PROCESSES

    def pipeline(self) -> Pipeline:
        return PIPELINE


@pytest.fixture
def desk(office: Office) -> Desk:
    return Desk(office.broker, Figures(office.broker, Around()))


def numbers(desk: Desk, **asked: Any) -> list[int]:
    page: Any = desk.ask("connections", asked)
    return [one.number for one in page.connections]


def test_connections_come_by_number(desk: Desk) -> None:
    assert numbers(desk) == [1, 2, 3]
    assert numbers(desk, after=1) == [2, 3]
    assert numbers(desk, gateway="line") == [2, 3]
    page: Any = desk.ask("connections", {"limit": 2})
    assert (len(page.connections), page.more) == (2, True)


def test_the_overview_counts_them(desk: Desk) -> None:
    look: Any = desk.ask("overview", {})

    assert look.connections == {"line": 2, "native": 1}


def test_what_the_server_knows_is_passed_on(desk: Desk) -> None:
    config: Any = desk.ask("config", {})

    assert desk.ask("processes", {}) == PROCESSES
    assert desk.ask("pipeline", {}) == PIPELINE
    assert config.settings == [SETTING]


def test_without_a_server_there_is_nothing_around(office: Office) -> None:
    desk: Any = office.desk

    assert desk.ask("connections", {}).connections == []
    assert desk.ask("config", {}).settings == []
    assert desk.ask("processes", {}).processes == []
    assert not desk.ask("pipeline", {}).running
    assert desk.ask("flow", {}).edges == []


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("overview", {"limit": 0}),
        ("overview", {"limit": 1001}),
        ("overview", {"search": "x" * 1001}),
        ("connections", {"limit": 0}),
        ("connections", {"after": -1}),
        ("flow", {"limit": 100_000}),
        ("pipeline", {"limit": 1}),
    ],
)
def test_what_makes_no_sense_is_refused(
    desk: Desk, verb: str, asked: dict[str, object]
) -> None:
    with pytest.raises(InvalidArgument):
        desk.ask(verb, asked)
