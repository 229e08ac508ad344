"""Consumers and publishers of the JSON gateway, with QoS 2 in both directions.

A user remembers, through every crash of the broker and every lost connection, which
messages it got and has not seen PUBREL for: that is all that exactly once needs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from penstock.gateway.json_consumer import MSG_ID_STEP, JsonConsumerGateway
from penstock.gateway.json_publisher import JsonPublisherGateway
from penstock.gateway.options import JsonOptions
from penstock.model.policy import Policy
from tests.properties.broker_model import RELEASED, SENT, Key, Message, Sub
from tests.properties.broker_peers import Peer

if TYPE_CHECKING:
    from tests.properties.broker_simulation import Simulation

# Few tries, so that some runs out of them.
OPTIONS = JsonOptions(pub_tries=2, pubrel_tries=2)
POLICY = Policy(
    order="log",
    window=1,
    qos=2,
    ack_timeout_s=OPTIONS.pub_interval_s,
    tries=OPTIONS.pub_tries,
    exhausted="suspend",
    release_tries=OPTIONS.pubrel_tries,
    release_interval_s=OPTIONS.pubrel_interval_s,
)
USERS = ("u1", "u2", "x")


class User:
    """What a consumer keeps, whatever happens."""

    def __init__(self) -> None:
        self.received: set[tuple[str, int]] = set()
        """Handled, and not released by PUBREL yet."""
        self.handled: Counter[tuple[str, int]] = Counter()
        self.repeats: Counter[str] = Counter()
        """How often a topic may come again, because somebody moved the position."""
        self.last: dict[str, int] = {}
        self.shared: set[str] = set()
        """Topics that others consume with it: what they return comes late."""

    def again(self, topic: str) -> None:
        self.repeats[topic] += 1
        self.last.pop(topic, None)

    def forget(self, topic: str) -> None:
        self.received = {one for one in self.received if one[0] != topic}
        self.handled = Counter(
            {one: n for one, n in self.handled.items() if one[0] != topic}
        )
        self.last.pop(topic, None)

    def handle(self, topic: str, msg_id: int) -> str | None:
        """Take in a PUB; what is wrong with it."""
        if (topic, msg_id) in self.received:
            return None
        self.received.add((topic, msg_id))
        self.handled[topic, msg_id] += 1
        if self.handled[topic, msg_id] > 1 + self.repeats[topic]:
            return f"{topic} {msg_id} was handled twice"
        if msg_id <= self.last.get(topic, 0) and topic not in self.shared:
            return f"{topic} {msg_id} came behind {self.last[topic]}"
        self.last[topic] = msg_id
        return None


class ConsumerPeer(Peer):
    def __init__(self, sim: Simulation) -> None:
        super().__init__(sim)
        self.gateway = JsonConsumerGateway(sim.broker, OPTIONS, sim.connected)
        self.name = ""
        self.shares: set[str] = set()
        self.to_receive: list[tuple[str, int]] = []
        self.to_complete: list[tuple[str, int]] = []
        self.expect(b"Please login!")

    def __str__(self) -> str:
        return f"consumer {self.name}"

    @property
    def user(self) -> User:
        return self.sim.users.setdefault(self.name, User())

    def key(self, topic: str) -> Key:
        return self.name, topic

    def introduce(self) -> None:
        self.log_in(self.sim.random.choice(USERS))
        if self.name:
            self.sub(self.sim.some_topic())

    def act(self) -> None:
        r = self.sim.random
        if not self.name:
            self.log_in(r.choice(USERS))
            return
        draw, topic = r.random(), self.sim.some_topic()
        if draw < 0.1:
            self.sub(topic)
        elif draw < 0.13:
            self.unsub(topic)
        elif draw < 0.15:
            self.junk()
        elif draw < 0.2:
            self.pubrec(topic, r.randint(1, 5))
        elif draw < 0.25:
            self.pubcomp(topic, r.randint(1, 5))
        elif self.to_receive and draw < 0.7:
            self.pubrec(*self._chosen(self.to_receive))
        elif self.to_complete:
            self.pubcomp(*self._chosen(self.to_complete))

    def _chosen(self, some: list[tuple[str, int]]) -> tuple[str, int]:
        """One of some, and now and then it stays among them."""
        one = self.sim.random.choice(some)
        if self.sim.random.random() < 0.85:
            some.remove(one)
        return one

    def respond(self) -> None:
        while self.to_receive:
            self.pubrec(*self.to_receive.pop())
        while self.to_complete:
            self.pubcomp(*self.to_complete.pop())

    def log_in(self, name: str) -> None:
        taken = name in self.sim.connected
        self.send(b"log " + name.encode())
        if taken:
            self.expect(b"ERROR ")
            self.sim.expect(self.gateway.closing, f"{name} is in twice")
            return
        self.name = name
        self.expect(b"Succesfully logged in!")
        for key, sub in list(self.sim.world.subs.items()):
            wanted = sub.active or sub.suspended
            if key[0] == name and sub.policy.qos == 2 and wanted:
                self.attach(key[1])

    def attach(self, topic: str) -> bool:
        key = self.key(topic)
        sub = self.join(key, POLICY, self.sim.world.end(topic))
        if sub is None:
            return False
        self.shares.add(topic)
        for offset in sub.resume(self, self.sim.now_s):
            self.expect_pubrel(sub, offset)
        return True

    def expect_pubrel(self, sub: Sub, offset: int) -> None:
        def done(_: bytes) -> None:
            debt = sub.owed.get(offset)
            if debt is not None and self.sim.world.subs.get(self.key(topic)) is sub:
                outcome = self.sim.broker.log.outcome(debt.group)
                safe = not debt.group or outcome in ("written", "synced")
                self.sim.expect(safe, f"{self}: PUBREL {topic} {msg_id} too early")
            self.user.received.discard((topic, msg_id))
            self.to_complete.append((topic, msg_id))

        topic = sub.topic
        msg_id = self.msg_id_of(topic, offset)
        text = b'{"msgId":%d,"type":"PUBREL"}' % msg_id
        self.expect(text, done=done, tag="PUBREL")

    def sub(self, topic: str) -> None:
        self.send(msgspec.json.encode({"type": "SUB", "topic": topic}))
        if topic in self.shares:
            self.expect(b"OK")
            return
        if not self.sim.broker.log.has_topic(topic):
            self.expect(b"ERROR ")
            return
        self.expect(b"OK")
        answer = self.expected[-1]
        if not self.sim.broker.log.topic(topic).committed:
            answer.or_error = b"ERROR "  # the topic may be taken back
        if self.attach(topic):
            answer.done = self.sim.promise(self.key(topic))
        else:
            answer.text = b"ERROR "

    def unsub(self, topic: str) -> None:
        self.send(msgspec.json.encode({"type": "UNSUB", "topic": topic}))
        self.shares.discard(topic)
        self.part(self.key(topic))
        self.expect(b"OK", done=self.sim.promise(self.key(topic)))

    def junk(self) -> None:
        self.send(self.sim.junk())
        self.expect(b"INVALID JSON")

    def pubrec(self, topic: str, msg_id: int) -> None:
        self._say("PUBREC", topic, msg_id)
        sub, debt = self._flying(topic, msg_id)
        if sub is None or debt is None:
            self.expect(b"UNKNOWN MESSAGE")
            return
        if debt.stage == SENT:
            debt.stage, debt.tries = RELEASED, 1
            debt.due_s = self.sim.now_s + POLICY.release_interval_s
            debt.group = self.sim.broker.promised
        self.expect(b"OK")
        self.expect_pubrel(sub, self.offset_of(topic, msg_id))

    def pubcomp(self, topic: str, msg_id: int) -> None:
        self._say("PUBCOMP", topic, msg_id)
        sub, debt = self._flying(topic, msg_id)
        if sub is None or debt is None or debt.stage != RELEASED:
            self.expect(b"UNKNOWN MESSAGE")
            return
        offset = self.offset_of(topic, msg_id)
        sub.settle(offset)
        self.expect(b"OK", done=self.sim.settled(self.key(topic), offset))

    def msg_id_of(self, topic: str, offset: int) -> int:
        return offset * MSG_ID_STEP + self.sim.broker.log.topic(topic).id

    def offset_of(self, topic: str, msg_id: int) -> int:
        """The offset that a msgId means; -1 if it is none of this topic."""
        offset, number = divmod(msg_id, MSG_ID_STEP)
        known = number == self.sim.broker.log.topic(topic).id
        return offset if known else -1

    def _say(self, kind: str, topic: str, msg_id: int) -> None:
        packet = {"type": kind, "msgId": msg_id, "topic": topic}
        self.send(msgspec.json.encode(packet))

    def _flying(self, topic: str, msg_id: int):
        if topic not in self.shares:
            return None, None
        sub = self.sim.world.subs[self.key(topic)]
        if sub.policy.qos != 2:  # another protocol has changed the rules
            return None, None
        return sub, sub.held(self.offset_of(topic, msg_id), self)

    def line(self, line: bytes) -> None:
        if line.startswith(b'{"msg":'):
            packet = msgspec.json.decode(line)
            topic, msg_id = packet["topic"], packet["msgId"]
            payload = msgspec.json.encode(packet["msg"])
            offset = self.sim.deliver(self, self.key(topic), payload)
            right = msg_id == self.msg_id_of(topic, offset)
            self.sim.expect(right, f"{line!r} is at {offset}")
            wrong = self.user.handle(topic, msg_id)
            self.sim.expect(wrong is None, f"{self}: {wrong}")
            self.to_receive.append((topic, msg_id))
            return
        if line.endswith(b'"PUBREL"}'):
            self._next_pubrel(line)
        self.answered(line)

    def _next_pubrel(self, line: bytes) -> None:
        """PUBRELs that are due at one moment come in any order."""
        for at, one in enumerate(self.expected):
            if one.tag != "PUBREL":
                return
            if one.text == line:
                del self.expected[at]
                self.expected.appendleft(one)
                return

    def ended(self, sub: Sub, reason: str) -> None:
        self.shares.discard(sub.topic)


class PublisherPeer(Peer):
    def __init__(self, sim: Simulation) -> None:
        super().__init__(sim)
        self.gateway = JsonPublisherGateway(sim.broker, OPTIONS)

    def __str__(self) -> str:
        return "publisher"

    def act(self) -> None:
        draw = self.sim.random.random()
        known = sorted({*self.sim.world.messages, *self.sim.received})
        if draw < 0.5:
            self.pub(self.sim.some_topic())
        elif draw < 0.55:
            self.send(self.sim.junk())
            self.expect(b"INVALID JSON")
        elif known:
            self.pubrel(self.sim.random.choice(known))

    def respond(self) -> None:
        for msg_id in list(self.sim.world.pending()):
            self.pubrel(msg_id)

    def pub(self, topic: str) -> None:
        payload = self.sim.payload(topic)
        pending = self.sim.broker.pending
        msg_id, at_ms = pending._next_id, int(self.sim.now_s * 1000)
        packet = {"type": "PUB", "topic": topic, "msg": int(payload)}
        self.send(msgspec.json.encode(packet))
        if pending.get(msg_id) is None:
            self.expect(b"ERROR ")
            return
        group = self.sim.broker.promised
        message = Message(msg_id, topic, payload, at_ms, group)
        self.sim.world.messages[msg_id] = message

        def done(_: bytes) -> None:
            published = self.sim.offset(topic, payload) is not None
            if published or self.sim.world.messages.get(msg_id) is message:
                self.sim.received[msg_id] = message  # else the topic was deleted
                self.sim.met["PUBREC answered"] += 1

        self.expect(b'{"msgId":%d,"type":"PUBREC"}' % msg_id, b"ERROR ", done)

    def pubrel(self, msg_id: int) -> None:
        message = self.sim.world.pending().get(msg_id)
        self.send(msgspec.json.encode({"type": "PUBREL", "msgId": msg_id}))
        done = None
        if message is not None:
            stored = (message.topic, message.payload) in self.sim.appended
            gone = self.sim.broker.pending.get(msg_id) is None
            lost = gone and self.sim.world.pending().get(msg_id) is not message
            half = stored != gone and not lost  # lost: its PUB was taken back
            self.sim.expect(not half, f"PUBREL {msg_id} did half of it")
            if not stored:
                self.expect(b"ERROR ")
                return
            message.ended = self.sim.broker.group
            done = self.sim.confirm(message.topic, message.payload)
        self.expect(b'{"msgId":%d,"type":"PUBCOMP"}' % msg_id, b"ERROR ", done)

    def line(self, line: bytes) -> None:
        self.answered(line)
