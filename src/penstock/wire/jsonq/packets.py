"""Lines of clients of the JSON protocol, as packets.

    consumer   {"type":"SUB","topic":T}
               {"type":"UNSUB","topic":T}
               {"type":"PUBREC","msgId":n,"topic":T}
               {"type":"PUBCOMP","msgId":n,"topic":T}
    publisher  {"type":"PUB","topic":T,"msg":any JSON}, and times if need be:
               "expires", "not_before":milliseconds since 1970 or RFC 3339
               {"type":"PUBREL","msgId":n}

Types are exact: ``type`` in upper case, ``topic`` a string, ``msgId`` an integer that
is written as one. Other keys are ignored. What is JSON but none of these, or a packet
of the other side, is an unknown command.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from penstock.errors import InvalidBatch
from penstock.model.event import TIMES
from penstock.model.moment import time_ms
from penstock.wire.json_text import NOT_JSON, why_not_json

_NAMES = {"msg_id": "msgId"}


class LineRefusal(Enum):
    """Why a line is no packet; the value is the answer to it."""

    INVALID_JSON = b"INVALID JSON\r\n"
    UNKNOWN_COMMAND = b"UNKNOWN COMMAND\r\n"


class Sub(msgspec.Struct, frozen=True, tag_field="type", tag="SUB"):
    topic: str


class Unsub(msgspec.Struct, frozen=True, tag_field="type", tag="UNSUB"):
    topic: str


class Pubrec(
    msgspec.Struct, frozen=True, tag_field="type", tag="PUBREC", rename=_NAMES
):
    msg_id: int
    topic: str


class Pubcomp(
    msgspec.Struct, frozen=True, tag_field="type", tag="PUBCOMP", rename=_NAMES
):
    msg_id: int
    topic: str


class Pub(msgspec.Struct, frozen=True, tag_field="type", tag="PUB", omit_defaults=True):
    topic: str
    msg: msgspec.Raw
    expires: object = None
    not_before: object = None

    @property
    def payload(self) -> bytes:
        """The JSON text of ``msg``, as it came."""
        return bytes(self.msg)

    def times(self) -> dict[str, int]:
        """When it expires and so on, by column; raises InvalidBatch."""
        given = {one: getattr(self, one.name) for one in TIMES}
        found: dict[str, int] = {}
        for field, value in given.items():
            if value is None:
                continue
            if (time := time_ms(value)) is None:
                raise InvalidBatch(field.name, repr(value)[:80], field.limit)
            found[field.column] = time
        return found


class Pubrel(
    msgspec.Struct, frozen=True, tag_field="type", tag="PUBREL", rename=_NAMES
):
    msg_id: int


ConsumerPacket = Sub | Unsub | Pubrec | Pubcomp
PublisherPacket = Pub | Pubrel

_decode_consumer = msgspec.json.Decoder(ConsumerPacket).decode
_decode_publisher = msgspec.json.Decoder(PublisherPacket).decode


def parse_consumer(line: bytes) -> ConsumerPacket | LineRefusal:
    """The packet in a line of a consumer that has logged in."""
    try:
        line.decode()
        packet: ConsumerPacket = _decode_consumer(line)
    except NOT_JSON:
        return _refusal(line)
    return packet


def parse_publisher(line: bytes) -> PublisherPacket | LineRefusal:
    """The packet in a line of a publisher."""
    try:
        line.decode()
        packet: PublisherPacket = _decode_publisher(line)
    except NOT_JSON:
        return _refusal(line)
    return packet


def encode(packet: ConsumerPacket | PublisherPacket) -> bytes:
    """The line of a packet, as a client sends it."""
    return msgspec.json.encode(packet) + b"\r\n"


def _refusal(line: bytes) -> LineRefusal:
    # A decoder that knows what to expect may stop before it has seen all the text.
    if why_not_json(line):
        return LineRefusal.INVALID_JSON
    return LineRefusal.UNKNOWN_COMMAND
