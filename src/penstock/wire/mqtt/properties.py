"""Properties of MQTT 5: what each is, where it may stand, and its bytes.

    offset  size  field
    0       1-4   length of all that follows, variable byte integer
    …       1     identifier   } one or more times
    …       n     value        }

Each may stand in a packet once, but for user properties, and for the subscription
identifiers of a PUBLISH that a server sends. Those have a limit, as each costs many
times its five bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Final, cast

from penstock.wire.mqtt.kinds import PacketKind
from penstock.wire.mqtt.primitives import PacketBody, binary, text, varint
from penstock.wire.mqtt.reasons import Malformed, Reason

# User properties of a packet, or subscription identifiers.
MAX_REPEATED: Final = 1000

PropertyValue = int | str | bytes | list[int] | list[tuple[str, str]]
# One on the wire.
_Value = int | str | bytes | tuple[str, str]


class Property(IntEnum):
    """Every property, by its name in the specification."""

    PAYLOAD_FORMAT_INDICATOR = 0x01
    MESSAGE_EXPIRY_INTERVAL = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_IDENTIFIER = 0x0B
    SESSION_EXPIRY_INTERVAL = 0x11
    ASSIGNED_CLIENT_IDENTIFIER = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTHENTICATION_METHOD = 0x15
    AUTHENTICATION_DATA = 0x16
    REQUEST_PROBLEM_INFORMATION = 0x17
    WILL_DELAY_INTERVAL = 0x18
    REQUEST_RESPONSE_INFORMATION = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER_PROPERTY = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_SUBSCRIPTION_AVAILABLE = 0x28
    SUBSCRIPTION_IDENTIFIER_AVAILABLE = 0x29
    SHARED_SUBSCRIPTION_AVAILABLE = 0x2A


Properties = dict[Property, PropertyValue]


class _Form(Enum):
    """What a value looks like on the wire."""

    SWITCH = 0  # one byte, 0 or 1
    TWO_BYTES = 1
    FOUR_BYTES = 2
    VARINT = 3
    TEXT = 4
    BINARY = 5
    PAIR = 6


_FORMS: Final = {
    Property.PAYLOAD_FORMAT_INDICATOR: _Form.SWITCH,
    Property.MESSAGE_EXPIRY_INTERVAL: _Form.FOUR_BYTES,
    Property.CONTENT_TYPE: _Form.TEXT,
    Property.RESPONSE_TOPIC: _Form.TEXT,
    Property.CORRELATION_DATA: _Form.BINARY,
    Property.SUBSCRIPTION_IDENTIFIER: _Form.VARINT,
    Property.SESSION_EXPIRY_INTERVAL: _Form.FOUR_BYTES,
    Property.ASSIGNED_CLIENT_IDENTIFIER: _Form.TEXT,
    Property.SERVER_KEEP_ALIVE: _Form.TWO_BYTES,
    Property.AUTHENTICATION_METHOD: _Form.TEXT,
    Property.AUTHENTICATION_DATA: _Form.BINARY,
    Property.REQUEST_PROBLEM_INFORMATION: _Form.SWITCH,
    Property.WILL_DELAY_INTERVAL: _Form.FOUR_BYTES,
    Property.REQUEST_RESPONSE_INFORMATION: _Form.SWITCH,
    Property.RESPONSE_INFORMATION: _Form.TEXT,
    Property.SERVER_REFERENCE: _Form.TEXT,
    Property.REASON_STRING: _Form.TEXT,
    Property.RECEIVE_MAXIMUM: _Form.TWO_BYTES,
    Property.TOPIC_ALIAS_MAXIMUM: _Form.TWO_BYTES,
    Property.TOPIC_ALIAS: _Form.TWO_BYTES,
    Property.MAXIMUM_QOS: _Form.SWITCH,
    Property.RETAIN_AVAILABLE: _Form.SWITCH,
    Property.USER_PROPERTY: _Form.PAIR,
    Property.MAXIMUM_PACKET_SIZE: _Form.FOUR_BYTES,
    Property.WILDCARD_SUBSCRIPTION_AVAILABLE: _Form.SWITCH,
    Property.SUBSCRIPTION_IDENTIFIER_AVAILABLE: _Form.SWITCH,
    Property.SHARED_SUBSCRIPTION_AVAILABLE: _Form.SWITCH,
}

# What must not be zero, and the answer if it is.
_NOT_ZERO: Final = {
    Property.RECEIVE_MAXIMUM: Reason.PROTOCOL_ERROR,
    Property.MAXIMUM_PACKET_SIZE: Reason.PROTOCOL_ERROR,
    Property.SUBSCRIPTION_IDENTIFIER: Reason.PROTOCOL_ERROR,
    Property.TOPIC_ALIAS: Reason.TOPIC_ALIAS_INVALID,  # MQTT-3.3.2-8
}

_MESSAGE: Final = frozenset(
    {
        Property.PAYLOAD_FORMAT_INDICATOR,
        Property.MESSAGE_EXPIRY_INTERVAL,
        Property.CONTENT_TYPE,
        Property.RESPONSE_TOPIC,
        Property.CORRELATION_DATA,
        Property.USER_PROPERTY,
    }
)
_ANSWER: Final = frozenset({Property.REASON_STRING, Property.USER_PROPERTY})
_LOGIN: Final = frozenset(
    {
        Property.SESSION_EXPIRY_INTERVAL,
        Property.AUTHENTICATION_METHOD,
        Property.AUTHENTICATION_DATA,
        Property.RECEIVE_MAXIMUM,
        Property.TOPIC_ALIAS_MAXIMUM,
        Property.USER_PROPERTY,
        Property.MAXIMUM_PACKET_SIZE,
    }
)
WILL_PROPERTIES: Final = _MESSAGE | {Property.WILL_DELAY_INTERVAL}

# Which packet may have which.
PROPERTIES: Final = {
    PacketKind.CONNECT: _LOGIN
    | {Property.REQUEST_PROBLEM_INFORMATION, Property.REQUEST_RESPONSE_INFORMATION},
    PacketKind.CONNACK: _LOGIN
    | {
        Property.ASSIGNED_CLIENT_IDENTIFIER,
        Property.SERVER_KEEP_ALIVE,
        Property.RESPONSE_INFORMATION,
        Property.SERVER_REFERENCE,
        Property.REASON_STRING,
        Property.MAXIMUM_QOS,
        Property.RETAIN_AVAILABLE,
        Property.WILDCARD_SUBSCRIPTION_AVAILABLE,
        Property.SUBSCRIPTION_IDENTIFIER_AVAILABLE,
        Property.SHARED_SUBSCRIPTION_AVAILABLE,
    },
    PacketKind.PUBLISH: _MESSAGE
    | {Property.TOPIC_ALIAS, Property.SUBSCRIPTION_IDENTIFIER},
    PacketKind.PUBACK: _ANSWER,
    PacketKind.PUBREC: _ANSWER,
    PacketKind.PUBREL: _ANSWER,
    PacketKind.PUBCOMP: _ANSWER,
    PacketKind.SUBSCRIBE: frozenset(
        {Property.SUBSCRIPTION_IDENTIFIER, Property.USER_PROPERTY}
    ),
    PacketKind.SUBACK: _ANSWER,
    PacketKind.UNSUBSCRIBE: frozenset({Property.USER_PROPERTY}),
    PacketKind.UNSUBACK: _ANSWER,
    PacketKind.DISCONNECT: _ANSWER
    | {Property.SESSION_EXPIRY_INTERVAL, Property.SERVER_REFERENCE},
    PacketKind.AUTH: _ANSWER
    | {Property.AUTHENTICATION_METHOD, Property.AUTHENTICATION_DATA},
}

_READERS: Final[dict[_Form, Callable[[PacketBody], _Value]]] = {
    _Form.SWITCH: PacketBody.byte,
    _Form.TWO_BYTES: PacketBody.two_bytes,
    _Form.FOUR_BYTES: PacketBody.four_bytes,
    _Form.VARINT: PacketBody.varint,
    _Form.TEXT: PacketBody.text,
    _Form.BINARY: PacketBody.binary,
    _Form.PAIR: PacketBody.pair,
}
_BY_ID: Final = {int(each): (each, _READERS[_FORMS[each]]) for each in Property}
# Those that not every value is allowed for.
_CHECKED: Final = frozenset(
    {Property.RESPONSE_TOPIC, *_NOT_ZERO}
    | {each for each in Property if _FORMS[each] is _Form.SWITCH}
)
# Looked up once: a member of an enum costs more than a name.
_USER_PROPERTY: Final = Property.USER_PROPERTY
_IDENTIFIER: Final = Property.SUBSCRIPTION_IDENTIFIER
_USER: Final = int(_USER_PROPERTY)


def parse_properties(
    body: PacketBody, allowed: frozenset[Property], *, many_identifiers: bool = False
) -> Properties:
    """The properties that stand next in ``body``; raises Malformed.

    ``many_identifiers``: subscription identifiers are a list, as in a PUBLISH.
    """
    part = body.part(body.varint())
    properties: Properties = {}
    while part.at < part.end:
        # Every packet that has properties may have these.
        if pairs := part.pairs(_USER, MAX_REPEATED + 1):
            _add(part, properties, _USER_PROPERTY, pairs)
            continue
        property, read = _identified(part, allowed)
        many = property is _USER_PROPERTY or (
            many_identifiers and property is _IDENTIFIER
        )
        if property in properties and not many:
            raise part.wrong(f"{property.name} twice")
        value = read(part)
        if property in _CHECKED:
            _check(part, property, value)
        if many:
            _add(part, properties, property, [value])
        else:
            properties[property] = cast("PropertyValue", value)
    _check_login(part, properties)
    return properties


def render_properties(properties: Properties) -> bytes:
    """The bytes of ``properties``, their length included."""
    # MQTT-2.2.2-1: none is a length of zero.
    if not properties:
        return b"\0"
    parts: list[bytes] = []
    for property, value in properties.items():
        form = _FORMS[property]
        for one in value if isinstance(value, list) else (value,):
            parts += (property.to_bytes(1, "big"), _bytes(form, one))
    encoded = b"".join(parts)
    return varint(len(encoded)) + encoded


def number(properties: Properties, property: Property) -> int | None:
    """A property that is a number; None if it is not there."""
    value = properties.get(property)
    assert value is None or isinstance(value, int)
    return value


def string(properties: Properties, property: Property) -> str | None:
    """A property that is text; None if it is not there."""
    value = properties.get(property)
    assert value is None or isinstance(value, str)
    return value


def data(properties: Properties, property: Property) -> bytes | None:
    """A property that is binary data; None if it is not there."""
    value = properties.get(property)
    assert value is None or isinstance(value, bytes)
    return value


def user_properties(properties: Properties) -> list[tuple[str, str]]:
    """Names and values, in their order (MQTT-3.3.2-18)."""
    # The one property that is a list of pairs.
    return cast("list[tuple[str, str]]", properties.get(Property.USER_PROPERTY, []))


def _identified(
    part: PacketBody, allowed: frozenset[Property]
) -> tuple[Property, Callable[[PacketBody], _Value]]:
    id = part.varint()
    known = _BY_ID.get(id)
    if known is None:
        raise part.malformed(f"property 0x{id:02x}, which does not exist")
    if known[0] not in allowed:
        raise part.malformed(f"{known[0].name}, which it cannot have")
    return known


def _add(
    part: PacketBody, properties: Properties, property: Property, more: Sequence[_Value]
) -> None:
    # A list of the one kind or the other, as the property says.
    values = cast("list[_Value]", properties.setdefault(property, []))
    values += more
    if len(values) > MAX_REPEATED:
        what = f"more than {MAX_REPEATED} times {property.name}"
        raise Malformed(Reason.QUOTA_EXCEEDED, f"{part.packet} has {what}")


def _check(part: PacketBody, property: Property, value: _Value) -> None:
    if isinstance(value, str):
        if "#" in value or "+" in value:
            raise part.wrong("a response topic with wildcards")  # MQTT-3.3.2-14
    elif property in _NOT_ZERO:
        if not value:
            text = f"{part.packet} has {property.name} 0"
            raise Malformed(_NOT_ZERO[property], text)
    elif value not in (0, 1):
        raise part.wrong(f"{property.name} {value!r}, which must be 0 or 1")


def _check_login(part: PacketBody, properties: Properties) -> None:
    if (
        Property.AUTHENTICATION_DATA in properties
        and Property.AUTHENTICATION_METHOD not in properties
    ):
        raise part.wrong("authentication data without a method")


def _bytes(form: _Form, value: _Value) -> bytes:
    match value:
        case str():
            return text(value)
        case bytes():
            return binary(value)
        case tuple():
            return text(value[0]) + text(value[1])
    if form is _Form.FOUR_BYTES:
        return value.to_bytes(4, "big")
    if form is _Form.TWO_BYTES:
        return value.to_bytes(2, "big")
    return value.to_bytes(1, "big") if form is _Form.SWITCH else varint(value)
