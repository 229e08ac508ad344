from __future__ import annotations

import msgspec
import pytest

from penstock.cli.mqtt_text import (
    message_lines,
    retained_table,
    session_lines,
    session_table,
)
from penstock.desk.views.retained import RetainedView
from penstock.desk.views.sessions import (
    FilterRow,
    MqttSessionView,
    OwedTopicRow,
    WillRow,
)

WISH = FilterRow(
    filter="a/#", qos=1, no_local=True, retain_as_published=True, identifier=7
)
SESSION = MqttSessionView(
    client="ann",
    user="anna",
    state="connected",
    since_ms=0,
    expiry_s=60.0,
    expires_in_s=None,
    durable=True,
    filters=[WISH],
    filters_count=1,
    in_flight_out=2,
    in_flight_in=1,
    owed_topics=1,
    lag=3,
    topics=[OwedTopicRow(topic="a/b", group="g", in_flight=2, lag=3)],
    more_topics=False,
    will=WillRow(topic="bye", bytes=3, qos=1, retain=True, delay_s=30.0, due_ms=30_000),
)
MESSAGE = RetainedView(
    topic="a",
    bytes=4,
    published_ms=0,
    qos=1,
    expires_ms=1000,
    payload=b"warm",
    headers={"lang": "de"},
    priority=3,
    producer=None,
)
DUE = "1970-01-01T00:00:30.000Z"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "60 s after it goes"),
        ({"expiry_s": None}, "never"),
        ({"expiry_s": 0.0}, "with its connection"),
        ({"expires_in_s": 34.6}, "in 35 s"),
    ],
)
def test_when_a_session_expires_is_said(change: dict[str, object], said: str) -> None:
    one = msgspec.structs.replace(SESSION, **change)

    assert said in session_table([one])[1]


def test_a_row_has_everything() -> None:
    _, row = session_table([SESSION])

    for said in ("ann     anna  connected", "yes", "2 out, 1 in", "3 on 1 topic"):
        assert said in row
    assert row.endswith("a/# (1)")


def test_some_filters_stand_for_all_of_them() -> None:
    many = msgspec.structs.replace(SESSION, filters=[WISH] * 10, filters_count=12)
    none = msgspec.structs.replace(SESSION, filters=[], filters_count=0)

    assert session_table([many])[1].endswith("a/# (1), a/# (1), a/# (1), … 12 in all")
    assert session_table([none])[1].endswith("-")
    assert "… 12 in all" in list(session_lines(many))


def test_names_are_made_harmless() -> None:
    odd = msgspec.structs.replace(SESSION, client="a\x1b[31m\n")

    assert "a\\x1b[31m\\n" in session_table([odd])[1]


def test_a_session_is_shown_line_by_line() -> None:
    lines = list(session_lines(SESSION))

    assert lines == [
        "client     ann",
        "user       anna",
        "state      connected since 1970-01-01T00:00:00.000Z",
        "expires    60 s after it goes",
        "durable    yes",
        "in flight  2 out, 1 in",
        "lag        3 on 1 topic",
        f"will       3 B to bye, QoS 1, retained, 30 s later, due {DUE}",
        "",
        "FILTER  QOS  OPTIONS",
        "a/#     1    no local, retain as published, identifier 7",
        "",
        "TOPIC  SHARED IN  IN FLIGHT  LAG",
        "a/b    g          2          3",
    ]


def test_what_a_session_has_not_is_left_out() -> None:
    bare = msgspec.structs.replace(
        SESSION,
        user="",
        since_ms=None,
        durable=False,
        filters=[],
        filters_count=0,
        lag=0,
        topics=[],
        more_topics=True,
        will=None,
    )

    assert list(session_lines(bare)) == [
        "client     ann",
        "user       -",
        "state      connected since -",
        "expires    60 s after it goes",
        "durable    no",
        "in flight  2 out, 1 in",
        "lag        -",
        "will       -",
        "… and more topics",
    ]


def test_a_will_that_is_plain_is_short() -> None:
    will = WillRow(topic="bye", bytes=3, qos=0, retain=False, delay_s=0.0, due_ms=None)
    one = msgspec.structs.replace(SESSION, will=will)

    assert "will       3 B to bye, QoS 0" in list(session_lines(one))


def test_a_message_is_shown_with_its_payload_below() -> None:
    assert list(message_lines(MESSAGE)) == [
        "topic        a",
        "size         4 B",
        "QoS          1",
        "published    1970-01-01T00:00:00.000Z",
        "expires      1970-01-01T00:00:01.000Z",
        "producer     -",
        "priority     3",
        "header lang  de",
        "",
        "warm",
    ]


def test_messages_are_a_table() -> None:
    for_ever = msgspec.structs.replace(MESSAGE, topic="b", expires_ms=None)

    assert retained_table([MESSAGE, for_ever]) == [
        "TOPIC  SIZE  QOS  PUBLISHED                 EXPIRES",
        "a      4 B   1    1970-01-01T00:00:00.000Z  1970-01-01T00:00:01.000Z",
        "b      4 B   1    1970-01-01T00:00:00.000Z  never",
    ]
