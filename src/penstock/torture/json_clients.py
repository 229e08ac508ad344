"""Clients of the JSON gateway: QoS 2 as the protocol wants it of both sides."""

from __future__ import annotations

import json
from collections import deque
from random import Random
from typing import Any

from penstock.gateway.json_consumer import MSG_ID_STEP
from penstock.torture.client import LineClient
from penstock.torture.promise import holds
from penstock.torture.record import LoadRecord, Truth

MAX_PENDING = 30
NOT_STORED = 'ERROR "not stored: the write failed, send it again"'


class JsonPublisher(LineClient):
    """Publishes in order. On a new connection it repeats what is not finished.

    PUB again where no PUBREC came: the broker may have the message pending, but without
    a PUBREL it is never published. PUBREL again where no PUBCOMP came.
    """

    port = "publisher"

    def __init__(
        self, name: str, topic: str, record: LoadRecord, random: Random
    ) -> None:
        super().__init__(name)
        self.topic = topic
        self._record = record
        self._random = random
        self._begun = 0
        self._released: set[int] = set()
        self._completed: set[int] = set()
        self._unreceived: deque[int] = deque()
        self._pending: dict[int, int] = {}
        """msgId -> number, between PUBREC and PUBCOMP."""
        self._used: set[int] = set()

    @property
    def idle(self) -> bool:
        return len(self._completed) == self._begun

    def opened(self) -> None:
        super().opened()
        for msg_id in self._pending:
            self._pubrel(msg_id)
        for number in self._unreceived:
            self._pub(number)

    def work(self) -> None:
        while (
            self._begun - len(self._completed) < MAX_PENDING
            and self._record.may_publish(self.topic)
            and self._random.random() < 0.9
        ):
            self._unreceived.append(self._begun)
            self._pub(self._begun)
            self._begun += 1

    def heard(self, line: str) -> None:
        if line == NOT_STORED:
            self.refusals += 1
            self.drops_out = True  # and says it again
            return
        packet = json.loads(line)
        msg_id = packet["msgId"]
        if packet["type"] == "PUBREC":
            self._received(msg_id)
            return
        holds(packet["type"] == "PUBCOMP", line)
        holds(msg_id in self._used, "msgId", msg_id, "was never given out")
        if msg_id in self._pending:
            number = self._pending.pop(msg_id)
            in_turn = number == len(self._completed)
            holds(in_turn or self.refusals > 0, self.name, number, "is out of turn")
            self._completed.add(number)
            self._record.known[self.topic].append(f"{self.name}-{number}")
            self.facts += 1

    def check(self, truth: Truth) -> None:
        """What was completed is there, nothing twice, nothing before its PUBREL.

        In order too, but for what was refused and said again: that may be overtaken.
        """
        mark = f"{self.name}-"
        own = [text for text in truth.texts(self.topic) if text.startswith(mark)]
        numbers = [int(text.removeprefix(mark)) for text in own]
        there = set(numbers)
        holds(len(there) == len(numbers), self.name, "has something twice")
        holds(there >= self._completed, self.name, "lost", self._completed - there)
        early = there - self._released
        holds(not early, self.name, early, "were published before their PUBREL")
        in_order = numbers == list(range(len(numbers)))
        holds(in_order or self.refusals > 0, self.name, "is out of order", numbers)

    def _received(self, msg_id: int) -> None:
        holds(msg_id not in self._used, "msgId", msg_id, "was given out twice")
        self._used.add(msg_id)
        number = self._pending[msg_id] = self._unreceived.popleft()
        self._released.add(number)
        self._pubrel(msg_id)
        if self._random.random() < 0.1:
            self._pubrel(msg_id)

    def _pub(self, number: int) -> None:
        text = f"{self.name}-{number}"
        self.say(json.dumps({"type": "PUB", "topic": self.topic, "msg": text}))

    def _pubrel(self, msg_id: int) -> None:
        self.say(json.dumps({"type": "PUBREL", "msgId": msg_id}))


class JsonConsumer(LineClient):
    """Takes every message once: a msgId counts as known from PUBREC to PUBREL."""

    port = "consumer"

    def __init__(self, name: str, topic: str, record: LoadRecord) -> None:
        super().__init__(name)
        self.topic = topic
        self.subscribed = False
        self.texts: list[str] = []
        """What was processed, in order."""
        self.first_id: int | None = None
        self.again = 0
        """Repeated PUBs that were recognised."""
        self.last_text = {topic: ""}
        self._record = record
        self._unreleased: set[int] = set()
        self._repeated: set[int] = set()
        """What it was sent more than once, and answered as often."""
        self._unanswered: deque[tuple[str, int]] = deque()
        record.done[topic][name] = 0

    @property
    def idle(self) -> bool:
        return not self._unreleased and not self._unanswered

    def heard(self, line: str) -> None:
        if line.startswith("{"):
            packet = json.loads(line)
            handle = self._pub if packet["type"] == "PUB" else self._pubrel
            handle(packet)
        elif line == "OK":
            self._answered()
        elif line == "UNKNOWN MESSAGE":
            kind, msg_id = self._unanswered.popleft()
            holds(msg_id in self._repeated, self.name, kind, msg_id, "is not known")
        elif line == "Please login!":
            self.say(f"log {self.name}")
        elif line == "Succesfully logged in!":
            if not self.subscribed:  # later logins resume by themselves
                self.say(json.dumps({"type": "SUB", "topic": self.topic}))
                self._unanswered.append(("SUB", 0))
        else:
            # The end of a connection that was torn down may not have been noticed.
            taken = 'ERROR "A connection for this username already exists"'
            holds(line == taken, self.name, line)

    def lost(self) -> None:
        self._unanswered.clear()

    def state(self) -> str:
        waits = f"unreleased {self._unreleased}, unanswered {self._unanswered}"
        return f"{super().state()}, {waits}, last {self.last_text}"

    def check(self, truth: Truth) -> None:
        """Each event from the first on, once, in order."""
        if self.first_id is not None:
            start = self.first_id // MSG_ID_STEP
            stored = truth.texts(self.topic)[start : start + len(self.texts)]
            holds(self.texts == stored, self.name)

    def check_all(self, truth: Truth, starts: dict[str, int]) -> None:
        self.check(truth)
        start = starts[self.topic]
        first = -1 if self.first_id is None else self.first_id // MSG_ID_STEP
        holds(first == start, self.name, "began at", first, "not", start)
        holds(self.texts == truth.texts(self.topic)[start:], self.name)

    def _pub(self, packet: dict[str, Any]) -> None:
        msg_id = packet["msgId"]
        if msg_id in self._unreleased:
            self.again += 1
            self._repeated.add(msg_id)
        else:
            if self.first_id is None:
                self.first_id = msg_id
            due = self.first_id + MSG_ID_STEP * len(self.texts)
            holds(msg_id == due, f"{self.name}: {packet}, due is {due}")
            self.texts.append(packet["msg"])
            self._unreleased.add(msg_id)
            self._record.done[self.topic][self.name] = len(self.texts)
        self._say("PUBREC", msg_id)

    def _pubrel(self, packet: dict[str, Any]) -> None:
        msg_id = packet["msgId"]
        if msg_id not in self._unreleased:
            self._repeated.add(msg_id)
        self._unreleased.discard(msg_id)
        self._say("PUBCOMP", msg_id)

    def _say(self, kind: str, msg_id: int) -> None:
        packet = {"type": kind, "msgId": msg_id, "topic": self.topic}
        self.say(json.dumps(packet))
        self._unanswered.append((kind, msg_id))

    def _answered(self) -> None:
        kind, _ = self._unanswered.popleft()
        if kind == "SUB":
            self.subscribed = True
        elif kind == "PUBCOMP":
            self.last_text[self.topic] = self.texts[-1]
            self.facts += 1
