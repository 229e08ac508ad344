"""What MQTT says about a message, as headers, and back."""

from __future__ import annotations

import pytest

from penstock.gateway.mqtt.headers import (
    _READERS,
    _USER_FIELDS,
    EXPIRES,
    MAX_BRACKETS,
    QOS,
    RETAIN,
    common,
    fields_of,
    is_plain,
    left_s,
    published_qos,
    to_headers,
    to_properties,
    user_pairs,
)
from penstock.model.event import FIELDS, MAX_PRIORITY
from penstock.wire.mqtt import MAX_REPEATED, Properties, Property, number

USER = Property.USER_PROPERTY


@pytest.mark.parametrize(
    ("qos", "retain", "headers"),
    [
        (0, False, {QOS: "0"}),
        (1, False, {QOS: "1"}),
        (2, False, {}),
        (0, True, {QOS: "0", RETAIN: "1"}),
        (2, True, {RETAIN: "1"}),
    ],
)
def test_headers_say_how_a_message_was_published(
    qos: int, headers: dict[str, str], *, retain: bool
) -> None:
    assert common(qos, retain=retain) == headers
    assert published_qos(headers) == qos
    assert is_plain(headers)


@pytest.mark.parametrize("given", ["2", "3", "-1", "", "x"])
def test_events_of_other_protocols_are_worth_qos_2(given: str) -> None:
    assert published_qos({}) == 2
    assert published_qos({QOS: given}) == 2


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {USER: [("a", "1"), ("b", "2")]},
        {USER: [("a", "1"), ("a", "2"), ("b", "")]},
        {USER: [("mqtt.qos", "0"), ("x", "y")]},
        {USER: [("", "")]},
        {Property.CONTENT_TYPE: "text/plain", Property.RESPONSE_TOPIC: "a/b"},
        {Property.PAYLOAD_FORMAT_INDICATOR: 1},
        {Property.PAYLOAD_FORMAT_INDICATOR: 0},
        {Property.CORRELATION_DATA: b"\x00\xff" * 100},
        {Property.CORRELATION_DATA: b""},
        {Property.MESSAGE_EXPIRY_INTERVAL: 60},
        {USER: [("ключ", "знач")], Property.CONTENT_TYPE: "é"},
    ],
)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_properties_come_back_as_they_were(properties: Properties, qos: int) -> None:
    headers = to_headers(properties, qos, retain=True)

    lifetime_s = number(properties, Property.MESSAGE_EXPIRY_INTERVAL)
    expires = fields_of([], lifetime_s, 1_000_000).get("expires", 0)
    assert to_properties(headers, 0, 1000.0, expires) == properties
    assert user_pairs(headers) == properties.get(USER, [])
    assert published_qos(headers) == qos
    assert headers[RETAIN] == "1"


def test_user_properties_are_headers_of_the_same_name() -> None:
    headers = to_headers({USER: [("trace", "7")]}, 1, retain=False)

    assert headers == {"trace": "7", QOS: "1"}
    assert not is_plain(headers)


def test_a_user_property_never_takes_the_place_of_what_mqtt_says() -> None:
    forged: Properties = {USER: [(QOS, "0"), (EXPIRES, "1")]}

    headers = to_headers(forged, 2, retain=False)

    assert published_qos(headers) == 2
    assert left_s(headers, 5.0) is None


@pytest.mark.parametrize(
    ("pairs", "priority"),
    [
        ([], 0),
        ([("priority", "7")], 7),
        ([("priority", "999")], MAX_PRIORITY),
        ([("priority", "1000")], 0),
        ([("priority", "-1")], 0),
        ([("priority", "²")], 0),
        ([("priority", "")], 0),
        ([("Priority", "7")], 0),
        ([("x", "1"), ("priority", "3"), ("priority", "4")], 3),
    ],
)
def test_a_user_property_gives_the_priority(
    pairs: list[tuple[str, str]], priority: int
) -> None:
    assert fields_of(pairs, None, 0) == ({"priorities": priority} if priority else {})


@pytest.mark.parametrize(
    ("pairs", "fields"),
    [
        ([("key", "é")], {"keys": "é".encode()}),
        ([("key", "")], {"keys": b""}),
        ([("key", "a"), ("key", "b")], {"keys": b"a"}),
        ([("not_before", "5000")], {"not_before": 5000}),
        ([("not_before", "soon"), ("not_before", "7")], {"not_before": 7}),
        ([("expires", "5000"), ("id", "i"), ("parent", "p"), ("msg", "m")], {}),
    ],
)
def test_user_properties_of_their_names_give_fields(
    pairs: list[tuple[str, str]], fields: dict[str, object]
) -> None:
    assert fields_of(pairs, None, 0) == fields


def test_a_field_of_any_kind_of_value_may_be_a_user_property(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for field in FIELDS:
        if field.settable and field.kind != "map":
            monkeypatch.setitem(_USER_FIELDS, field.name, field)

    assert fields_of([("parent", "p")], None, 0) == {"parents": "p"}
    assert {one.kind for one in _USER_FIELDS.values()} <= _READERS.keys()


def test_a_priority_of_another_protocol_is_told_as_a_user_property() -> None:
    assert to_properties({}, 5, 0.0) == {USER: [("priority", "5")]}
    assert to_properties({"priority": "9"}, 5, 0.0) == {USER: [("priority", "9")]}


@pytest.mark.parametrize(
    ("now_s", "told"), [(1000.0, 10), (1004.5, 6), (1009.9, 1), (1010.0, None)]
)
def test_what_is_left_of_an_expiry_is_told_in_whole_seconds(
    now_s: float, told: int | None
) -> None:
    """Nothing, of what is sent again after its time."""
    expiry: Properties = {Property.MESSAGE_EXPIRY_INTERVAL: 10}
    headers = to_headers(expiry, 1, retain=False)
    expires_ms = fields_of([], 10, 1_000_000)["expires"]

    found = to_properties(headers, 0, now_s, expires_ms)

    assert found.get(Property.MESSAGE_EXPIRY_INTERVAL) == told


def test_a_message_counts_until_its_time_is_over() -> None:
    headers = {EXPIRES: "5000"}

    assert left_s(headers, 4.0) == 1.0
    assert left_s(headers, 5.0) == 0.0
    assert left_s({}, 5.0) is None
    assert left_s({}, 4.0, 5000) == 1.0


@pytest.mark.parametrize(
    "headers",
    [
        {EXPIRES: "soon"},
        {"mqtt.user-properties": "no JSON"},
        {"mqtt.user-properties": '[["a"]]'},
        {"mqtt.user-properties": "[1]"},
        {"mqtt.correlation-data": "!!!"},
        {"mqtt.payload-format": "7"},
        {"mqtt.unheard-of": "x"},
        {"x": "a\0b"},
        {"x\0": "a"},
        {"x": "y" * 70_000},
    ],
)
def test_headers_that_mqtt_cannot_say_are_left_out(headers: dict[str, str]) -> None:
    assert to_properties(headers, 0, 0.0) == {}


@pytest.mark.parametrize("name", ["mqtt.content-type", "mqtt.response-topic"])
@pytest.mark.parametrize("value", ["a\0b", "y" * 70_000])
def test_texts_of_our_own_names_that_mqtt_cannot_say_are_left_out(
    name: str, value: str
) -> None:
    """Headers of other protocols may have any name."""
    assert to_properties({name: value}, 0, 0.0) == {}


@pytest.mark.parametrize("value", ["a/+/b", "#", ""])
def test_a_response_topic_with_a_wildcard_is_left_out(value: str) -> None:
    """MQTT-3.3.2-14"""
    assert to_properties({"mqtt.response-topic": value}, 0, 0.0) == {}


def test_a_message_has_no_more_user_properties_than_a_packet_may() -> None:
    headers = {str(number): "" for number in range(MAX_REPEATED + 1)}

    found = to_properties(headers, 0, 0.0)

    assert found[USER] == [(str(number), "") for number in range(MAX_REPEATED)]


@pytest.mark.parametrize(("count", "kept"), [(2, 2), (MAX_BRACKETS, 0)])
def test_a_header_of_user_properties_is_taken_apart_if_it_may_be_ours(
    count: int, kept: int
) -> None:
    text = "[" + ",".join(['["a","b"]'] * count) + "]"

    found = to_properties({"mqtt.user-properties": text}, 0, 0.0)

    assert found.get(USER, []) == [("a", "b")] * kept
