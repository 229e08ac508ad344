"""The messages of the native protocol.

Each is a MessagePack array: its number, then its fields in this order. Many events
travel in one message, in columns: entry ``i`` of every list belongs to event ``i``,
and a column that all events leave at the default is None.

``seq`` is chosen by the client and comes back in the answer (Published, Subscribed,
Answer or RequestRefused). ``channel`` is chosen by the server for a subscription and
stands for it on this connection. Fields are only added, at the end, with a default.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

# Offsets that one message names: of a window, each sent twice.
MAX_OFFSETS = 200_000

OffsetList = Annotated[list[int], Meta(max_length=MAX_OFFSETS)]


class Hello(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """First message of a client. Answered by Welcome, or RequestRefused (seq 0)."""

    user: str | None
    password: str | None
    name: str  # of the program, for people who look at connections
    token: str | None = None  # instead of user and password: one of scope admin


class Publish(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """Events for one topic. Answered by Published when they are durable.

    They are stored all or none, unless ``units`` says how many of them, in their order,
    are whole for themselves: each unit is stored, or refused, by itself. Servers of
    before pass over it.
    """

    seq: int
    topic: str
    payloads: list[bytes]
    ids: list[str | None] | None = None
    keys: list[bytes | None] | None = None
    priorities: list[int] | None = None
    headers: list[dict[str, str]] | None = None
    parents: list[str | None] | None = None
    dedup_ids: list[str | None] | None = None
    expires: list[int] | None = None  # milliseconds, 0 for never
    not_before: list[int] | None = None  # milliseconds, 0 for at once
    units: list[int] | None = None  # at least 1 each, all events together


# Columns that must be as long as ``payloads`` if they are there.
PUBLISH_COLUMNS = Publish.__struct_fields__[3:-1]
_NIL = msgspec.Raw(b"\xc0")


class LargePublish(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """A Publish with its columns in one piece each, which are not taken apart yet."""

    seq: msgspec.Raw
    topic: msgspec.Raw
    payloads: msgspec.Raw
    ids: msgspec.Raw = _NIL
    keys: msgspec.Raw = _NIL
    priorities: msgspec.Raw = _NIL
    headers: msgspec.Raw = _NIL
    parents: msgspec.Raw = _NIL
    dedup_ids: msgspec.Raw = _NIL
    expires: msgspec.Raw = _NIL
    not_before: msgspec.Raw = _NIL
    units: msgspec.Raw = _NIL


class PlainPublish(msgspec.Struct, array_like=True, frozen=True, tag=2, gc=False):
    """A Publish that has payloads, perhaps ids, and nothing else, as most have."""

    seq: int
    topic: str
    payloads: Annotated[list[bytes], Meta(min_length=1)]
    ids: list[str | None] | None = None
    keys: None = None
    priorities: None = None
    headers: None = None
    parents: None = None
    dedup_ids: None = None
    expires: None = None
    not_before: None = None
    units: None = None


class Subscribe(msgspec.Struct, array_like=True, frozen=True, tag=3):
    """Answered by Subscribed; then Events follow. No subscriber: a temporary one."""

    seq: int
    topic: str
    subscriber: str | None = None
    start: str | int = "latest"  # latest, earliest, an offset, time:<milliseconds>
    order: str = "log"  # log, priority, key
    window: int = 1000
    ack_timeout_s: float | None = None
    tries: int | None = None
    auto_ack: bool = False
    backoff_s: float = 0.0
    backoff_factor: float = 2.0
    max_backoff_s: float = 300.0
    jitter: float = 0.0  # from 0 to 1
    in_order: bool = False
    prefetch: int = 0  # unsettled events that this consumer may have; 0: a fair share


class Settle(msgspec.Struct, array_like=True, frozen=True, tag=4):
    """These events are done with. No answer."""

    channel: int
    offsets: OffsetList


class Refuse(msgspec.Struct, array_like=True, frozen=True, tag=5):
    """This try failed: the subscription's policy decides what follows. No answer.

    Or ``final`` does: then no other try can be better, and it is a dead letter.
    """

    channel: int
    offset: int
    error: str
    kind: str = ""  # of the error, such as ValueError
    traceback: str = ""
    duration_s: float | None = None
    final: bool = False


class Unsubscribe(msgspec.Struct, array_like=True, frozen=True, tag=6):
    """Answered by Answer, then no more Events on the channel.

    ``unbegun``: offsets that were sent and never looked at: that was no try of them.
    """

    seq: int
    channel: int
    unbegun: OffsetList = []


class Ask(msgspec.Struct, array_like=True, frozen=True, tag=7):
    """A question or order to the desk. Answered by Answer or RequestRefused."""

    seq: int
    verb: str
    arguments: dict[str, object]


class LargeAsk(msgspec.Struct, array_like=True, frozen=True, tag=7):
    """An Ask with many bytes of arguments, which are not taken apart yet."""

    seq: int
    verb: str
    arguments: msgspec.Raw


class Finish(msgspec.Struct, array_like=True, frozen=True, tag=8):
    """These events are done with, and this is what came of it: all or nothing.

    Answered by Answer when both are durable: true, or false if the events are not
    with this connection any more; then nothing was published.
    """

    seq: int
    channel: int
    offsets: OffsetList
    publishes: list[Publish]  # their seq counts for nothing, dedup ids are refused


class Stage(msgspec.Struct, array_like=True, frozen=True, tag=9):
    """Events that wait in memory until their epoch is committed, all of it at once.

    A part is what one try of a task writes, in pieces that are numbered from 0 on; one
    that is there already may come again. Answered by Answer: true, or false if the
    epoch is committed already, and nothing was kept.
    """

    seq: int
    query: str
    epoch: int
    partition: int
    attempt: int
    publish: Publish  # its seq counts for nothing, dedup ids are refused
    piece: int = 0


class Fetch(msgspec.Struct, array_like=True, frozen=True, tag=10):
    """A range of a topic, as it is stored. Answered by Fetched."""

    seq: int
    topic: str
    offset: int
    end: int  # behind the last that is wanted
    max_bytes: int


class Prefetch(msgspec.Struct, array_like=True, frozen=True, tag=11):
    """From now on the channel may have so many unsettled events. No answer.

    For servers that say ``max_message_bytes``: those of before do not know it.
    """

    channel: int
    events: int


class Welcome(msgspec.Struct, array_like=True, frozen=True, tag=64):
    """The client may go on. ``version`` is the server's."""

    version: str
    max_message_bytes: int = 0  # that the server takes; 0 if it does not say


class RefusedUnit(msgspec.Struct, array_like=True, frozen=True):
    """Why a unit of a Publish was not stored, as RequestRefused would say it."""

    unit: int
    error: str
    text: str
    hint: str = ""
    fields: dict[str, object] | None = None


class Published(msgspec.Struct, array_like=True, frozen=True, tag=65):
    """The events are durable. ``offsets``: the first, if the others count on.

    With ``refused`` it is so for the units that are not in it: ``offsets``, and ``ids``
    if there are any, have an entry for each of their events.
    """

    seq: int
    offsets: int | list[int]
    ids: list[str] | None = None
    refused: list[RefusedUnit] | None = None


class Subscribed(msgspec.Struct, array_like=True, frozen=True, tag=66):
    """``position`` is the first offset not delivered yet."""

    seq: int
    channel: int
    position: int


class Events(msgspec.Struct, array_like=True, frozen=True, tag=67):
    """Deliveries on a channel."""

    channel: int
    offsets: list[int]
    tries: list[int] | None  # None: the first try of all of them
    timestamps: list[int]
    ids: list[str]
    payloads: list[bytes]
    priorities: list[int] | None = None
    keys: list[bytes | None] | None = None
    headers: list[dict[str, str]] | None = None
    parents: list[str | None] | None = None
    producers: list[str | None] | None = None
    expires: list[int] | None = None  # milliseconds, 0 for never
    not_before: list[int] | None = None  # milliseconds, 0 for at once


# Columns of Events by the names that they have in a batch.
EVENTS_COLUMNS = tuple(
    name for name in Events.__struct_fields__ if name not in ("channel", "tries")
)


class Answer(msgspec.Struct, array_like=True, frozen=True, tag=68):
    """The result of an Ask or Unsubscribe."""

    seq: int
    result: object


class RequestRefused(msgspec.Struct, array_like=True, frozen=True, tag=69):
    """What was asked with ``seq`` was not done. ``error`` is the class in errors.py."""

    seq: int
    error: str
    text: str
    hint: str = ""
    fields: dict[str, object] | None = None  # of that class, as far as they are told


class Ended(msgspec.Struct, array_like=True, frozen=True, tag=70):
    """The channel is closed by the server."""

    channel: int
    reason: str


class ChannelMoved(msgspec.Struct, array_like=True, frozen=True, tag=72):
    """The subscription was moved: Events so far count for nothing.

    It goes on at another channel, so that what is still said of them is not taken for
    an answer to those that follow.
    """

    channel: int
    to: int


class Fetched(msgspec.Struct, array_like=True, frozen=True, tag=71):
    """Whole batch frames; the first may begin in front of what is wanted.

    ``next`` is where to go on; the end of the range or of the topic when that is all.
    """

    seq: int
    frames: list[bytes]
    next: int
    start_offset: int  # of the topic, now
    end_offset: int


# What holds no events, and nothing of any shape.
Plain = Hello | Subscribe | Settle | Refuse | Unsubscribe | Fetch | Prefetch
ClientMessage = Plain | Publish | Ask | Finish | Stage
# What a server makes of it.
Received = ClientMessage | LargeAsk
ServerMessage = (
    Welcome
    | Published
    | Subscribed
    | Events
    | Answer
    | RequestRefused
    | Ended
    | Fetched
    | ChannelMoved
)
