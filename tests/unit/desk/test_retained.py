"""The desk's retained messages: listed, shown, and forgotten for good."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.desk import retained as desk_retained
from penstock.desk.retained import EXPIRES, QOS
from penstock.desk.views.retained import RetainedRow, RetainedView
from penstock.errors import InvalidName, NothingRetained
from penstock.gateway.mqtt import headers as gateway_headers
from penstock.log import Columns
from tests.unit.desk.office import Office


def ask(office: Office, verb: str, **arguments: Any) -> Any:
    return office.desk.ask(verb, arguments)


def retain(office: Office, topic: str, payload: bytes = b"x", **headers: str) -> None:
    said = {name.replace("_", "."): value for name, value in headers.items()}
    columns = Columns(
        [payload],
        int(office.now_s * 1000),
        headers=[{**said}],
        priorities=[3],
        producer="mqtt/ann",
    )
    office.broker.publish(topic, columns, keep=True)
    office.commit()


def topics(office: Office, **arguments: Any) -> list[str]:
    return [one.topic for one in ask(office, "mqtt.retained", **arguments).retained]


def test_what_is_retained_is_listed_by_topic(office: Office) -> None:
    for topic in ("b", "a/2", "a/1"):
        retain(office, topic)

    assert topics(office) == ["a/1", "a/2", "b"]
    assert topics(office, matching="a/+") == ["a/1", "a/2"]
    assert topics(office, matching="b") == ["b"]
    assert topics(office, matching="c") == []
    with pytest.raises(InvalidName, match="topic filter"):
        ask(office, "mqtt.retained", matching="")


def test_a_row_says_size_time_and_qos(office: Office) -> None:
    retain(office, "plain", b"12345")
    office.clock.advance(60)
    retain(office, "said", b"1", mqtt_qos="1")
    (plain, said) = ask(office, "mqtt.retained").retained

    assert plain == RetainedRow(
        topic="plain",
        bytes=5,
        published_ms=said.published_ms - 60_000,
        qos=2,
        expires_ms=None,
    )
    assert (said.bytes, said.qos) == (1, 1)


def test_the_headers_are_those_of_the_gateway() -> None:
    assert (QOS, EXPIRES) == (gateway_headers.QOS, gateway_headers.EXPIRES)


@pytest.mark.parametrize(("given", "shown"), [("1234", 1234), ("soon", None)])
def test_a_row_says_when_it_expires(
    office: Office, given: str, shown: int | None
) -> None:
    columns = Columns([b"x"], 0, headers=[{EXPIRES: given}])
    office.broker.publish("a", columns, keep=True)
    office.commit()

    assert ask(office, "mqtt.retained").retained[0].expires_ms == shown


def test_there_are_pages(office: Office) -> None:
    for topic in "cab":
        retain(office, topic)

    first = ask(office, "mqtt.retained", limit=2)
    rest = ask(office, "mqtt.retained", limit=2, after="b")

    assert ([one.topic for one in first.retained], first.more) == (["a", "b"], True)
    assert ([one.topic for one in rest.retained], rest.more) == (["c"], False)
    assert first.count == rest.count == 3


def test_a_page_reads_so_many_bytes(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in "abc":
        retain(office, topic)
    monkeypatch.setattr(desk_retained, "MAX_BYTES", 1)

    page = ask(office, "mqtt.retained")

    assert ([one.topic for one in page.retained], page.more) == (["a"], True)


def test_one_message_is_shown_with_its_payload(office: Office) -> None:
    retain(office, "a", b"old")
    retain(office, "b", b"other")
    retain(office, "a", b"\xff", mqtt_qos="0", lang="de")

    found = ask(office, "mqtt.retained.show", topic="a")

    assert found == RetainedView(
        topic="a",
        bytes=1,
        published_ms=int(office.now_s * 1000),
        qos=0,
        expires_ms=None,
        payload=b"\xff",
        headers={"mqtt.qos": "0", "lang": "de"},
        priority=3,
        producer="mqtt/ann",
    )


def test_a_message_that_is_forgotten_stays_so(office: Office) -> None:
    retain(office, "a", b"123")
    retain(office, "b")

    row = ask(office, "mqtt.retained.forget", topic="a")
    office.commit()

    assert (row.topic, row.bytes) == ("a", 3)
    assert topics(office) == ["b"]
    assert office.broker.log.topic("a").end_offset == 1, "its event is there alone"
    office.restart()
    assert topics(office) == ["b"]


def test_what_is_not_stored_is_not_forgotten(office: Office) -> None:
    retain(office, "a")

    ask(office, "mqtt.retained.forget", topic="a")
    assert topics(office) == ["a"], "not before it is committed"
    office.fail_commit()

    assert topics(office) == ["a"]


@pytest.mark.parametrize("verb", ["mqtt.retained.show", "mqtt.retained.forget"])
def test_a_topic_without_one_is_refused(office: Office, verb: str) -> None:
    office.publish("a", b"1")

    with pytest.raises(NothingRetained, match="topic a has no retained message"):
        ask(office, verb, topic="a")
