"""Publishing on a native connection: runs of messages become one batch per topic."""

from __future__ import annotations

from typing import Any

from penstock.access.grants import OPEN
from penstock.broker.broker import Broker
from penstock.broker.finish import finish
from penstock.broker.names import check_ids
from penstock.broker.publishing import StoredPiece
from penstock.delivery.consumer import Consumer
from penstock.errors import InvalidBatch, PenstockError, WriteFailed
from penstock.gateway.outbox import Outbox
from penstock.log import Columns
from penstock.model.event import SETTABLE, TEXTS
from penstock.model.remote_errors import public_fields
from penstock.wire.native import (
    Answer,
    Finish,
    Publish,
    Published,
    RequestRefused,
    encode,
    is_plain,
)


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
        self._check(message)
        columns = columns_of(message, now_s, self.producer)
        piece = self._broker.accept(
            message.topic,
            columns,
            units=[len(columns)],
            dedup_ids=message.dedup_ids,
            now_s=now_s,
        ).whole()
        if piece.appended is None:
            answer = encode(Published(message.seq, list(piece.offsets)))
        else:
            ids = [piece.appended.generated_id(0)]
            answer = encode(Published(message.seq, piece.offsets[0], ids))
        self._outbox.after(piece.group, answer, not_stored(message.seq))

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


def problem(seq: int, error: PenstockError) -> bytes:
    """The answer to what was not done."""
    name, fields = type(error).__name__, public_fields(error)
    return encode(
        RequestRefused(seq, name, error.for_client, error.hint, fields or None)
    )


def not_stored(seq: int) -> bytes:
    """The answer to what was done and then lost."""
    text = "not stored: the write failed, try again"
    return encode(RequestRefused(seq, WriteFailed.__name__, text))


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
