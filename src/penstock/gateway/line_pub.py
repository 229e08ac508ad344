"""Publishing on a line connection: runs of ``pub`` become batches of topics."""

from __future__ import annotations

from typing import Any

from penstock.broker.broker import Broker
from penstock.errors import PenstockError, RemoteProtocolError
from penstock.gateway.outbox import Outbox
from penstock.log import Columns
from penstock.wire.line import Decoded, decode_mixed, publish_run, replies, text

_LOST = replies.error("not stored: the write failed, publish it again")


class Publisher:
    def __init__(self, broker: Broker, outbox: Outbox[Any]) -> None:
        self.confirm = False
        self._broker = broker
        self._outbox = outbox

    def publish_run(self, block: bytes, now_s: float) -> bool:
        """Publish lines that are all good events of one topic; False if they are not.

        Then nothing was done, and the lines have to be looked at one by one.
        """
        run = publish_run(block)
        if run is None:
            return False
        try:
            topic = run[0].decode()
        except UnicodeDecodeError:
            return False
        decoded = decode_mixed([topic] * len(run[1]), run[1])
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
            appended = self._broker.publish(topic, _columns(decoded, now_s))
        except PenstockError as error:
            self._outbox.now(replies.error(str(error)) * count)
            return
        if not self.confirm:
            return
        ids = [
            appended.generated_id(index) if id_ is None else id_
            for index, id_ in enumerate(decoded.ids)
        ]
        data = replies.published(topic, ids, appended.base_offset)
        self._outbox.after(appended.group, data, _LOST * count)

    def _many(self, topics: list[bytes], events: list[bytes], now_s: float) -> None:
        """Several topics, or events that are bad: answers in the order of the lines."""
        answers: list[bytes] = [b""] * len(events)
        places: dict[bytes, list[int]] = {}
        stored = 0
        for index, topic in enumerate(topics):
            places.setdefault(topic, []).append(index)
        for topic, indexes in places.items():
            try:
                name = text("topic", topic)
            except RemoteProtocolError as error:
                for index in indexes:
                    answers[index] = replies.error(error.text)
                continue
            stored += self._topic_of_many(name, indexes, events, answers, now_s)
        data = b"".join(answers)
        if stored and self.confirm:
            self._outbox.after(self._broker.group, data, _LOST * len(events))
        elif data:
            self._outbox.now(data)

    def _topic_of_many(
        self,
        topic: str,
        indexes: list[int],
        events: list[bytes],
        answers: list[bytes],
        now_s: float,
    ) -> int:
        """Publish those of one topic; how many were good."""
        decoded = decode_mixed([topic] * len(indexes), [events[i] for i in indexes])
        bad = {place for place, _ in decoded.errors}
        for place, error in decoded.errors:
            answers[indexes[place]] = replies.error(error.text)
        good = [index for place, index in enumerate(indexes) if place not in bad]
        if not good:
            return 0
        try:
            appended = self._broker.publish(topic, _columns(decoded, now_s))
        except PenstockError as failure:
            for index in good:
                answers[index] = replies.error(str(failure))
            return 0
        if self.confirm:
            base = appended.base_offset
            for place, index in enumerate(good):
                id_ = decoded.ids[place] or appended.generated_id(place)
                answers[index] = replies.published(topic, [id_], base + place)
        return len(good)


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
