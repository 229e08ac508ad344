"""Deliveries as messages of the native protocol: whole columns, no object per event.

A large portion of a page is a message of its own; small ones (by priority each event
is a portion) share one. The columns of a whole page are packed once for all
subscribers.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain, repeat
from sys import byteorder
from typing import Any

import msgspec

from penstock.broker import epochs
from penstock.broker.broker import Broker
from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.desk.access import check_owner, check_writes, owner_of
from penstock.errors import InvalidBatch
from penstock.gateway.native_pub import NativePublishing, check_given, columns_of
from penstock.log import Batch, Column
from penstock.model.event import FIELDS
from penstock.model.ids import event_id
from penstock.wire.native import EVENTS_COLUMNS, Events, Stage, encode


def stage(broker: Broker, message: Stage, by: NativePublishing, now_s: float) -> bool:
    """Keep the events of a message; False if their epoch is committed already.

    Raises what publishing them would be refused for, NotAllowed if the query is of
    another user, MissingStage, LimitReached.
    """
    check_owner(by.grants, broker, message.query)
    publish = message.publish
    if publish.payloads:
        by.grants.check_publish(publish.topic)
    else:  # an empty part is of no topic
        check_writes(by.grants, message.query)
    if publish.dedup_ids is not None:
        raise InvalidBatch("dedup ids", "given", "none: an epoch is once anyway")
    check_given(publish)
    events = columns_of(publish, now_s, by.producer)
    return epochs.stage(
        broker,
        message.query,
        message.epoch,
        (message.partition, message.attempt),
        message.piece,
        publish.topic,
        events,
        now_s,
        owner_of(by.grants),
    )


# From here on a portion is worth a message of its own.
LARGE = 64
_FORMAT = "native"

# In the order of EVENTS_COLUMNS.
EventsColumns = tuple[Sequence[object] | None, ...]
_BLANKS = {one.column: one.blank for one in FIELDS}
_DEFAULTS = [_BLANKS[name] for name in EVENTS_COLUMNS]
# All but offsets, timestamps, ids and payloads, which every event has.
_OPTIONAL = EVENTS_COLUMNS[4:]

_pack = msgspec.msgpack.Encoder().encode


def messages(channel: int, portions: list[Portion]) -> list[bytes]:
    """The portions as messages, in their order."""
    out: list[bytes] = []
    small: list[Portion] = []
    for portion in portions:
        if portion.hi - portion.lo < LARGE:
            small.append(portion)
            continue
        if small:
            out.append(_shared(channel, small))
            small = []
        out.append(_own(channel, portion))
    if small:
        out.append(_shared(channel, small))
    return out


def _own(channel: int, portion: Portion) -> bytes:
    page, lo, hi = portion.page, portion.lo, portion.hi
    tries = None if portion.tries == 1 else [portion.tries] * (hi - lo)
    if hi - lo == len(page):
        return _message(channel, tries, tuple(map(msgspec.Raw, _packed(page))))
    return _message(channel, tries, _columns(page, lo, hi))


def _shared(channel: int, portions: list[Portion]) -> bytes:
    if len(portions) == 1:
        page, lo, hi = portions[0].page, portions[0].lo, portions[0].hi
        tried = portions[0].tries
        tries = None if tried == 1 else [tried] * (hi - lo)
        return _message(channel, tries, _columns(page, lo, hi))
    counts = [portion.hi - portion.lo for portion in portions]
    tries = None
    if any(portion.tries != 1 for portion in portions):
        each = zip(portions, counts, strict=True)
        tries = [one.tries for one, count in each for _ in range(count)]
    parts = [_columns(one.page, one.lo, one.hi) for one in portions]
    joined = [
        _joined(column, counts, default)
        for column, default in zip(zip(*parts, strict=True), _DEFAULTS, strict=True)
    ]
    return _message(channel, tries, tuple(joined))


def _joined(
    columns: Sequence[Sequence[object] | None], counts: list[int], default: object
) -> list[object] | None:
    if all(column is None for column in columns):
        return None
    filled = [
        repeat(default, count) if column is None else column
        for column, count in zip(columns, counts, strict=True)
    ]
    return list(chain.from_iterable(filled))


def _message(channel: int, tries: list[int] | None, columns: tuple[Any, ...]) -> bytes:
    # Any: columns are lists of what Events says, or those lists packed already.
    offsets, *others = columns
    return encode(Events(channel, offsets, tries, *others))


def _packed(page: Page) -> list[bytes]:
    known = page.rendered.get(_FORMAT)
    if known is None:
        columns = _columns(page, 0, len(page))
        known = page.rendered[_FORMAT] = [_pack(column) for column in columns]
    return known


def _columns(page: Page, lo: int, hi: int) -> EventsColumns:
    at_hand = page.columns
    if at_hand is not None:
        given = [getattr(at_hand, name) for name in _OPTIONAL]
        return (
            list(range(page.base + lo, page.base + hi)),
            at_hand.timestamps[lo:hi],
            page.ids[lo:hi],
            at_hand.payloads[lo:hi],
            *[None if column is None else column[lo:hi] for column in given],
        )
    whole = page.batch
    batch = Batch(whole.topic, whole.body, whole.header, lo, hi)
    has = whole.columns()
    return (
        batch.offsets(),
        batch.timestamps(),
        page.ids[lo:hi] if Column.ID in has else _generated(batch),
        page.payloads[lo:hi],
        *map(batch.given, _OPTIONAL),
    )


def _generated(batch: Batch) -> list[str]:
    """Ids that no client gave, many at once: only the counter at their end differs."""
    if batch.ids_by_time:
        return batch.ids()
    text = event_id(batch.header.id_base, 0)
    fixed, first = text[:-8], int(text[-8:], 16) - batch.header.base_offset
    offsets = batch.offsets()
    if first + offsets[-1] >> 32:
        return batch.ids()
    counters = array("I", [first + offset for offset in offsets])
    if byteorder == "little":
        counters.byteswap()
    # A few calls for all of them: [f"{fixed}{n:08x}" for n in …] takes twice as long.
    digits = counters.tobytes().hex("\n", 4).split("\n")
    return (fixed + f"\n{fixed}".join(digits)).split("\n")
