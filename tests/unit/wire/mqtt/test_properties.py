from __future__ import annotations

import pytest

from penstock.errors import LocalProtocolError
from penstock.wire.mqtt import Malformed, PacketKind, Properties, Property, Reason
from penstock.wire.mqtt.primitives import PacketBody, text, varint
from penstock.wire.mqtt.properties import (
    MAX_REPEATED,
    PROPERTIES,
    WILL_PROPERTIES,
    data,
    number,
    parse_properties,
    render_properties,
    string,
    user_properties,
)

# One value for each property, and its bytes behind the identifier.
VALUES: dict[Property, tuple[object, str]] = {
    Property.PAYLOAD_FORMAT_INDICATOR: (1, "01"),
    Property.MESSAGE_EXPIRY_INTERVAL: (0x01020304, "01020304"),
    Property.CONTENT_TYPE: ("t", "000174"),
    Property.RESPONSE_TOPIC: ("t", "000174"),
    Property.CORRELATION_DATA: (b"\xff", "0001ff"),
    Property.SUBSCRIPTION_IDENTIFIER: (128, "8001"),
    Property.SESSION_EXPIRY_INTERVAL: (1, "00000001"),
    Property.ASSIGNED_CLIENT_IDENTIFIER: ("t", "000174"),
    Property.SERVER_KEEP_ALIVE: (258, "0102"),
    Property.AUTHENTICATION_METHOD: ("t", "000174"),
    Property.AUTHENTICATION_DATA: (b"", "0000"),
    Property.REQUEST_PROBLEM_INFORMATION: (0, "00"),
    Property.WILL_DELAY_INTERVAL: (0, "00000000"),
    Property.REQUEST_RESPONSE_INFORMATION: (1, "01"),
    Property.RESPONSE_INFORMATION: ("", "0000"),
    Property.SERVER_REFERENCE: ("t", "000174"),
    Property.REASON_STRING: ("t", "000174"),
    Property.RECEIVE_MAXIMUM: (65535, "ffff"),
    Property.TOPIC_ALIAS_MAXIMUM: (0, "0000"),
    Property.TOPIC_ALIAS: (1, "0001"),
    Property.MAXIMUM_QOS: (1, "01"),
    Property.RETAIN_AVAILABLE: (0, "00"),
    Property.USER_PROPERTY: ([("a", "b")], "000161000162"),
    Property.MAXIMUM_PACKET_SIZE: (1, "00000001"),
    Property.WILDCARD_SUBSCRIPTION_AVAILABLE: (0, "00"),
    Property.SUBSCRIPTION_IDENTIFIER_AVAILABLE: (0, "00"),
    Property.SHARED_SUBSCRIPTION_AVAILABLE: (0, "00"),
}
ALL = frozenset(Property)


def parsed(encoded: bytes, allowed: frozenset[Property] = ALL) -> Properties:
    body = PacketBody(encoded, 0, len(encoded), "TEST")
    properties = parse_properties(body, allowed)
    body.finish()
    return properties


@pytest.mark.parametrize("property", Property)
def test_every_property_has_its_form(property: Property) -> None:
    value, encoded = VALUES[property]
    rendered = render_properties({property: value})  # type: ignore[dict-item]

    assert rendered == bytes((len(encoded) // 2 + 1, property)) + bytes.fromhex(encoded)
    if property is not Property.AUTHENTICATION_DATA:
        assert parsed(rendered) == {property: value}


def test_no_properties_are_a_length_of_zero() -> None:
    assert render_properties({}) == b"\0"
    assert parsed(b"\0") == {}


def test_user_properties_keep_their_order_and_names_may_repeat() -> None:
    pairs = [("a", "1"), ("b", "2"), ("a", "1")]

    properties = parsed(render_properties({Property.USER_PROPERTY: [*pairs]}))

    assert user_properties(properties) == pairs
    assert user_properties({}) == []


def test_subscription_identifiers_are_a_list_where_there_may_be_many() -> None:
    encoded = b"\x05\x0b\x01\x0b\x80\x01"
    body = PacketBody(encoded, 0, len(encoded), "TEST")

    properties = parse_properties(body, ALL, many_identifiers=True)

    assert properties == {Property.SUBSCRIPTION_IDENTIFIER: [1, 128]}
    assert render_properties(properties) == encoded
    with pytest.raises(Malformed, match="SUBSCRIPTION_IDENTIFIER twice"):
        parsed(encoded)


def test_values_are_asked_for_by_their_type() -> None:
    properties: Properties = {
        Property.RECEIVE_MAXIMUM: 7,
        Property.CONTENT_TYPE: "t",
        Property.CORRELATION_DATA: b"c",
    }

    assert number(properties, Property.RECEIVE_MAXIMUM) == 7
    assert string(properties, Property.CONTENT_TYPE) == "t"
    assert data(properties, Property.CORRELATION_DATA) == b"c"
    assert number({}, Property.RECEIVE_MAXIMUM) is None
    assert string({}, Property.CONTENT_TYPE) is None
    assert data({}, Property.CORRELATION_DATA) is None


def test_each_property_stands_where_the_specification_lets_it() -> None:
    places = {
        property: {kind for kind in PROPERTIES if property in PROPERTIES[kind]}
        for property in Property
    }

    assert places[Property.USER_PROPERTY] == {*PROPERTIES}
    assert places[Property.REASON_STRING] == {*PROPERTIES} - {
        *(
            PacketKind.CONNECT,
            PacketKind.PUBLISH,
            PacketKind.SUBSCRIBE,
            PacketKind.UNSUBSCRIBE,
        )
    }
    assert places[Property.TOPIC_ALIAS] == {PacketKind.PUBLISH}
    assert places[Property.SUBSCRIPTION_IDENTIFIER] == {
        PacketKind.PUBLISH,
        PacketKind.SUBSCRIBE,
    }
    assert places[Property.SERVER_REFERENCE] == {
        PacketKind.CONNACK,
        PacketKind.DISCONNECT,
    }
    assert places[Property.AUTHENTICATION_METHOD] == {
        *(PacketKind.CONNECT, PacketKind.CONNACK, PacketKind.AUTH)
    }
    assert places[Property.SESSION_EXPIRY_INTERVAL] == {
        *(PacketKind.CONNECT, PacketKind.CONNACK, PacketKind.DISCONNECT)
    }
    assert [property for property in Property if not places[property]] == [
        Property.WILL_DELAY_INTERVAL
    ]
    assert (
        PROPERTIES[PacketKind.PUBLISH]
        - {*(Property.TOPIC_ALIAS, Property.SUBSCRIPTION_IDENTIFIER)}
        | {Property.WILL_DELAY_INTERVAL}
        == WILL_PROPERTIES
    )


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        ("02 24 02", Reason.PROTOCOL_ERROR),
        ("03 21 00 00", Reason.PROTOCOL_ERROR),
        ("03 23 00 00", Reason.TOPIC_ALIAS_INVALID),
        ("02 0b 00", Reason.PROTOCOL_ERROR),
        ("03 16 00 00", Reason.PROTOCOL_ERROR),
        ("06 13 00 01 13 00 01", Reason.PROTOCOL_ERROR),
        ("04 08 00 01 23", Reason.PROTOCOL_ERROR),
        ("02 00 00", Reason.MALFORMED_PACKET),
        ("03 a6 00 00", Reason.MALFORMED_PACKET),
        ("04 26 00 00 00", Reason.MALFORMED_PACKET),
        ("07 26 00 01 61 00 01 00", Reason.MALFORMED_PACKET),
        ("05 02 00", Reason.MALFORMED_PACKET),
        ("", Reason.MALFORMED_PACKET),
    ],
)
def test_bad_properties_are_refused(encoded: str, reason: Reason) -> None:
    with pytest.raises(Malformed) as refused:
        parsed(bytes.fromhex(encoded))

    assert refused.value.reason is reason


def test_a_property_in_the_wrong_packet_is_refused() -> None:
    with pytest.raises(Malformed, match="TEST has TOPIC_ALIAS, which it cannot have"):
        parsed(b"\x03\x23\x00\x01", PROPERTIES[PacketKind.SUBSCRIBE])


def test_a_property_that_is_too_long_is_our_fault() -> None:
    with pytest.raises(LocalProtocolError, match="65536 bytes"):
        render_properties({Property.REASON_STRING: "x" * 65_536})


def user(name: str, value: str = "") -> bytes:
    return b"\x26" + text(name) + text(value)


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "1")] * MAX_REPEATED,
        [("", "")] * 3,
        [("ä", "€"), ("", "x" * 300), ("b", "")],
    ],
)
def test_user_properties_keep_their_order(pairs: list[tuple[str, str]]) -> None:
    encoded = b"".join(user(*pair) for pair in pairs)
    half = len(user(*pairs[0]))
    between = encoded[:half] + b"\x01\x01" + encoded[half:]

    for given in (encoded, between):
        assert user_properties(parsed(varint(len(given)) + given)) == pairs


@pytest.mark.parametrize("other", [b"", b"\x01\x01"])
def test_more_user_properties_than_are_bearable_are_refused(other: bytes) -> None:
    encoded = user("a") + other + user("a") * MAX_REPEATED

    with pytest.raises(
        Malformed, match="TEST has more than 1000 times USER"
    ) as refused:
        parsed(varint(len(encoded)) + encoded)

    assert refused.value.reason is Reason.QUOTA_EXCEEDED


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (b"\x26\0\x01a\0\x01\0", "NUL"),
        (b"\x26\0\x01\xff\0\0", "not UTF-8"),
        (b"\x26\0\0\0\x02a", "an end 1 bytes before"),
        (b"\x26\0\x09a\0\0", "before that of a field"),
        (b"\x26\0", "before that of a field"),
    ],
)
def test_a_user_property_that_is_wrong_is_named_behind_others(
    wrong: bytes, said: str
) -> None:
    encoded = user("a", "b") + wrong

    with pytest.raises(Malformed, match=said):
        parsed(varint(len(encoded)) + encoded)
