"""Publishing on a native connection: runs of messages become one batch per topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

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
    RefusedUnit,
    RequestRefused,
    encode,
    is_plain,
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
            first = messages[at]
            behind = at + 1
            if first.payloads and is_plain(first):
                topic, named = first.topic, first.ids is not None
                while behind < end:
                    one = messages[behind]
                    if one.topic != topic or (one.ids is not None) != named:
                        break
                    if not (one.payloads and is_plain(one)):
                        break
                    behind += 1
            if behind - at > 1:
                self._run(messages[at:behind], now_s)
            else:
                self._one(first, now_s)
            at = behind

    def _run(self, run: list[Publish], now_s: float) -> None:
        """Payloads, with ids or without, for one topic: one batch, an answer each."""
        payloads = [payload for one in run for payload in one.payloads]
        ids = None
        if run[0].ids is not None:
            ids = [id_ for one in run for id_ in one.ids or ()]
        try:
            self.grants.check_publish(run[0].topic)
            if ids is not None:
                check_ids("id", ids)
            columns = Columns(
                payloads, int(now_s * 1000), ids=ids, producer=self.producer
            )
            units = [len(one.payloads) for one in run]
            outcome = self._broker.accept(run[0].topic, columns, units=units)
        except PenstockError:
            for one in run:  # each gets its own, and the good ones through
                self._one(one, now_s)
            return
        if not outcome.refused and len(outcome.pieces) == 1:
            data = b"".join(_published(run, outcome.pieces[0]))
            self._outbox.after(
                outcome.group, data, lambda: b"".join(not_stored(o.seq) for o in run)
            )
            return
        groups = {unit: one.group for one in outcome.pieces for unit in one.units}
        answers = {
            unit: problem(run[unit].seq, error)
            for unit, error in outcome.refused.items()
        }
        for piece in outcome.pieces:
            answers.update(zip(piece.units, _published(run, piece), strict=True))
        places = range(len(run))
        self._outbox.each(
            [answers[unit] for unit in places],
            [groups.get(unit, 0) for unit in places],
            lambda unit: not_stored(run[unit].seq),
        )

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


def _published(run: list[Publish], piece: StoredPiece) -> list[bytes]:
    """The answers to those of a run that were stored together."""
    appended = piece.appended
    assert appended is not None, "no ids were given to tell them by"
    answers, place = [], 0
    for unit in piece.units:
        one = run[unit]
        first = None
        if one.ids is None or None in one.ids:
            first = [appended.generated_id(place)]
        answers.append(encode(Published(one.seq, piece.offsets[place], first)))
        place += len(one.payloads)
    return answers


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
