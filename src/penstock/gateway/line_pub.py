"""Publishing on a line connection: runs of ``pub`` become batches of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.access.grants import OPEN
from penstock.broker.broker import Broker
from penstock.broker.publishing import Accepted, take_out_failed
from penstock.errors import (
    InvalidPayload,
    PenstockError,
    RemoteProtocolError,
    WriteFailed,
)
from penstock.gateway.outbox import Outbox
from penstock.log import Columns
from penstock.wire.line import Decoded, decode_mixed, replies, text

_LOST = replies.error("not stored: the write failed, publish it again")


class _Answers:
    """To some lines: what is said, and the group that it is true with, if any."""

    def __init__(self, count: int) -> None:
        self.said = [b""] * count
        self.groups = [0] * count


class LinePublishing:
    def __init__(self, broker: Broker, outbox: Outbox[Any]) -> None:
        self.confirm = False
        self.grants = OPEN
        self._broker = broker
        self._outbox = outbox

    def publish_run(self, topic: str, events: list[bytes], now_s: float) -> bool:
        """Publish events that are all good, of one topic; False if they are not.

        Then nothing was done, and the lines have to be looked at one by one.
        """
        decoded = decode_mixed([topic] * len(events), events)
        if decoded.errors:
            return False
        self._one_topic(topic, decoded, now_s)
        return True

    def publish(self, topics: list[bytes], events: list[bytes], now_s: float) -> None:
        """Publish events, each to the topic at the same place."""
        first = topics[0]
        if topics.count(first) == len(topics):
            try:
                name = text("topic", first)
            except RemoteProtocolError as error:
                self._outbox.now(replies.error(error.text) * len(events))
                return
            decoded = decode_mixed([name] * len(events), events)
            if not decoded.errors:
                self._one_topic(name, decoded, now_s)
                return
        self._many(topics, events, now_s)

    def _one_topic(self, topic: str, decoded: Decoded, now_s: float) -> None:
        count = len(decoded.msgs)
        try:
            self.grants.check_publish(topic)
            outcome = self._broker.accept(topic, _columns(decoded, now_s))
        except PenstockError as error:
            self._outbox.now(replies.error(_text(error)) * count)
            return
        if outcome.refused:
            answers = _Answers(count)
            self._say(topic, range(count), outcome, decoded.ids, answers)
            self._answer(answers)
            return
        if not self.confirm:
            return
        (piece,) = outcome.pieces
        appended = piece.appended
        assert appended is not None, "nothing is told from anything else here"
        ids = [
            appended.generated_id(index) if id_ is None else id_
            for index, id_ in enumerate(decoded.ids)
        ]
        data = replies.published(topic, ids, piece.offsets[0])
        self._outbox.after(appended.group, data, lambda: _LOST * count)

    def _many(self, topics: list[bytes], events: list[bytes], now_s: float) -> None:
        """Several topics, or events that are bad: answers in the order of the lines."""
        answers = _Answers(len(events))
        names: dict[bytes, str] = {}
        lines: list[int] = []
        for line, topic in enumerate(topics):
            try:
                names[topic] = names.get(topic) or text("topic", topic)
                lines.append(line)
            except RemoteProtocolError as error:
                answers.said[line] = replies.error(error.text)
        named = [names[topics[line]] for line in lines]
        decoded = decode_mixed(named, [events[line] for line in lines])
        for place, reason in decoded.errors:
            answers.said[lines[place]] = replies.error(reason.text)
        bad = {place for place, _ in decoded.errors}
        lines = [line for place, line in enumerate(lines) if place not in bad]
        stored = self._by_topic([names[topics[i]] for i in lines], decoded, now_s)
        for place, line in enumerate(lines):
            answers.said[line] = stored.said[place]
            answers.groups[line] = stored.groups[place]
        self._answer(answers)

    def _answer(self, answers: _Answers) -> None:
        """Answer lines that were not all published, each with its own answer."""
        self._outbox.each(answers.said, answers.groups, lambda _: _LOST)

    def _by_topic(self, names: list[str], decoded: Decoded, now_s: float) -> _Answers:
        """Publish good events, each to the topic at its place; their answers."""
        answers = _Answers(len(names))
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            rows.setdefault(name, []).append(row)
        whole = _columns(decoded, now_s)
        outcomes: dict[str, Accepted] = {}
        for name, mine in rows.items():
            try:
                self.grants.check_publish(name)
                outcomes[name] = self._broker.accept(name, whole.pick(mine))
            except PenstockError as failure:
                for row in mine:
                    answers.said[row] = replies.error(_text(failure))
        for name, outcome in outcomes.items():
            if self.confirm:  # others are promised nothing
                take_out_failed(self._broker, outcome)
            self._say(name, rows[name], outcome, decoded.ids, answers)
        return answers

    def _say(
        self,
        topic: str,
        rows: Sequence[int],
        outcome: Accepted,
        ids: Sequence[str | None],
        answers: _Answers,
    ) -> None:
        """Answer some rows of one topic, each with what became of it."""
        for place, refusal in outcome.refused.items():
            answers.said[rows[place]] = (
                _LOST
                if isinstance(refusal, WriteFailed)
                else replies.error(_text(refusal))
            )
        if not self.confirm:
            return
        for piece in outcome.pieces:
            for at, (place, offset) in enumerate(
                zip(piece.units, piece.offsets, strict=True)
            ):
                id_ = ids[rows[place]] or piece.id_at(self._broker, topic, at) or ""
                answers.groups[rows[place]] = piece.group
                answers.said[rows[place]] = b"published %b %b %d\r\n" % (
                    topic.encode(),
                    id_.encode(),
                    offset,
                )


def _text(error: PenstockError) -> str:
    return str(error.at(0)) if isinstance(error, InvalidPayload) else error.for_client


def _columns(decoded: Decoded, now_s: float) -> Columns:
    ids, priorities, fields = decoded.ids, decoded.priorities, decoded.fields
    columns = Columns(
        decoded.msgs,
        int(now_s * 1000),
        ids=None if ids.count(None) == len(ids) else ids,
        priorities=priorities if any(priorities) else None,
        headers=None
        if fields is None
        else [{} if text_ is None else {"fields": text_} for text_ in fields],
    )
    columns.take(decoded.times)
    return columns
