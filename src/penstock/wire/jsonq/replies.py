"""Everything the JSON protocol sends, word for word, with its line end.

Keys stand in alphabetical order, as they always did.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from penstock.wire.json_text import one_line
from penstock.wire.jsonq.packets import LineRefusal

PLEASE_LOGIN: Final = b"Please login!\r\n"
LOGGED_IN: Final = b"Succesfully logged in!\r\n"
OK: Final = b"OK\r\n"
INVALID_JSON: Final = LineRefusal.INVALID_JSON.value
UNKNOWN_COMMAND: Final = LineRefusal.UNKNOWN_COMMAND.value
UNKNOWN_MESSAGE: Final = b"UNKNOWN MESSAGE\r\n"

HELP: Final = b"help"
LOGIN_HELP: Final = (
    b"log <user>                               log in\r\n"
    b"log <user> <password>                    where the server has users\r\n"
)
CONSUMER_HELP: Final = (
    b'{"type":"SUB","topic":T}                 get the messages of a topic\r\n'
    b'{"type":"UNSUB","topic":T}               get no more; the place is kept\r\n'
    b'{"type":"PUBREC","msgId":n,"topic":T}    a PUB has come: PUBREL follows\r\n'
    b'{"type":"PUBCOMP","msgId":n,"topic":T}   a PUBREL has come: the next follows\r\n'
)
PUBLISHER_HELP: Final = (
    b'{"type":"PUB","topic":T,"msg":M}         stored as pending: PUBREC follows\r\n'
    b'{"type":"PUBREL","msgId":n}              publish it: PUBCOMP follows\r\n'
)

_CACHED_TOPICS = 1024


def error(text: str) -> bytes:
    """``ERROR "text"``: the connection ends after it."""
    return b"ERROR %b\r\n" % msgspec.json.encode(text)


LOGIN_FAILED: Final = error("Unknown login error")
NAME_TAKEN: Final = error("A connection for this username already exists")


def pub(
    topic: str, msg_id: int, payload: bytes, times: Mapping[str, int] | None = None
) -> bytes:
    """To a consumer: the event, with the times that it has."""
    head = b'{"msg":%b,"msgId":%d' % (one_line(payload), msg_id)
    for name, time in (times or {}).items():
        head += b',"%b":%d' % (name.encode(), time)
    return head + _pub_tail(topic)


def pubrel(msg_id: int) -> bytes:
    """To a consumer: its PUBREC was received."""
    return b'{"msgId":%d,"type":"PUBREL"}\r\n' % msg_id


def pubrec(msg_id: int) -> bytes:
    """To a publisher: its PUB is pending under this id."""
    return b'{"msgId":%d,"type":"PUBREC"}\r\n' % msg_id


def pubcomp(msg_id: int) -> bytes:
    """To a publisher: its PUB is in the topic."""
    return b'{"msgId":%d,"type":"PUBCOMP"}\r\n' % msg_id


@lru_cache(_CACHED_TOPICS)
def _pub_tail(topic: str) -> bytes:
    return b',"topic":%b,"type":"PUB"}\r\n' % msgspec.json.encode(topic)
