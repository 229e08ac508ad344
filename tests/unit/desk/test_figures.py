from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock import __version__
from penstock.clock import ManualClock
from penstock.desk.desk import Desk
from penstock.desk.figures import LOOK_MS, DiskUse, Figures
from penstock.desk.views.figures import (
    ConnectionRow,
    Machine,
    Pipeline,
    Processes,
    SettingRow,
    StageRow,
)
from penstock.errors import InvalidArgument
from penstock.log import Columns, Log
from penstock.testing.crashdisk import CrashDisk
from tests.unit.desk.office import Office


def pass_a_second(office: Office) -> None:
    office.clock.advance(1.0)
    office.broker.tick(office.now_s)


def test_an_overview_of_nothing_is_all_zeros(office: Office) -> None:
    look = Figures(office.broker).overview()

    assert (look.rates.in_, look.rates.out, look.lag, look.unsettled) == (0, 0, 0, 0)
    assert (look.topics, look.more, look.topics_count) == ([], False, 0)
    assert look.version == __version__
    assert look.connections == {}


def test_totals_are_of_all_topics(office: Office) -> None:
    office.publish("a", b"1", b"2", b"3")
    office.publish("b", b"1")
    one = office.subscribe("one", "a", window=2)
    office.subscribe("other", "b")
    office.take(one)
    pass_a_second(office)

    look = Figures(office.broker).overview()

    assert (look.totals.in_, look.totals.out) == (4, 2)
    assert (look.rates.in_, look.rates.out) == (4, 2)
    assert look.lag == 4
    assert look.unsettled == 2
    assert (look.topics_count, look.subscriptions_count) == (2, 2)
    assert look.uptime_s == 1.0


def test_whoever_has_unsubscribed_is_not_behind(office: Office) -> None:
    office.publish("a", b"1")
    consumer = office.subscribe("me", "a")
    figures = Figures(office.broker)
    assert figures.overview().lag == 1

    office.broker.unsubscribe(consumer)
    office.commit()

    assert figures.overview().lag == 0


def test_what_was_postponed_is_lag_as_in_the_list_of_subscriptions(
    office: Office,
) -> None:
    now_ms = int(office.now_s * 1000)
    late = Columns([b"late"], now_ms, not_before=[now_ms + 60_000])
    office.broker.publish("a", late)
    office.commit()
    consumer = office.subscribe("me", "a")

    office.take(consumer)

    assert consumer.subscription.lag() == 1
    assert Figures(office.broker).overview().lag == 1


def test_settling_is_seen_at_the_next_look(office: Office) -> None:
    office.publish("a", b"1", b"2")
    consumer = office.subscribe("me", "a")
    office.take(consumer)
    figures = Figures(office.broker)
    assert (figures.overview().lag, figures.overview().unsettled) == (2, 2)

    consumer.subscription.settle_all([0, 1], consumer)
    office.commit()

    assert (figures.overview().lag, figures.overview().unsettled) == (0, 0)


def test_the_most_active_topics_come_first(office: Office) -> None:
    for name in ("a", "b", "c", "d"):
        office.publish(name, b"x")
    for _ in range(10):
        pass_a_second(office)
    office.publish("c", b"1", b"2")
    office.publish("b", b"1", b"2", b"3")
    pass_a_second(office)
    figures = Figures(office.broker)

    names = [row.name for row in figures.overview().topics]
    few = figures.overview(limit=2)

    assert names == ["b", "c", "a", "d"]
    assert [row.name for row in few.topics] == ["b", "c"]
    assert few.more


def test_one_can_page_and_search_by_name(office: Office) -> None:
    for name in ("Orders", "orders.paid", "parcels", "zebras"):
        office.publish(name, b"x")
    figures = Figures(office.broker)

    def names(**asked: str) -> list[str]:
        return [row.name for row in figures.overview(**asked).topics]  # type: ignore[arg-type]

    assert names(after="") == ["Orders", "orders.paid", "parcels", "zebras"]
    assert names(after="orders.paid") == ["parcels", "zebras"]
    assert names(search="ORDERS") == ["Orders", "orders.paid"]
    assert names(search="e", after="Orders") == ["orders.paid", "parcels", "zebras"]
    page = figures.overview(after="", limit=2)
    assert (len(page.topics), page.more) == (2, True)


def test_a_row_has_what_is_known_of_its_topic(office: Office) -> None:
    office.publish("a", b"1", b"2")
    office.bury(office.subscribe("bad", "a", tries=1))
    office.take(office.subscribe("good", "a"))
    pass_a_second(office)

    (row,) = Figures(office.broker).overview().topics

    assert (row.name, row.events, row.subscriptions) == ("a", 2, 2)
    assert (row.in_, row.out, row.lag, row.dead_letters) == (2, 4, 2, 2)
    assert row.bytes > 0
    assert row.spark == [2]


def test_topics_of_our_own_are_not_told(office: Office) -> None:
    office.raw_letter()

    look = Figures(office.broker).overview()

    assert look.topics == []
    assert look.dead_letters == 1


def test_topics_come_and_go(office: Office) -> None:
    figures = Figures(office.broker)
    office.publish("a", b"x")
    office.publish("b", b"x")
    pass_a_second(office)
    assert figures.names() == ["a", "b"]

    office.broker.delete_topic("a")

    office.commit()

    assert figures.names() == ["b"]
    assert [row.name for row in figures.overview().topics] == ["b"]


def test_history_has_a_value_for_every_second(office: Office) -> None:
    figures = Figures(office.broker)
    office.publish("a", b"1")
    office.subscribe("me", "a")
    pass_a_second(office)
    pass_a_second(office)
    figures.overview()
    office.publish("a", b"2")
    pass_a_second(office)

    history = figures.overview().history

    assert history.in_ == [1, 0, 1]
    assert history.out == [0, 0, 0]
    assert history.lag == [None, 1, 2]  # nobody looked at first
    for _ in range(100):
        pass_a_second(office)
    assert len(figures.overview().history.in_) == 60


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


def test_what_is_on_disk_and_what_is_left(tmp_path: Path) -> None:
    clock = ManualClock()
    with Log.open(tmp_path, clock=clock) as log:
        use = DiskUse(log)
        before = use.row()
        log.create_topic("t")
        log.append("t", Columns([bytes(100_000)], 0))
        log.checkpoint()

        assert use.row() == before  # looked at now and then only
        clock.advance(LOOK_MS / 1000)
        after = use.row()

        assert after.used_bytes >= before.used_bytes + 100_000
        assert after.free_bytes is not None
        assert after.free_bytes > 0


def test_a_log_that_is_not_in_files_has_no_disk() -> None:
    with Log.open("/data", files=CrashDisk()) as log:
        assert DiskUse(log).row().free_bytes is None
