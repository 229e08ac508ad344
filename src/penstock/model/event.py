"""The event: one published message, and the one list of its fields.

``FIELDS`` says of each field what the rooms have to know: what it is called on the
wires and in tables, its kind, default and limit, and whether a publisher may say it.
Columns, JSON, Arrow, Spark, SQL, exports and the command line are made from it. What
writes bytes (the frame, the native messages, the JSON of HTTP, lines) is explicit and
versioned, and ``tests/test_fields.py`` fails for each of them that lacks a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.model.moment import TIME_LIMIT

MAX_PRIORITY = 255
# An id, or a name, is repeated on every ack line: it should fit there many times over.
MAX_ID_BYTES = 256
# A header: the payload is a JSON object, and this field of it is the message in it.
MESSAGE_FIELD = "message-field"


# A Struct: made a million times, it costs a third of a frozen dataclass.
class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event of a topic. ``priority``: higher first. Times are milliseconds.

    From ``expires_ms`` on it is delivered to no new consumer, before ``not_before_ms``
    to none.
    """

    topic: str
    offset: int
    id: str
    timestamp_ms: int
    payload: bytes
    key: bytes | None = None
    priority: int = 0
    headers: Mapping[str, str] = {}
    parent: str | None = None
    producer: str | None = None
    expires_ms: int | None = None
    not_before_ms: int | None = None


Kind = Literal["text", "bytes", "level", "time", "map", "offset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of an event.

    name: on every wire that has a word of ours for it: JSON, HTTP, Arrow, SQL.
    attribute: of ``Event``.
    column: of ``Columns``, of a batch and of native messages; empty: it has none.
    kind: how it is written, checked and shown.
    blank: what stands in a column for an event that has none.
    limit: what a value has to be, in words.
    arrow: its type in Arrow.
    nullable: whether readers see a null where an event has none.
    settable: whether a publisher may say it.
    line: the field of the line gateway's events; None: it cannot be said there.
    jsonq: the field of a PUB of the JSON gateway, likewise.
    mqtt: what of MQTT 5 says it.
    table: its column in Spark and SQL.
    option: of ``penstock publish``.
    relative: of a time: what says it from now on, in programs.
    """

    name: str
    attribute: str
    column: str
    kind: Kind
    blank: object
    limit: str
    arrow: str
    nullable: bool = False
    settable: bool = True
    line: str | None = None
    jsonq: str | None = None
    mqtt: str | None = None
    table: str
    option: str | None = None
    relative: str = ""


_ID = f"printable text of 1 to {MAX_ID_BYTES} bytes, without spaces around it"

# In the order of their columns in a frame and in Arrow.
FIELDS = (
    Field(
        name="topic",
        attribute="topic",
        column="",
        kind="text",
        blank=None,
        limit="the name of a topic",
        arrow="string",
        settable=False,
        line="topic",
        jsonq="topic",
        mqtt="Topic Name",
        table="topic",
        option="TOPIC",
    ),
    Field(
        name="offset",
        attribute="offset",
        column="offsets",
        kind="offset",
        blank=0,
        limit="given by the broker",
        arrow="int64",
        settable=False,
        table="offset",
    ),
    Field(
        name="timestamp",
        attribute="timestamp_ms",
        column="timestamps",
        kind="time",
        blank=0,
        limit="given by the broker",
        arrow="timestamp[ms, tz=UTC]",
        settable=False,
        table="timestamp",
    ),
    Field(
        name="priority",
        attribute="priority",
        column="priorities",
        kind="level",
        blank=0,
        limit=f"a whole number from 0 to {MAX_PRIORITY}",
        arrow="uint8",
        line="priority",
        mqtt="User Property priority",
        table="priority",
        option="--priority",
    ),
    Field(
        name="id",
        attribute="id",
        column="ids",
        kind="text",
        blank=None,
        limit=_ID,
        arrow="string",
        line="id",
        table="id",
        option="--id",
    ),
    Field(
        name="key",
        attribute="key",
        column="keys",
        kind="bytes",
        blank=None,
        limit="bytes or None",
        arrow="binary",
        nullable=True,
        mqtt="User Property key",
        table="key",
        option="--key",
    ),
    Field(
        name="headers",
        attribute="headers",
        column="headers",
        kind="map",
        blank={},
        limit="mappings of valid Unicode text",
        arrow="map<string, string>",
        mqtt="User Property",
        table="headers",
        option="--header",
    ),
    Field(
        name="payload",
        attribute="payload",
        column="payloads",
        kind="bytes",
        blank=b"",
        limit="bytes",
        arrow="binary",
        line="msg",
        jsonq="msg",
        mqtt="Payload",
        table="value",
        option="PAYLOAD",
    ),
    Field(
        name="parent",
        attribute="parent",
        column="parents",
        kind="text",
        blank=None,
        limit=_ID,
        arrow="string",
        nullable=True,
        table="parent",
        option="--parent",
    ),
    Field(
        name="producer",
        attribute="producer",
        column="producers",
        kind="text",
        blank=None,
        limit="the name of who published it",
        arrow="string",
        nullable=True,
        settable=False,
        table="producer",
    ),
    Field(
        name="expires",
        attribute="expires_ms",
        column="expires",
        kind="time",
        blank=0,
        limit=TIME_LIMIT,
        arrow="timestamp[ms, tz=UTC]",
        nullable=True,
        line="expires",
        jsonq="expires",
        mqtt="Message Expiry Interval",
        table="expires",
        option="--expires-in",
        relative="expires_in",
    ),
    Field(
        name="not_before",
        attribute="not_before_ms",
        column="not_before",
        kind="time",
        blank=0,
        limit=TIME_LIMIT,
        arrow="timestamp[ms, tz=UTC]",
        nullable=True,
        line="not_before",
        jsonq="not_before",
        mqtt="User Property not_before",
        table="not_before",
        option="--at",
        relative="delay",
    ),
)
BY_NAME = {one.name: one for one in FIELDS}
# What an event may have besides its payload and what the broker gives it, and all of
# these with the producer: columns that stay away while no event has any.
SETTABLE = tuple(one for one in FIELDS if one.settable and one.name != "payload")
OPTIONAL = tuple(one for one in FIELDS if one in SETTABLE or one.name == "producer")
# Texts that a publisher may say, each of them what an id has to be (_ID); and times.
TEXTS = tuple(one for one in SETTABLE if one.kind == "text")
TIMES = tuple(one for one in SETTABLE if one.kind == "time")


def values_of(event: Event) -> dict[str, Any]:
    """What an event has, by the names of its fields."""
    # Any: the value of whichever field.
    values = {one.name: getattr(event, one.attribute) for one in FIELDS}
    values["headers"] = dict(event.headers)
    return values
