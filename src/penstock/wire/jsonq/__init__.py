"""The JSON protocol: QoS 2 in lines of JSON, consumers and publishers apart."""

from __future__ import annotations

from penstock.wire.jsonq import replies
from penstock.wire.jsonq.login import Login, parse_login
from penstock.wire.jsonq.packets import (
    ConsumerPacket,
    LineRefusal,
    Pub,
    Pubcomp,
    PublisherPacket,
    Pubrec,
    Pubrel,
    Sub,
    Unsub,
    encode,
    parse_consumer,
    parse_publisher,
)

__all__ = [
    "ConsumerPacket",
    "Login",
    "Pub",
    "Pubcomp",
    "PublisherPacket",
    "Pubrec",
    "Pubrel",
    "LineRefusal",
    "Sub",
    "Unsub",
    "encode",
    "parse_consumer",
    "parse_login",
    "parse_publisher",
    "replies",
]
