"""What MQTT says about a message, as headers of an event, and back.

User properties are headers of the same name. What MQTT has words of its own for goes
into headers that begin with ``mqtt.``. The QoS of a publish is one of them, as it
bounds the QoS of every delivery (MQTT-3.8.4-8); no header means QoS 2, which is what
events of other protocols are worth. User properties that a mapping cannot hold (the
same name twice, names of ours) keep their order in one header, as JSON. Events of other
protocols may have more headers than a packet has user properties: the first are sent.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.log import Columns
from penstock.model.event import FIELDS, MAX_PRIORITY, Kind
from penstock.model.moment import time_ms
from penstock.wire.mqtt import MAX_REPEATED, Properties, Property, user_properties

PREFIX = "mqtt."
QOS = "mqtt.qos"
RETAIN = "mqtt.retain"
# Of events of before: their expiry was a header.
EXPIRES = "mqtt.expires-ms"
_USER = "mqtt.user-properties"
_FORMAT = "mqtt.payload-format"
_CORRELATION = "mqtt.correlation-data"
_TEXTS = {
    Property.CONTENT_TYPE: "mqtt.content-type",
    Property.RESPONSE_TOPIC: "mqtt.response-topic",
}
PRIORITY = "priority"
# Fields of an event that a user property of the same name says.
_USER_FIELDS = {
    one.name: one for one in FIELDS if one.mqtt == f"User Property {one.name}"
}
# Of a time in milliseconds: more is no time.
MAX_DIGITS = 15
# A header of user properties that has more is none that we have made.
MAX_BRACKETS = 100 * MAX_REPEATED
# What says how an event is sent, and not what it is.
_PLAIN = {QOS, RETAIN}

_decode_pairs = msgspec.json.Decoder(list[tuple[str, str]]).decode
# One object for all messages alike, so that a batch finds out at once.
_COMMON: dict[tuple[int, bool], dict[str, str]] = {
    (qos, retain): {
        **({QOS: str(qos)} if qos < 2 else {}),
        **({RETAIN: "1"} if retain else {}),
    }
    for qos in (0, 1, 2)
    for retain in (False, True)
}


def common(qos: int, *, retain: bool) -> dict[str, str]:
    """The headers of messages without properties; not to be changed."""
    return _COMMON[qos, retain]


def to_headers(properties: Properties, qos: int, *, retain: bool) -> dict[str, str]:
    """The headers of a message with these properties."""
    headers: dict[str, str] = {}
    pairs = user_properties(properties)
    plain = dict(pairs)
    if len(plain) == len(pairs) and not any(n.startswith(PREFIX) for n in plain):
        headers.update(plain)
    elif pairs:
        headers[_USER] = msgspec.json.encode(pairs).decode()
    headers.update(common(qos, retain=retain))
    for name, value in properties.items():
        if name in _TEXTS:
            headers[_TEXTS[name]] = str(value)
        elif name is Property.PAYLOAD_FORMAT_INDICATOR:
            headers[_FORMAT] = str(value)
        elif name is Property.CORRELATION_DATA and isinstance(value, bytes):
            headers[_CORRELATION] = base64.b64encode(value).decode()
    return headers


def fields_of(
    pairs: Iterable[tuple[str, str]], lifetime_s: float | None, now_ms: int
) -> dict[str, Any]:
    """What a message with these user properties has beside headers, by column.

    ``lifetime_s``: its message expiry interval. What is no value of its field is a
    header and nothing else; of several values the first counts.
    """
    # Any: the value of whichever field.
    found: dict[str, Any] = {}
    if lifetime_s is not None:
        found["expires"] = now_ms + int(lifetime_s * 1000)
    for name, text in pairs:
        field = _USER_FIELDS.get(name)
        if field is not None and field.column not in found:
            value = _READERS[field.kind](text)
            if value is not None:
                found[field.column] = value
    return {name: one for name, one in found.items() if one != 0}


def messages(
    payloads: Sequence[bytes],
    now_ms: int,
    producer: str,
    headers: Mapping[str, str],
    fields: Mapping[str, object],
) -> Columns:
    """Messages that are said alike, as events; ``fields`` as ``fields_of`` has them."""
    count = len(payloads)
    events = Columns(payloads, now_ms, producer=producer)
    if headers:
        events.headers = [headers] * count
    if fields:
        events.take({name: [one] * count for name, one in fields.items()})
    return events


def user_pairs(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The user properties of a message with these headers, in their order."""
    pairs = [one for one in headers.items() if not one[0].startswith(PREFIX)]
    if given := headers.get(_USER):
        pairs += _pairs(given)
    return pairs


def published_qos(headers: Mapping[str, str]) -> int:
    """The QoS that a message was published with."""
    given = headers.get(QOS)
    return int(given) if given in ("0", "1") else 2


def left_s(
    headers: Mapping[str, str], now_s: float, expires_ms: int = 0
) -> float | None:
    """How long a message still counts; None for ever, nothing or less: no more."""
    if expires_ms:
        return expires_ms / 1000 - now_s
    given = headers.get(EXPIRES)
    if given is None or not given.isdecimal() or len(given) > MAX_DIGITS:
        return None  # a publisher's own header of our name, perhaps
    return int(given) / 1000 - now_s


def to_properties(
    headers: Mapping[str, str], priority: int, now_s: float, expires_ms: int = 0
) -> Properties:
    """The properties of a message with these headers."""
    properties: Properties = {}
    pairs = user_pairs(headers)
    if priority and PRIORITY not in dict(pairs):
        pairs.append((PRIORITY, str(priority)))
    if headers.keys() - _PLAIN:
        for property_, name in _TEXTS.items():
            if name in headers and _sayable(property_, headers[name]):
                properties[property_] = headers[name]
        if headers.get(_FORMAT) in ("0", "1"):
            properties[Property.PAYLOAD_FORMAT_INDICATOR] = int(headers[_FORMAT])
        if (data := _correlation(headers)) is not None:
            properties[Property.CORRELATION_DATA] = data
    seconds = left_s(headers, now_s, expires_ms)
    if seconds is not None and seconds > 0:  # MQTT-3.3.2-6; or else it is sent again
        left = min(max(int(seconds + 0.999), 1), 0xFFFFFFFF)
        properties[Property.MESSAGE_EXPIRY_INTERVAL] = left
    if pairs := [pair for pair in pairs[:MAX_REPEATED] if _speakable(*pair)]:
        properties[Property.USER_PROPERTY] = pairs
    return properties


def _level(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 4:
        return min(int(text), MAX_PRIORITY)
    return None


# By the kind of a field: its value, or None if the text is none. Of a text it is the
# broker that checks it, as of every publisher's.
_READERS: Mapping[Kind, Callable[[str], object]] = {
    "text": str,
    "level": _level,
    "bytes": str.encode,
    "time": time_ms,
}


def is_plain(headers: Mapping[str, str]) -> bool:
    """Whether nothing but QoS and retain is said, so that there are no properties."""
    return headers.keys() <= _PLAIN


def _pairs(text: str) -> list[tuple[str, str]]:
    if text.count("[") > MAX_BRACKETS:
        return []
    try:
        return _decode_pairs(text)
    except msgspec.DecodeError:
        return []  # a publisher's own header of our name


def _correlation(headers: Mapping[str, str]) -> bytes | None:
    given = headers.get(_CORRELATION)
    if given is None:
        return None
    try:
        return base64.b64decode(given, validate=True)[:0xFFFF]
    except ValueError:
        return None


def _sayable(property_: Property, text: str) -> bool:
    """Whether a header is what its property has to be; any client may have set it."""
    if property_ is Property.RESPONSE_TOPIC and (not text or {"+", "#"} & set(text)):
        return False  # MQTT-3.3.2-14
    return _speakable(text)


def _speakable(*texts: str) -> bool:
    """Whether MQTT can say these: 64 KiB at most, no NUL."""
    return all(len(t.encode()) <= 0xFFFF and "\0" not in t for t in texts)
