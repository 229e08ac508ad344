"""Epochs of a sink: staged piece by piece, stored all at once, and once only.

A piece is encoded when it is staged, so it is counted by its true size, and a commit
only puts headers in front of bytes that are there. Events get the time of their commit:
in a topic time goes on, however long an epoch was staged. What expires as its topic
says does so that long after its commit; before, the frame has the span, below zero, so
that a piece that comes again is the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.broker.broker import Broker
from penstock.broker.names import accepted_query
from penstock.broker.sinks import Epoch
from penstock.broker.staging import PartKey, StagedPiece
from penstock.delivery import letters
from penstock.errors import InvalidOption, LimitReached
from penstock.log import Batch, Column, Columns, TopicOptions, frame_of

# Header of a frame that is not stored yet; its true one comes with the commit.
_NO_ID = bytes(16)


def stage(
    broker: Broker,
    query: str,
    epoch: int,
    part: PartKey,
    number: int,
    topic: str,
    events: Columns,
    now_s: float,
    owner: str = "",
) -> bool:
    """Keep a piece of an epoch; False if the epoch is committed already.

    Without events the part is there, and empty. ``owner``: whose query it is now, if
    it has no owner. Raises InvalidName, ReservedName, InvalidOption, InvalidBatch,
    InvalidPayload, MissingStage, LimitReached.
    """
    accepted_query(query)
    named = ("epoch", "partition", "attempt", "piece")
    for name, value in zip(named, (epoch, *part, number), strict=True):
        if value < 0:
            raise InvalidOption(name, value, "0 or more")
    if broker.sinks.stored(query, epoch):
        return False
    piece = StagedPiece(None)
    if len(events):
        broker.check_topic(topic)
        events.check(broker.log.options.max_event_bytes)
        broker.check_payloads(topic, events.payloads)
        known = broker.log.has_topic(topic)
        _expire_later(
            events,
            broker.log.topic(topic).options if known else broker.options_for(topic),
        )
        batch = Batch.of(topic, frame_of(events, 0, _NO_ID))
        piece = StagedPiece(batch, broker.registry.gates.get(topic))
        if (payer := broker.accounts.payer) is not None:
            payer.admit({topic: events.size})  # as far as it is known by now
    broker.sinks.staging.put(query, epoch, part, number, piece, now_s, owner)
    broker.accounts.charge(len(events), events.size)
    return True


def commit(
    broker: Broker,
    query: str,
    epoch: int,
    parts: Sequence[PartKey],
    *,
    last: bool = False,
    note: str = "",
    raw: Iterable[letters.DeadLetter] = (),
    owner: str = "",
) -> Epoch | None:
    """Store what is staged of these parts, in one group; None if it was done before.

    ``last``: the query will have no other epoch. ``note`` and the dead letters ``raw``
    are in the same group. ``owner``: whose query it is now, if it has no owner.
    Raises InvalidName, InvalidOption, MissingStage, InvalidPayload, LimitReached and
    what the log raises: then nothing was done.
    """
    accepted_query(query)
    if len({partition for partition, _ in parts}) < len(parts):
        raise InvalidOption("parts", "a partition twice", "one attempt of each")
    sinks = broker.sinks
    if sinks.has(query, epoch):
        if sinks.stored(query, epoch):
            sinks.staging.drop_until(query, epoch)
        return None
    pieces = [
        piece for part in parts for piece in sinks.staging.pieces(query, epoch, part)
    ]
    at_ms = broker.log.now_ms()
    batches = [
        (piece.batch.topic, _at(piece.batch, at_ms))
        for piece in pieces
        if piece.batch is not None
    ]
    _check(broker, pieces, {topic for topic, _ in batches})
    payer, sizes = broker.accounts.payer, _sizes(batches)
    count = sum(len(batch) for _, batch in batches)
    owner = sinks.owner(query) or owner
    sinks.check_note(query, owner, note)
    filed = Columns([letter.encode() for letter in raw], at_ms)
    filed_bytes = filed.check(broker.log.options.max_event_bytes) if len(filed) else 0
    if payer is not None:
        payer.admit(sizes, filed_bytes)
    if len(filed):
        batches.append(
            (letters.TOPIC, Batch.of(letters.TOPIC, frame_of(filed, 0, _NO_ID)))
        )
    made = [name for name in sizes if not broker.log.has_topic(name)]
    if batches:
        broker.log.append_large(batches, broker.options_for)
    if payer is not None:
        for name in made:
            broker.registry.make(name, payer.user)
        payer.keep(sizes)
    # Events were charged when they were staged; a note is as much work as one.
    broker.accounts.charge(len(filed) + bool(note), filed_bytes + len(note))
    done = Epoch(query, epoch, at_ms, count, last, note, owner)
    sinks.commit(done)
    return done


def abort(broker: Broker, query: str, epoch: int) -> int:
    """Drop what is staged of an epoch, never what is committed; bytes set free."""
    return broker.sinks.staging.drop(query, epoch)


def _sizes(batches: Iterable[tuple[str, Batch]]) -> dict[str, int]:
    """Bytes for each topic."""
    sizes: dict[str, int] = {}
    for topic, batch in batches:
        sizes[topic] = sizes.get(topic, 0) + batch.header.length
    return sizes


def _expire_later(events: Columns, options: TopicOptions) -> None:
    """Have events expire as their topic says, counted from their commit; see _at."""
    if options.expires_s is not None:
        after_ms = int(options.expires_s * 1000)
        given = events.expires or [0] * len(events)
        events.expires = [one or -after_ms for one in given]


def _at(batch: Batch, at_ms: int) -> Batch:
    """The batch with another time; it has one for all events."""
    header = batch.header._replace(min_timestamp_ms=at_ms, max_timestamp_ms=at_ms)
    body = batch.body
    if Column.EXPIRES in batch.columns() and min(batch.expires()) < 0:
        body = memoryview(bytearray(body))
    done = Batch.whole(batch.topic, header, body)
    if body is not batch.body:
        found = done.region(Column.EXPIRES)
        assert found is not None, "it is among the columns"
        times = found[1].cast("q")
        for index, time_ms in enumerate(times):
            if time_ms < 0:
                times[index] = at_ms - time_ms
    return done


def _check(broker: Broker, pieces: Iterable[StagedPiece], topics: set[str]) -> None:
    """Raise what storing these pieces would be refused for by now."""
    new = [name for name in topics if not broker.log.has_topic(name)]
    if broker.log.topic_count + len(new) > broker.options.max_topics:
        raise LimitReached("topics", broker.options.max_topics, "max_topics")
    for piece in pieces:
        batch = piece.batch
        if batch is None or broker.registry.gates.get(batch.topic) is piece.gate:
            continue
        broker.check_payloads(batch.topic, batch.payloads())  # the schema is another
