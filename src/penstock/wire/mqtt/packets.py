"""Packets, as they are when all of their bytes are good.

PUBLISHes and their acknowledgements come in runs: many of them are one packet here,
with a column for what differs. Properties exist in version 5 only; before, and when
there are none, they are empty.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from penstock.wire.mqtt.kinds import PacketKind
from penstock.wire.mqtt.properties import Properties


class WillPacket(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the server publishes if the connection ends badly."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = {}


class Connect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """First packet of a client. ``version``: 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.0."""

    version: int
    client_id: str
    clean_start: bool
    keep_alive: int
    user: str | None = None
    password: bytes | None = None
    will: WillPacket | None = None
    properties: Properties = {}


class Connack(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer to Connect."""

    session_present: bool
    reason: int
    properties: Properties = {}


class Publishes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Neighbours with the same flags and topic; one with properties is alone.

    ``packet_ids`` is None with QoS 0. ``topic`` is empty only if the properties have
    a topic alias.
    """

    topic: str
    qos: int
    retain: bool
    dup: bool
    payloads: list[bytes]
    packet_ids: list[int] | None
    properties: Properties | None = None


class Acks(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Neighbours of one kind, PUBACK to PUBCOMP, that say no more than: success."""

    kind: PacketKind
    packet_ids: list[int]


class Ack(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One that tells of a failure, or has properties."""

    kind: PacketKind
    packet_id: int
    reason: int
    properties: Properties = {}


class RequestedFilter(NamedTuple):
    """A filter that a client subscribes to, and how."""

    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class SubscribePacket(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    packet_id: int
    filters: list[RequestedFilter]
    properties: Properties = {}


class Suback(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer to SUBSCRIBE: a reason for each filter, which is the QoS if good."""

    packet_id: int
    reasons: list[int]
    properties: Properties = {}


class UnsubscribePacket(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    packet_id: int
    filters: list[str]
    properties: Properties = {}


class Unsuback(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer to UNSUBSCRIBE: a reason for each filter, none before version 5."""

    packet_id: int
    reasons: list[int]
    properties: Properties = {}


class Pingreq(msgspec.Struct, frozen=True, gc=False):
    """Are you there?"""


class Pingresp(msgspec.Struct, frozen=True, gc=False):
    """Yes."""


class Disconnect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Last packet of a client, or of a server of version 5."""

    reason: int = 0
    properties: Properties = {}


class Auth(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A step of a login that has several."""

    reason: int = 0
    properties: Properties = {}


ClientPacket = (
    Connect
    | Publishes
    | Acks
    | Ack
    | SubscribePacket
    | UnsubscribePacket
    | Pingreq
    | Disconnect
    | Auth
)
ServerPacket = (
    Connack | Publishes | Acks | Ack | Suback | Unsuback | Pingresp | Disconnect | Auth
)
Packet = ClientPacket | ServerPacket
