"""Publishing on a line connection: runs of ``pub`` become batches of topics."""

from __future__ import annotations

from typing import Any

from penstock.broker.access import OPEN
from penstock.broker.broker import Broker
from penstock.errors import InvalidPayload, PenstockError, RemoteProtocolError
from penstock.gateway.outbox import Outbox
from penstock.log import Columns
from penstock.wire.line import Decoded, decode_mixed, replies, text

_LOST = replies.error("not stored: the write failed, publish it again")


class Publisher:
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
            appended = self._broker.publish(topic, _columns(decoded, now_s))
        except InvalidPayload:
            self._answer(self._by_topic([topic] * count, decoded, now_s))
            return
        except PenstockError as error:
            self._outbox.now(replies.error(error.told) * count)
            return
        if not self.confirm:
            return
        ids = [
            appended.generated_id(index) if id_ is None else id_
            for index, id_ in enumerate(decoded.ids)
        ]
        data = replies.published(topic, ids, appended.base_offset)
        self._outbox.after(appended.group, data, lambda: _LOST * count)

    def _many(self, topics: list[bytes], events: list[bytes], now_s: float) -> None:
        """Several topics, or events that are bad: answers in the order of the lines."""
        answers: list[bytes] = [b""] * len(events)
        names: dict[bytes, str] = {}
        lines: list[int] = []
        for line, topic in enumerate(topics):
            try:
                names[topic] = names.get(topic) or text("topic", topic)
                lines.append(line)
            except RemoteProtocolError as error:
                answers[line] = replies.error(error.text)
        named = [names[topics[line]] for line in lines]
        decoded = decode_mixed(named, [events[line] for line in lines])
        for place, reason in decoded.errors:
            answers[lines[place]] = replies.error(reason.text)
        bad = {place for place, _ in decoded.errors}
        lines = [line for place, line in enumerate(lines) if place not in bad]
        stored = self._by_topic([names[topics[i]] for i in lines], decoded, now_s)
        for line, answer in zip(lines, stored, strict=True):
            answers[line] = answer
        self._answer(answers)

    def _answer(self, answers: list[bytes]) -> None:
        """Answer lines that were not all published, each with its own answer."""
        data, count = b"".join(answers), len(answers)
        if any(answer.startswith(b"published ") for answer in answers):
            self._outbox.after(self._broker.promised, data, lambda: _LOST * count)
        elif data:
            self._outbox.now(data)

    def _by_topic(
        self, names: list[str], decoded: Decoded, now_s: float
    ) -> list[bytes]:
        """Publish good events, each to the topic at its place; their answers."""
        answers = [b""] * len(names)
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            rows.setdefault(name, []).append(row)
        whole = _columns(decoded, now_s)
        groups: dict[int, int] = {}
        for name, mine in rows.items():
            self._rows(name, mine, whole, answers, groups)
        self._forget_failed(answers, groups)
        return answers

    def _forget_failed(self, answers: list[bytes], groups: dict[int, int]) -> None:
        """Confirm none of a group that was full, was written meanwhile, and failed."""
        outcome = self._broker.log.outcome
        failed = {group for group in groups.values() if outcome(group) == "failed"}
        for row, group in groups.items():
            if group in failed:
                answers[row] = _LOST

    def _rows(
        self,
        topic: str,
        rows: list[int],
        whole: Columns,
        answers: list[bytes],
        groups: dict[int, int],
    ) -> None:
        """Publish some rows to one topic, those that fit its schema; answer each.

        ``groups`` gets those that confirmed rows are in.
        """
        mine = whole.pick(rows)
        try:
            self.grants.check_publish(topic)
            appended = self._broker.publish(topic, mine)
        except InvalidPayload:
            refused = self._broker.cards.refused(topic, mine.payloads)
            for place, refusal in refused.items():
                answers[rows[place]] = replies.error(str(refusal.at(0)))
            fit = [row for place, row in enumerate(rows) if place not in refused]
            if fit:
                self._rows(topic, fit, whole, answers, groups)
            return
        except PenstockError as failure:
            for row in rows:
                answers[row] = replies.error(str(failure))
            return
        if self.confirm:
            groups.update(dict.fromkeys(rows, appended.group))
            for place, row in enumerate(rows):
                id_ = appended.generated_id(place)
                if whole.ids is not None:
                    id_ = whole.ids[row] or id_
                offset = appended.base_offset + place
                answers[row] = b"published %b %b %d\r\n" % (
                    topic.encode(),
                    id_.encode(),
                    offset,
                )


def _columns(decoded: Decoded, now_s: float) -> Columns:
    ids, priorities, fields = decoded.ids, decoded.priorities, decoded.fields
    return Columns(
        decoded.msgs,
        int(now_s * 1000),
        ids=None if ids.count(None) == len(ids) else ids,
        priorities=priorities if any(priorities) else None,
        headers=None
        if fields is None
        else [{} if text_ is None else {"fields": text_} for text_ in fields],
    )
