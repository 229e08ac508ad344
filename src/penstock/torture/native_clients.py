"""Clients of the native gateway: dedup ids inwards, acks that count outwards."""

from __future__ import annotations

import json
from random import Random

from penstock.client.outgoing import Outgoing
from penstock.client.session import NativeSession
from penstock.errors import ServerRefused, WriteFailed
from penstock.torture.client import LoadClient
from penstock.torture.promise import PromiseBroken, holds
from penstock.torture.record import LoadRecord, Truth
from penstock.wire.native import Published, ServerMessage

MAX_BATCHES = 3


class NativeClient(LoadClient):
    """A client that speaks through the session of Penstock's own clients."""

    port = "native"

    def opened(self) -> None:
        self._session = NativeSession()
        self._session.hello(self.name, None, None)
        self.begin()

    def received(self, data: bytes) -> None:
        for seq in self._session.receive(data):
            try:
                message = self._session.answer(seq)
            except ServerRefused as error:
                holds(isinstance(error, WriteFailed), self.name, error)
                self.refusals += 1
                self.refused(seq)
            else:
                self.answered(seq, message)
        farewell = self._session.farewell
        holds(farewell is None, self.name, "was sent away:", farewell)

    def work(self) -> None:
        self.out += self._session.output()

    def begin(self) -> None:
        raise NotImplementedError

    def answered(self, seq: int, message: ServerMessage | None) -> None:
        raise NotImplementedError

    def refused(self, seq: int) -> None:
        """It is not stored: begin anew."""
        self.drops_out = True


class NativePublisher(NativeClient):
    """Publishes with dedup ids, and all that is unanswered again when it reconnects."""

    def __init__(
        self, name: str, topic: str, record: LoadRecord, random: Random
    ) -> None:
        super().__init__(name)
        self.topic = topic
        self.confirmed: dict[str, int] = {}
        self._record = record
        self._random = random
        self._count = 0
        self._unanswered: list[Outgoing] = []
        self._seqs: dict[int, Outgoing] = {}
        self._late: set[str] = set()
        """What was refused once, and said again."""

    @property
    def idle(self) -> bool:
        return not self._unanswered

    def begin(self) -> None:
        self._seqs.clear()
        for batch in self._unanswered:
            self._send(batch)

    def work(self) -> None:
        while len(self._unanswered) < MAX_BATCHES and self._record.may_publish(
            self.topic
        ):
            self._unanswered.append(self._batch())
            self._send(self._unanswered[-1])
        super().work()

    def answered(self, seq: int, message: ServerMessage | None) -> None:
        batch = self._seqs.pop(seq, None)
        if batch is None:
            return  # to Hello
        if not isinstance(message, Published):
            raise PromiseBroken(f"{self.name}: {message}")
        said = message.offsets
        if isinstance(said, int):
            said = list(range(said, said + len(batch.payloads)))
        for payload, offset in zip(batch.payloads, said, strict=True):
            text = json.loads(payload)
            self.confirmed[text] = offset
            self._record.known[self.topic].append(text)
        self._unanswered.remove(batch)
        self.facts += 1

    def refused(self, seq: int) -> None:
        """Say it again, under the same ids; it may be overtaken by now."""
        batch = self._seqs.pop(seq)
        self._late.update(json.loads(payload) for payload in batch.payloads)
        self._send(batch)

    def check(self, truth: Truth) -> None:
        """What was answered is where the answer said, and in order."""
        places = ((offset, text) for text, offset in self.confirmed.items())
        truth.check_places(self.topic, places)
        texts = truth.texts(self.topic)
        own = [text for text in texts if text.startswith(f"{self.name}-")]
        all_ = [f"{self.name}-{number}" for number in range(self._count)]
        strange = set(own) - set(all_)
        holds(not strange, self.name, "never published", strange)
        in_time = [text for text in own if text not in self._late]
        wanted = [text for text in all_ if text not in self._late]
        holds(in_time == wanted[: len(in_time)], self.name, "is out of order")

    def _batch(self) -> Outgoing:
        size = self._random.choice([1, 3, 20])
        texts = [f"{self.name}-{self._count + index}" for index in range(size)]
        self._count += size
        return Outgoing.of(
            [json.dumps(text) for text in texts],
            dedup_ids=texts,
            priorities=[self._random.choice([0, 1, 7]) for _ in texts],
        )

    def _send(self, batch: Outgoing) -> None:
        self._seqs[self._session.publish(self.topic, batch)] = batch


class NativeConsumer(NativeClient):
    """Consumes in log order; asks whether its acks count."""

    def __init__(
        self, name: str, topic: str, record: LoadRecord, *, window: int
    ) -> None:
        super().__init__(name)
        self.topic = topic
        self.subscribed = False
        self.settled: set[int] = set()
        """Offsets whose settlement was said to be durable."""
        self.got: dict[int, str] = {}
        self.last_text = {topic: ""}
        self._window = window
        self._record = record
        self._last = -1
        self._questions: dict[int, list[int]] = {}
        record.done[topic][name] = 0

    @property
    def idle(self) -> bool:
        return not self._questions

    def begin(self) -> None:
        self._last = -1
        self._questions.clear()
        self._session.subscribe(self.topic, self.name, window=self._window)

    def received(self, data: bytes) -> None:
        super().received(data)
        for inbox in self._session.inboxes.values():
            self.subscribed = True
            while (events := inbox.take()) is not None:
                self._take(inbox.channel, events.offsets, events.payloads)

    def answered(self, seq: int, message: ServerMessage | None) -> None:
        if (offsets := self._questions.pop(seq, None)) is not None:
            self.settled.update(offsets)
            self.last_text[self.topic] = self.got[max(offsets)]
            self.facts += 1

    def state(self) -> str:
        waits = f"unanswered {self._questions}, up to {self._last}"
        return f"{super().state()}, {waits}, last {self.last_text}"

    def check(self, truth: Truth) -> None:
        truth.check_places(self.topic, self.got.items())

    def check_all(self, truth: Truth, starts: dict[str, int]) -> None:
        self.check(truth)
        owed = set(range(starts[self.topic], len(truth.topics[self.topic])))
        holds(owed == set(self.got), f"{self.name}: {sorted(owed ^ set(self.got))}")

    def _take(self, channel: int, offsets: list[int], payloads: list[bytes]) -> None:
        in_order = sorted([self._last, *offsets]) == [self._last, *offsets]
        holds(in_order, self.name, "got", offsets, "after", self._last)
        again = self.settled.intersection(offsets)
        holds(not again, f"{self.name}: {sorted(again)} came after they were settled")
        self._last = offsets[-1]
        self.got |= zip(offsets, map(json.loads, payloads), strict=True)
        self._record.done[self.topic][self.name] = len(self.got)
        self._session.settle(channel, offsets)
        self._questions[self._session.ask("settled", {})] = offsets
