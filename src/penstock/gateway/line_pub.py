"""Publishing on a line connection: runs of ``pub`` become batches of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from penstock.access.grants import OPEN
from penstock.broker.broker import Broker
from penstock.broker.publishing import Accepted, take_out_failed
from penstock.errors import (
    InvalidPayload,
    PenstockError,
    RemoteProtocolError,
    WriteFailed,
)
from penstock.gateway.held_lines import NEW_TOPICS
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

    def publish(self, topics: list[bytes], events: list[bytes], now_s: float) -> int:
        """Publish events, each to the topic at the same place.

        How many: those in front of one that would make more than NEW_TOPICS topics.
        """
        first, count = topics[0], len(topics)
        if topics.count(first) < count:
            names = _names(topics)
            if (end := self._end(topics, names)) < count:
                topics, events = topics[:end], events[:end]
            self._many(topics, events, names, now_s)
            return len(topics)
        try:
            name = text("topic", first)
        except RemoteProtocolError as error:
            self._outbox.now(replies.error(error.text) * count)
            return count
        decoded = decode_mixed([name] * count, events)
        if decoded.errors:
            self._many(topics, events, {first: name}, now_s)
        else:
            self._one_topic(name, decoded, now_s)
        return count

    def _end(self, topics: list[bytes], names: Mapping[bytes, str]) -> int:
        """Where lines end that make no more than NEW_TOPICS topics."""
        if len(names) > NEW_TOPICS:
            there = self._broker.log.find_topics(names.values())
            if len(there) + NEW_TOPICS < len(names):
                new = [topic for topic, name in names.items() if name not in there]
                return topics.index(new[NEW_TOPICS])
        return len(topics)

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
            self._say([topic] * count, outcome, decoded.ids, answers)
            self._answer(answers)
            return
        if not self.confirm:
            return
        (piece,) = outcome.pieces
        assert piece.appended is not None, "no ids were given to tell them by"
        ids = _ids(piece.appended.generated_ids, decoded.ids)
        data = replies.published(topic, ids, piece.offsets[0])
        self._outbox.after(piece.group, data, lambda: _LOST * count)

    def _many(
        self,
        topics: list[bytes],
        events: list[bytes],
        names: Mapping[bytes, str],
        now_s: float,
    ) -> None:
        """Several topics, or events that are bad: answers in the order of the lines.

        ``names``: of the topics that have one, and perhaps of others.
        """
        try:
            named = list(map(names.__getitem__, topics))
        except KeyError:
            self._some(topics, events, names, now_s)
            return
        decoded = decode_mixed(named, events)
        if decoded.errors or not self.grants.may_publish_all(names.values()):
            self._some(topics, events, names, now_s)
            return
        self._rows(named, decoded, now_s)

    def _rows(self, names: list[str], decoded: Decoded, now_s: float) -> None:
        """Publish events that are all good, each to the topic at its place."""
        outcome = self._broker.accept_rows(names, _columns(decoded, now_s))
        if outcome.refused or len(outcome.pieces) != 1:
            answers = _Answers(len(names))
            self._say(names, outcome, decoded.ids, answers)
            self._answer(answers)
        elif self.confirm:
            (piece,) = outcome.pieces
            assert piece.appended is not None, "no ids were given to tell them by"
            ids = _ids(piece.appended.generated_ids, decoded.ids)
            data = replies.published_each(names, ids, piece.offsets)
            self._outbox.after(piece.group, data, lambda: _LOST * len(names))

    def _some(
        self,
        topics: list[bytes],
        events: list[bytes],
        names: Mapping[bytes, str],
        now_s: float,
    ) -> None:
        """Publish those of some events that are good, each to the topic at its place.

        Topics without a name are refused.
        """
        answers = _Answers(len(events))
        lines = [line for line, topic in enumerate(topics) if topic in names]
        for line, topic in enumerate(topics):
            if topic not in names:
                answers.said[line] = replies.error(_wrong(topic))
        decoded = decode_mixed(
            [names[topics[line]] for line in lines], [events[line] for line in lines]
        )
        for place, reason in decoded.errors:
            answers.said[lines[place]] = replies.error(reason.text)
        bad = {place for place, _ in decoded.errors}
        lines = [line for place, line in enumerate(lines) if place not in bad]
        stored = self._allowed([names[topics[i]] for i in lines], decoded, now_s)
        for place, line in enumerate(lines):
            answers.said[line] = stored.said[place]
            answers.groups[line] = stored.groups[place]
        self._answer(answers)

    def _answer(self, answers: _Answers) -> None:
        """Answer lines that were not all published, each with its own answer."""
        self._outbox.each(answers.said, answers.groups, lambda _: _LOST)

    def _barred(self, name: str) -> PenstockError | None:
        """Why the user may not publish to a topic, if that is so."""
        try:
            self.grants.check_publish(name)
        except PenstockError as error:
            return error
        return None

    def _allowed(self, names: list[str], decoded: Decoded, now_s: float) -> _Answers:
        """Publish good events to the topics that the user may; answers to all."""
        answers = _Answers(len(names))
        barred = {name: self._barred(name) for name in dict.fromkeys(names)}
        rows = []
        for row, name in enumerate(names):
            if (error := barred[name]) is None:
                rows.append(row)
            else:
                answers.said[row] = replies.error(_text(error))
        if rows:
            mine = [names[row] for row in rows]
            events = _columns(decoded, now_s).pick(rows)
            outcome, stored = (
                self._broker.accept_rows(mine, events),
                _Answers(len(rows)),
            )
            self._say(mine, outcome, [decoded.ids[row] for row in rows], stored)
            for place, row in enumerate(rows):
                answers.said[row] = stored.said[place]
                answers.groups[row] = stored.groups[place]
        return answers

    def _say(
        self,
        names: Sequence[str],
        outcome: Accepted,
        ids: Sequence[str | None],
        answers: _Answers,
    ) -> None:
        """Answer events, each of the topic at its place, with what became of it."""
        if self.confirm:  # others are promised nothing
            take_out_failed(self._broker, outcome)
        for place, refusal in outcome.refused.items():
            answers.said[place] = (
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
                name = names[place]
                id_ = ids[place] or piece.id_at(self._broker, name, at) or ""
                answers.groups[place] = piece.group
                answers.said[place] = replies.published(name, [id_], offset)


def _names(topics: Iterable[bytes]) -> dict[bytes, str]:
    """Names by what lines say, of those that have one."""
    once = [*dict.fromkeys(topics)]
    try:
        # All at once: no topic of a line has a line end.
        names = b"\n".join(once).decode().split("\n")
    except UnicodeDecodeError:
        return {topic: topic.decode() for topic in once if not _wrong(topic)}
    return dict(zip(once, names, strict=True))


def _wrong(topic: bytes) -> str:
    """What is wrong with a topic that has no name."""
    try:
        text("topic", topic)
    except RemoteProtocolError as error:
        return error.text
    return ""


def _ids(generated: Callable[[], list[str]], given: Sequence[str | None]) -> list[str]:
    """The ids of events: those that were given, and generated ones."""
    if None not in given:
        return [*cast("Sequence[str]", given)]  # as just seen
    made = generated()
    if not any(given):
        return made
    return [one or other for one, other in zip(given, made, strict=True)]


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
