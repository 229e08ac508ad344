from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from penstock.broker.traffic import SYNC_BUCKETS
from penstock.desk.figures import Figures
from penstock.http.metrics import OTHER, Metrics
from penstock.log import Columns
from penstock.sessions import TopicFilter
from tests.unit.desk.office import Office, Outlet
from tests.unit.desk.test_figures import Around

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    yield office
    office.broker.log.abandon()


def page(office: Office, topics: int = 100) -> Metrics:
    return Metrics(office.broker, Figures(office.broker, Around()), topics)


def families(metrics: Metrics) -> dict[str, Metric]:
    text, _ = metrics.text()
    found = text_string_to_metric_families(text.decode())
    return {family.name: family for family in found}


def by_topic(metrics: Metrics, name: str) -> dict[str, float]:
    samples = families(metrics)[name].samples
    return {one.labels["topic"]: one.value for one in samples}


def value(metrics: Metrics, name: str) -> float:
    (sample,) = families(metrics)[name].samples
    return sample.value


def test_what_passed_is_counted(office: Office) -> None:
    office.publish("a", b"1", b"2")
    office.take(office.subscribe("me", "a"))
    metrics = page(office)

    assert value(metrics, "penstock_events_in") == 2
    assert value(metrics, "penstock_events_out") == 2
    assert value(metrics, "penstock_commits") == 1
    assert value(metrics, "penstock_lag_events") == 2
    assert value(metrics, "penstock_unsettled_events") == 2
    assert value(metrics, "penstock_subscriptions") == 1


def test_connections_have_their_gateway(office: Office) -> None:
    samples = families(page(office))["penstock_connections"].samples

    found = {one.labels["gateway"]: one.value for one in samples}
    assert found == {"line": 2, "native": 1}


def test_sessions_and_retained_messages_are_counted(office: Office) -> None:
    sessions = office.broker.sessions
    for name in ("ann", "bob", "cy"):
        session, _ = sessions.open(name, clean=False, expiry_s=None)
        sessions.attach(session, Outlet())
        sessions.subscribe(session, TopicFilter("t", 1))
        session.packet_ids.send(1, [0, 1], 2)
        sessions.received(session, [5])
    sessions.detach(session, office.now_s)
    office.broker.create_topic("t")
    office.broker.retained.append("t", Columns([b"x"]))
    office.commit()
    metrics = page(office)

    found = {
        name: {next(iter(one.labels.values())): one.value for one in family.samples}
        for name, family in families(metrics).items()
        if name in ("penstock_mqtt_sessions", "penstock_mqtt_in_flight_packets")
    }

    assert found == {
        "penstock_mqtt_sessions": {"connected": 2, "away": 1},
        "penstock_mqtt_in_flight_packets": {"out": 6, "in": 3},
    }
    assert value(metrics, "penstock_mqtt_filters") == 3
    assert value(metrics, "penstock_mqtt_retained_messages") == 1


def test_syncs_are_a_histogram(office: Office) -> None:
    for seconds in (0.0004, 0.003, 7.0):
        office.broker.traffic.synced(seconds)

    samples = families(page(office))["penstock_sync_seconds"].samples

    counts = [one.value for one in samples if one.name.endswith("_bucket")]
    assert counts == sorted(counts)
    assert len(counts) == len(SYNC_BUCKETS) + 1
    assert counts[0] == 1
    assert counts[-1] == 3
    assert {one.name: one.value for one in samples}[
        "penstock_sync_seconds_sum"
    ] == pytest.approx(7.0034)


def test_topics_have_their_own_series(office: Office) -> None:
    office.publish("a", b"1", b"2")
    office.broker.log.create_topic('odd "name"\\\n')  # of an earlier version
    office.publish('odd "name"\\\n', b"1")
    office.raw_letter()

    stored = by_topic(page(office), "penstock_topic_events_in")

    assert stored == {"a": 2, 'odd "name"\\\n': 1}


def test_those_beyond_the_limit_are_one(office: Office) -> None:
    for number, name in enumerate("abcd", 1):
        office.publish(name, *[b"x"] * number)
    office.subscribe("me", "a")
    metrics = page(office, topics=2)

    assert by_topic(metrics, "penstock_topic_events_in") == {"c": 3, "d": 4, OTHER: 3}
    assert by_topic(metrics, "penstock_topic_events") == {"c": 3, "d": 4, OTHER: 3}
    assert by_topic(metrics, "penstock_topic_lag_events")[OTHER] == 1
    assert by_topic(metrics, "penstock_topic_subscriptions")[OTHER] == 1


def test_a_choice_lasts_while_the_topic_does(office: Office) -> None:
    office.publish("a", b"x", b"x")
    office.publish("b", b"x")
    metrics = page(office, topics=1)
    assert set(by_topic(metrics, "penstock_topic_events")) == {"a", OTHER}

    office.publish("b", *[b"x"] * 9)

    assert set(by_topic(metrics, "penstock_topic_events")) == {"a", OTHER}
    office.broker.delete_topic("a")
    office.commit()
    assert by_topic(metrics, "penstock_topic_events")["b"] == 10


def test_what_others_got_never_shrinks(office: Office) -> None:
    for name in "abc":
        office.publish(name, b"x", b"x")
    metrics = page(office, topics=1)
    before = by_topic(metrics, "penstock_topic_events_in")[OTHER]

    office.broker.delete_topic("b")

    office.commit()
    office.publish("c", b"x")

    assert by_topic(metrics, "penstock_topic_events_in")[OTHER] == before + 1


def test_no_topic_needs_a_series(office: Office) -> None:
    office.publish("a", b"x")

    assert by_topic(page(office, topics=0), "penstock_topic_events") == {OTHER: 1}


def test_the_format_is_that_which_is_asked_for(office: Office) -> None:
    metrics = page(office)

    _, plain = metrics.text("text/plain")
    text, newer = metrics.text("application/openmetrics-text; version=1.0.0")

    assert plain.startswith("text/plain")
    assert newer.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


def test_the_page_says_every_metric_with_its_type_and_labels(tmp_path: Path) -> None:
    office = Office(tmp_path / "data")
    office.publish("a", b"x")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", PAGE.read_text(), re.M)
    documented = {
        name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows
    }

    told = {
        name + ("_total" if family.type == "counter" else ""): (
            family.type,
            {label for sample in family.samples for label in sample.labels},
        )
        for name, family in families(page(office)).items()
    }

    office.broker.log.abandon()
    assert told == documented
