"""Clients of the line gateway that remember what they were promised."""

from __future__ import annotations

import json
from collections import deque
from random import Random
from typing import Any

from penstock.torture.client import LineClient
from penstock.torture.promise import holds
from penstock.torture.record import ConsumerStep, EventPlace, LoadRecord, Sent, Truth

MAX_IN_FLIGHT = 100
NOT_STORED = "error: not stored: the write failed, publish it again"


class LinePublisher(LineClient):
    """Publishes with ``confirm on``, many at a time; sends nothing twice."""

    def __init__(
        self, name: str, topics: list[str], record: LoadRecord, random: Random
    ) -> None:
        super().__init__(name)
        self.confirmed: dict[str, EventPlace] = {}
        self.refused: set[str] = set()
        """What was said not to be stored."""
        self._topics = topics
        self._record = record
        self._random = random
        self._count = 0
        self._connections: list[list[Sent]] = []
        """What was sent on each connection."""
        self._unanswered: deque[Sent] = deque()

    @property
    def idle(self) -> bool:
        return not self._unanswered

    def opened(self) -> None:
        super().opened()
        self._connections.append([])
        self.say("confirm on")

    def work(self) -> None:
        topics = [one for one in self._topics if self._record.may_publish(one)]
        if not topics or len(self._unanswered) > MAX_IN_FLIGHT // 2:
            return
        for _ in range(self._random.choice([1, 5, MAX_IN_FLIGHT // 2])):
            self._publish(self._random.choice(topics))

    def heard(self, line: str) -> None:
        if line.startswith(("Successfully connected", "confirm on")):
            return
        sent = self._unanswered.popleft()
        if line == NOT_STORED:
            self.refusals += 1
            self.refused.add(sent.text)
            return
        word, topic, id_, offset = line.split(" ")
        holds(word == "published", line)
        holds((topic, id_) == (sent.topic, sent.text), f"{line} answers {sent}")
        self.confirmed[id_] = EventPlace(topic, int(offset))
        self._record.known[topic].append(id_)
        self.facts += 1

    def lost(self) -> None:
        self._unanswered.clear()

    def check(self, truth: Truth) -> None:
        """Confirmed events are where they were said to be; others are a prefix.

        What one connection sent is stored in its order: nothing is stored behind
        something that is not.
        """
        for id_, place in self.confirmed.items():
            events = truth.topics[place.topic]
            holds(place.offset < len(events), f"{place} is lost, {len(events)} are not")
            stored = events[place.offset]
            holds((stored.text, stored.id) == (id_, id_), f"{place} has {stored}")
        for connection in self._connections:
            sent = [one for one in connection if one.text not in self.refused]
            found = [one.text in truth.by_id[one.topic] for one in sent]
            stored_ = found.count(True)
            holds(not any(found[stored_:]), f"{self.name}: a gap in {sent}, {found}")
            for one in sent[:stored_]:
                priority = truth.by_id[one.topic][one.text].priority
                holds(priority == one.priority, one, "has the priority", priority)
        for topic in self._topics:
            own = [id_ for id_ in truth.by_id[topic] if id_.startswith(f"{self.name}-")]
            wrong = self.refused.intersection(own)
            holds(
                not wrong,
                f"{self.name}: {sorted(wrong)[:5]} were refused, and are stored",
            )
            numbers = [int(id_.rsplit("-", 1)[1]) for id_ in own]
            holds(numbers == sorted(numbers), f"{self.name} is out of order in {topic}")

    def _publish(self, topic: str) -> None:
        text = f"{self.name}-{self._count}"
        self._count += 1
        sent = Sent(topic, text, self._random.choice([0, 0, 1, 2, 7, 255]))
        event = {"id": text, "msg": text, "priority": sent.priority}
        self.say(f"pub {topic} {json.dumps(event)}")
        self._connections[-1].append(sent)
        self._unanswered.append(sent)


class LineConsumer(LineClient):
    """Consumes under a name and acknowledges everything, sooner or later."""

    def __init__(
        self,
        name: str,
        topics: list[str],
        record: LoadRecord,
        random: Random,
        *,
        window: int = 1,
        drop_rate: float = 0.0,
    ) -> None:
        super().__init__(name)
        self.topics = topics
        self.drop_rate = drop_rate
        """How often it drops out instead of acknowledging."""
        self.subscribed = False
        self.steps: dict[str, list[ConsumerStep]] = {topic: [] for topic in topics}
        self.order: dict[str, list[str]] = {topic: [] for topic in topics}
        """Ids as they were delivered, again and again if so."""
        self.acked: dict[str, set[str]] = {topic: set() for topic in topics}
        """Those whose ack was answered."""
        self.tried: dict[str, set[str]] = {topic: set() for topic in topics}
        """Those that were acknowledged, answered or not."""
        self.last_text: dict[str, str] = {}
        self._record = record
        self._random = random
        self._window = window
        self._unanswered: deque[tuple[str, str]] = deque()
        self._held: dict[tuple[str, str], bool] = {}
        """Delivered on this connection -> whether an ack was said."""
        self._subscriptions = 0
        for topic in topics:
            record.done[topic][name] = 0

    @property
    def idle(self) -> bool:
        return not self._held

    def opened(self) -> None:
        super().opened()
        self._subscriptions = 0
        self.say(f"as {self.name}")
        if self._window > 1:
            self.say(f"window {self._window}")
        for topic in self.topics:
            self.say(f"sub {topic}")
            self._asked(topic)

    def heard(self, line: str) -> None:
        if line.startswith("{"):
            self._delivered(json.loads(line))
        elif line.startswith("acknowledged from"):
            self._acknowledged(line)
        elif line.startswith("successfully subscribed to topic"):
            self._subscriptions += 1
            self.subscribed = self._subscriptions == len(self.topics)
        else:
            known = ("Successfully connected", "subscriber ", "window ")
            holds(line.startswith((*known, "no available message")), line)

    def lost(self) -> None:
        for (topic, id_), said in self._held.items():
            if not said:
                self.steps[topic].append(ConsumerStep("returned", id_))
        self._held.clear()
        self._unanswered.clear()

    def state(self) -> str:
        return f"{super().state()}, holds {self._held}, last {self.last_text}"

    def check(self, truth: Truth) -> None:
        """The consumer was told of no event that a crash could take away."""
        for topic, ids in self.order.items():
            phantoms = [id_ for id_ in ids if id_ not in truth.by_id[topic]]
            holds(not phantoms, f"{self.name} got {phantoms} of {topic}, not stored")

    def check_all(self, truth: Truth, starts: dict[str, int]) -> None:
        """Everything since the start was delivered and acknowledged."""
        self.check(truth)
        for topic in self.topics:
            owed = {one.id for one in truth.topics[topic][starts[topic] :]}
            lost, strange = owed - self.tried[topic], self.tried[topic] - owed
            holds(not lost, f"{self.name} never got {sorted(lost)[:5]} of {topic}")
            holds(not strange, f"{self.name} got {sorted(strange)[:5]} of {topic}")

    def _delivered(self, event: dict[str, Any]) -> None:
        topic, id_ = event["topic"], event["id"]
        holds(id_ not in self.acked[topic], f"{self.name}: {id_} came after its ack")
        holds((topic, id_) not in self._held, f"{self.name}: {id_} came twice")
        self.order[topic].append(id_)
        self.steps[topic].append(ConsumerStep("got", id_))
        self.last_text[topic] = event["msg"]
        held = sum(one == topic for one, _ in self._held)
        holds(held < self._window, f"{self.name}: more than the window")
        drop = self._random.random() < self.drop_rate
        self.drops_out = self.drops_out or drop
        self._held[topic, id_] = not drop
        if not drop:
            self.say(f"ack {topic} {id_}")
            self.tried[topic].add(id_)
            self._unanswered.append((topic, id_))
            self._asked(topic)

    def _acknowledged(self, line: str) -> None:
        topic, id_ = self._unanswered.popleft()
        known = ("current session", f"logs ev_id={id_}")
        holds(line.removeprefix("acknowledged from ") in known, self.name, line)
        del self._held[topic, id_]
        self.acked[topic].add(id_)
        self._record.done[topic][self.name] = len(self.tried[topic])
        self.facts += 1

    def _asked(self, topic: str) -> None:
        known = len(self._record.known[topic])
        self.steps[topic].append(ConsumerStep("asked", known=known))
