"""Reason codes of MQTT 5, which packet may carry which, and what older versions say.

Numbers below 0x80 are successes, the others failures. Every packet has its own choice
of them: what is not in the table of a packet is a protocol error there.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from penstock.errors import RemoteProtocolError


class Reason(IntEnum):
    """Every reason code, by its name in the specification."""

    SUCCESS = 0x00
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    REAUTHENTICATE = 0x19
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_IDENTIFIER_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_IDENTIFIER_IN_USE = 0x91
    PACKET_IDENTIFIER_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2


class Malformed(RemoteProtocolError):
    """The peer sent what MQTT does not allow: ``reason`` is what to answer."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__("mqtt", text)
        self.args = (reason, text)
        self.reason = reason


FIRST_FAILURE: Final = 0x80

# MQTT-3.4.2-1, MQTT-3.5.2-1: of PUBACK and PUBREC.
RECEIVED: Final = frozenset(
    {
        Reason.SUCCESS,
        Reason.NO_MATCHING_SUBSCRIBERS,
        Reason.UNSPECIFIED_ERROR,
        Reason.IMPLEMENTATION_SPECIFIC_ERROR,
        Reason.NOT_AUTHORIZED,
        Reason.TOPIC_NAME_INVALID,
        Reason.PACKET_IDENTIFIER_IN_USE,
        Reason.QUOTA_EXCEEDED,
        Reason.PAYLOAD_FORMAT_INVALID,
    }
)
# MQTT-3.6.2-1, MQTT-3.7.2-1: of PUBREL and PUBCOMP.
RELEASED: Final = frozenset({Reason.SUCCESS, Reason.PACKET_IDENTIFIER_NOT_FOUND})
# MQTT-3.2.2-8
CONNACK: Final = frozenset(
    {
        Reason.SUCCESS,
        Reason.UNSPECIFIED_ERROR,
        Reason.MALFORMED_PACKET,
        Reason.PROTOCOL_ERROR,
        Reason.IMPLEMENTATION_SPECIFIC_ERROR,
        Reason.UNSUPPORTED_PROTOCOL_VERSION,
        Reason.CLIENT_IDENTIFIER_NOT_VALID,
        Reason.BAD_USER_NAME_OR_PASSWORD,
        Reason.NOT_AUTHORIZED,
        Reason.SERVER_UNAVAILABLE,
        Reason.SERVER_BUSY,
        Reason.BANNED,
        Reason.BAD_AUTHENTICATION_METHOD,
        Reason.TOPIC_NAME_INVALID,
        Reason.PACKET_TOO_LARGE,
        Reason.QUOTA_EXCEEDED,
        Reason.PAYLOAD_FORMAT_INVALID,
        Reason.RETAIN_NOT_SUPPORTED,
        Reason.QOS_NOT_SUPPORTED,
        Reason.USE_ANOTHER_SERVER,
        Reason.SERVER_MOVED,
        Reason.CONNECTION_RATE_EXCEEDED,
    }
)
# MQTT-3.9.3-2
SUBACK: Final = frozenset(
    {
        Reason.SUCCESS,
        Reason.GRANTED_QOS_1,
        Reason.GRANTED_QOS_2,
        Reason.UNSPECIFIED_ERROR,
        Reason.IMPLEMENTATION_SPECIFIC_ERROR,
        Reason.NOT_AUTHORIZED,
        Reason.TOPIC_FILTER_INVALID,
        Reason.PACKET_IDENTIFIER_IN_USE,
        Reason.QUOTA_EXCEEDED,
        Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
        Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
        Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
    }
)
# MQTT-3.11.3-2
UNSUBACK: Final = frozenset(
    {
        Reason.SUCCESS,
        Reason.NO_SUBSCRIPTION_EXISTED,
        Reason.UNSPECIFIED_ERROR,
        Reason.IMPLEMENTATION_SPECIFIC_ERROR,
        Reason.NOT_AUTHORIZED,
        Reason.TOPIC_FILTER_INVALID,
        Reason.PACKET_IDENTIFIER_IN_USE,
    }
)
_DISCONNECT_BOTH: Final = frozenset(
    {
        Reason.SUCCESS,
        Reason.UNSPECIFIED_ERROR,
        Reason.MALFORMED_PACKET,
        Reason.PROTOCOL_ERROR,
        Reason.IMPLEMENTATION_SPECIFIC_ERROR,
        Reason.TOPIC_NAME_INVALID,
        Reason.RECEIVE_MAXIMUM_EXCEEDED,
        Reason.TOPIC_ALIAS_INVALID,
        Reason.PACKET_TOO_LARGE,
        Reason.MESSAGE_RATE_TOO_HIGH,
        Reason.QUOTA_EXCEEDED,
        Reason.ADMINISTRATIVE_ACTION,
        Reason.PAYLOAD_FORMAT_INVALID,
    }
)
# MQTT-3.14.2-1, by who sends it.
CLIENT_DISCONNECT: Final = _DISCONNECT_BOTH | {Reason.DISCONNECT_WITH_WILL}
SERVER_DISCONNECT: Final = _DISCONNECT_BOTH | {
    Reason.NOT_AUTHORIZED,
    Reason.SERVER_BUSY,
    Reason.SERVER_SHUTTING_DOWN,
    Reason.BAD_AUTHENTICATION_METHOD,
    Reason.KEEP_ALIVE_TIMEOUT,
    Reason.SESSION_TAKEN_OVER,
    Reason.TOPIC_FILTER_INVALID,
    Reason.RETAIN_NOT_SUPPORTED,
    Reason.QOS_NOT_SUPPORTED,
    Reason.USE_ANOTHER_SERVER,
    Reason.SERVER_MOVED,
    Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED,
    Reason.CONNECTION_RATE_EXCEEDED,
    Reason.MAXIMUM_CONNECT_TIME,
    Reason.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED,
    Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED,
}
# MQTT-3.15.2-1, by who sends it.
CLIENT_AUTH: Final = frozenset({Reason.CONTINUE_AUTHENTICATION, Reason.REAUTHENTICATE})
SERVER_AUTH: Final = frozenset({Reason.SUCCESS, Reason.CONTINUE_AUTHENTICATION})

# Return codes of CONNACK in 3.1 and 3.1.1; a failure that has none is NOT_AUTHORIZED.
OLD_CONNACK: Final = {
    Reason.SUCCESS: 0,
    Reason.UNSUPPORTED_PROTOCOL_VERSION: 1,
    Reason.CLIENT_IDENTIFIER_NOT_VALID: 2,
    Reason.SERVER_UNAVAILABLE: 3,
    Reason.SERVER_BUSY: 3,
    Reason.SERVER_SHUTTING_DOWN: 3,
    Reason.QUOTA_EXCEEDED: 3,
    Reason.USE_ANOTHER_SERVER: 3,
    Reason.SERVER_MOVED: 3,
    Reason.CONNECTION_RATE_EXCEEDED: 3,
    Reason.BAD_USER_NAME_OR_PASSWORD: 4,
    Reason.NOT_AUTHORIZED: 5,
}
OLD_NOT_AUTHORIZED: Final = 5
# What each return code was sent for, for those who read it.
OLD_REASONS: Final = (
    Reason.SUCCESS,
    Reason.UNSUPPORTED_PROTOCOL_VERSION,
    Reason.CLIENT_IDENTIFIER_NOT_VALID,
    Reason.SERVER_UNAVAILABLE,
    Reason.BAD_USER_NAME_OR_PASSWORD,
    Reason.NOT_AUTHORIZED,
)


def checked(code: int, allowed: frozenset[Reason], packet: str) -> Reason:
    """``code`` as the reason it is; raises Malformed if ``packet`` cannot carry it."""
    if code not in allowed:
        text = f"{packet} has reason 0x{code:02x}, which it cannot have"
        raise Malformed(Reason.PROTOCOL_ERROR, text)
    return Reason(code)
