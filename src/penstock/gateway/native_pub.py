"""Publishing on a native connection: a run of messages is stored in one step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, repeat
from operator import itemgetter
from typing import Any, cast

from penstock.access.grants import OPEN
from penstock.broker.broker import Broker
from penstock.broker.finish import finish
from penstock.broker.names import check_ids
from penstock.broker.promised import is_lost
from penstock.broker.publishing import Accepted, StoredPiece, take_out_failed
from penstock.delivery.consumer import Consumer
from penstock.errors import InvalidBatch, PenstockError, WriteFailed
from penstock.gateway.outbox import Outbox
from penstock.log import Columns
from penstock.model.event import SETTABLE, TEXTS
from penstock.model.remote_errors import public_fields
from penstock.wire.native import (
    PUBLISH_COLUMNS,
    Answer,
    Finish,
    Publish,
    Published,
    PublishRun,
    RefusedUnit,
    RequestRefused,
    encode,
    encode_published,
)

# What is told of what was done and then lost.
_LOST = (WriteFailed.__name__, "not stored: the write failed, try again")


class NativePublishing:
    """Publishes in the name of ``producer``; answers go to the outbox."""

    def __init__(self, broker: Broker, outbox: Outbox[Any]) -> None:
        self.producer: str | None = None
        self.grants = OPEN
        self._broker = broker
        self._outbox = outbox

    def publish(self, messages: list[Publish], now_s: float) -> None:
        """Publish messages that came one behind the other."""
        at, end = 0, len(messages)
        while at < end:
            behind = at
            while behind < end and _joins(messages[behind]):
                behind += 1
            if behind - at > 1:
                self._run(_run_of(messages[at:behind]), messages[at:behind], now_s)
                at = behind
            else:
                self._one(messages[at], now_s)
                at += 1

    def run(self, run: PublishRun, now_s: float) -> None:
        """Publish payloads, with ids or without, that came one behind the other."""
        self._run(run, (), now_s)

    def _run(self, run: PublishRun, messages: Sequence[Publish], now_s: float) -> None:
        """One batch, whatever topics they are for, and an answer to each message.

        ``messages``: the same, if they have more than ``run`` says.
        """
        try:
            outcome = self._store_run(run, messages, now_s)
        except PenstockError:
            for one in messages or map(Publish, *run):
                self._one(one, now_s)  # each gets its own, and the good ones through
            return
        if not outcome.refused and len(outcome.pieces) == 1:
            (piece,) = outcome.pieces
            data = encode_published(*_first_of_each(run, piece))
            self._outbox.after(
                piece.group, data, lambda: b"".join(map(not_stored, run.seqs))
            )
            return
        groups = {unit: one.group for one in outcome.pieces for unit in one.units}
        answers = {
            unit: problem(run.seqs[unit], error)
            for unit, error in outcome.refused.items()
        }
        for piece in outcome.pieces:
            rows = zip(piece.units, *_first_of_each(run, piece), strict=True)
            for unit, seq, offset, id_ in rows:
                answers[unit] = encode_published([seq], [offset], [id_])
        places = range(len(run.seqs))
        self._outbox.each(
            [answers[unit] for unit in places],
            [groups.get(unit, 0) for unit in places],
            lambda unit: not_stored(run.seqs[unit]),
        )

    def _store_run(
        self, run: PublishRun, messages: Sequence[Publish], now_s: float
    ) -> Accepted:
        topics, counts = run.topics, list(map(len, run.payloads))
        one_topic = topics.count(topics[0]) == len(topics)
        for topic in topics[:1] if one_topic else dict.fromkeys(topics):
            self.grants.check_publish(topic)
        columns = Columns(
            chain.from_iterable(run.payloads), int(now_s * 1000), producer=self.producer
        )
        columns.ids = _joined(run.ids, counts, None)
        for field in SETTABLE if messages else ():
            given = [getattr(one, field.column) for one in messages]
            setattr(columns, field.column, _joined(given, counts, field.blank))
        for field in TEXTS:
            if (texts := getattr(columns, field.column)) is not None:
                check_ids(field.name, texts)
        single = len(columns) == len(counts)
        units = () if single else counts
        if one_topic:
            return self._broker.accept(topics[0], columns, units=units)
        if not single:
            topics = list(chain.from_iterable(map(repeat, topics, counts)))
        return self._broker.accept_rows(topics, columns, units=units)

    def _one(self, message: Publish, now_s: float) -> None:
        try:
            self._publish(message, now_s)
        except PenstockError as error:
            self._outbox.now(problem(message.seq, error))

    def _publish(self, message: Publish, now_s: float) -> None:
        if message.units is None:
            outcome = self._store(message, [len(message.payloads)], now_s)
            outcome.whole()
        else:
            outcome = self._units(message, message.units, now_s)
        if outcome.refused or len(outcome.pieces) > 1:
            self._divided(message, outcome)
            return
        (piece,) = outcome.pieces
        if piece.appended is None:
            answer = encode(Published(message.seq, list(piece.offsets)))
        else:
            ids = [piece.appended.generated_id(0)]
            answer = encode(Published(message.seq, piece.offsets[0], ids))
        self._outbox.after(piece.group, answer, not_stored(message.seq))

    def _store(self, message: Publish, units: list[int], now_s: float) -> Accepted:
        self._check(message)
        return self._broker.accept(
            message.topic,
            columns_of(message, now_s, self.producer),
            units=units,
            dedup_ids=message.dedup_ids,
            now_s=now_s,
        )

    def _units(self, message: Publish, units: list[int], now_s: float) -> Accepted:
        """Store the units that can be, in their order."""
        try:
            return self._store(message, units, now_s)
        except InvalidBatch:
            pass  # of some of them, which is not known before they are looked at
        outcome = Accepted([])
        for unit, part in enumerate(_parts(message, units)):
            try:
                piece = self._store(part, [units[unit]], now_s).whole()
            except PenstockError as error:
                outcome.refused[unit] = error
            else:
                outcome.pieces.append(replace(piece, units=[unit]))
        take_out_failed(self._broker, outcome)
        return outcome

    def _divided(self, message: Publish, outcome: Accepted) -> None:
        """Answer for units of which some were refused, or not stored together."""
        units, log = message.units or [], self._broker.log

        def lost() -> bytes:
            refused: dict[int, PenstockError | None] = {**outcome.refused}
            for piece in outcome.pieces:
                if is_lost(log, piece.group):
                    refused.update(dict.fromkeys(piece.units))
            return _of_units(message.seq, units, outcome.pieces, refused)

        answer = _of_units(message.seq, units, outcome.pieces, outcome.refused)
        if outcome.pieces:
            self._outbox.after(outcome.group, answer, lost)
        else:
            self._outbox.now(answer)

    def finish(self, message: Finish, consumer: Consumer | None, now_s: float) -> None:
        """Settle and publish in one step; raises what publishing is refused for."""
        held = consumer is not None and all(map(consumer.holds, message.offsets))
        if consumer is None or not held:
            self._outbox.now(encode(Answer(message.seq, False)))
            return
        events: dict[str, Columns] = {}
        for one in message.publishes:
            if one.dedup_ids is not None:
                raise InvalidBatch("dedup ids", "given", "none: it is once anyway")
            self._check(one)
            columns = columns_of(one, now_s, self.producer)
            # The subscriber's, as what it handled is the cause.
            columns.producers = [consumer.subscription.subscriber] * len(columns)
            if one.topic in events:
                events[one.topic].extend(columns)
            else:
                events[one.topic] = columns
        finish(self._broker, consumer, message.offsets, events)
        answer = encode(Answer(message.seq, True))
        self._outbox.after(self._broker.promised, answer, not_stored(message.seq))

    def _check(self, message: Publish) -> None:
        self.grants.check_publish(message.topic)
        check_given(message)


def _joins(message: Publish) -> bool:
    """Whether it may be stored together with others, and answered like them."""
    return (
        message.dedup_ids is None and message.units is None and bool(message.payloads)
    )


def _run_of(messages: Sequence[Publish]) -> PublishRun:
    rows = [(one.seq, one.topic, one.payloads, one.ids) for one in messages]
    return PublishRun(*zip(*rows, strict=True))


def _joined(
    given: Sequence[list[Any] | None], counts: list[int], blank: object
) -> list[Any] | None:
    """One column of what each message has of it; None if none has any."""
    # Any: the values of whichever field.
    missing = given.count(None)
    if missing == len(given):
        return None
    if missing:
        pairs = zip(given, counts, strict=True)
        parts = [[blank] * count if one is None else one for one, count in pairs]
        return list(chain.from_iterable(parts))
    return list(chain.from_iterable(cast("Sequence[list[Any]]", given)))


def _first_of_each(
    run: PublishRun, piece: StoredPiece
) -> tuple[Sequence[int], Sequence[int], Sequence[str | None]]:
    """Of the messages of a piece: seqs, their first offsets, and the ids to be told.

    An id is told where one was generated.
    """
    units, offsets, appended = piece.units, piece.offsets, piece.appended
    assert appended is not None, "no ids were given to tell them by"
    places: Sequence[int] = range(len(units))
    if len(offsets) > len(units):
        counts = [len(run.payloads[unit]) for unit in units]
        places = [0, *accumulate(counts)][:-1]
        offsets = [offsets[place] for place in places]
    seqs: Sequence[int] = run.seqs
    given = run.ids
    if len(units) < len(seqs):
        seqs = [seqs[unit] for unit in units]
        given = [given[unit] for unit in units]
    named = [one is not None and None not in one for one in given]
    if all(named):
        return seqs, offsets, [None] * len(units)
    made = appended.generated_ids()
    if len(made) > len(units):
        made = [made[place] for place in places]
    if not any(named):
        return seqs, offsets, made
    told = [None if has else id_ for has, id_ in zip(named, made, strict=True)]
    return seqs, offsets, told


def _of_units(
    seq: int,
    units: list[int],
    pieces: list[StoredPiece],
    refused: Mapping[int, PenstockError | None],
) -> bytes:
    """The answer that says of each unit what became of it."""
    offsets: dict[int, Sequence[int]] = {}
    ids: dict[int, list[str]] = {}
    for piece in pieces:
        made = [] if piece.appended is None else piece.appended.generated_ids()
        at = 0
        for unit in piece.units:
            end = at + units[unit]
            offsets[unit], ids[unit] = piece.offsets[at:end], made[at:end]
            at = end
    stored = [unit for unit in sorted(offsets) if unit not in refused]
    said = [
        RefusedUnit(unit, *_LOST if error is None else _told(error))
        for unit, error in sorted(refused.items(), key=itemgetter(0))
    ]
    return encode(
        Published(
            seq,
            [offset for unit in stored for offset in offsets[unit]],
            [id_ for unit in stored for id_ in ids[unit]] or None,
            said,
        )
    )


def _parts(message: Publish, units: list[int]) -> Iterator[Publish]:
    """Each unit as a message of its own."""
    given = {name: getattr(message, name) for name in PUBLISH_COLUMNS}
    columns = {name: column for name, column in given.items() if column is not None}
    at = 0
    for count in units:
        end = at + count
        part = {name: column[at:end] for name, column in columns.items()}
        yield Publish(0, message.topic, message.payloads[at:end], **part)
        at = end


def problem(seq: int, error: PenstockError) -> bytes:
    """The answer to what was not done."""
    return encode(RequestRefused(seq, *_told(error)))


def not_stored(seq: int) -> bytes:
    """The answer to what was done and then lost."""
    return encode(RequestRefused(seq, *_LOST))


def _told(error: PenstockError) -> tuple[str, str, str, dict[str, object] | None]:
    """What a client is told of an error: its name, text, hint and fields."""
    fields = public_fields(error)
    return type(error).__name__, error.for_client, error.hint, fields or None


def columns_of(message: Publish, now_s: float, producer: str | None) -> Columns:
    """The events of a message."""
    given = {one.column: getattr(message, one.column) for one in SETTABLE}
    return Columns(message.payloads, int(now_s * 1000), producer=producer, **given)


def check_given(message: Publish) -> None:
    """Ids that fit on a line; raises InvalidBatch."""
    for field in TEXTS:
        if (texts := getattr(message, field.column)) is not None:
            check_ids(field.name, texts)
    if message.dedup_ids is not None:
        check_ids("dedup id", message.dedup_ids)
