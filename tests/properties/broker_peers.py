"""Clients of a simulated broker that know what it has to answer.

A peer sends to a real gateway, tells the model what that means, and compares every
answer with the one it expects, in order. Deliveries come in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.gateway.gateway import Gateway
from penstock.gateway.line import LineGateway
from penstock.gateway.options import LineOptions
from penstock.model.policy import Policy
from tests.properties.broker_model import SENT, Follows, Key, Sub

if TYPE_CHECKING:
    from tests.properties.broker_simulation import Simulation

ROOM = 1 << 20
NAMES = ("l1", "l2", "x")
IDS = ("1", "2", "3", None)


@dataclass
class Expected:
    """An answer that has to come: all of it or its beginning, or another one."""

    text: bytes
    or_error: bytes | None = None
    """What an answer begins with if the write has failed."""
    done: Callable[[bytes], None] | None = None
    tag: object = None


class Peer:
    """One connection."""

    gateway: Gateway

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.expected: deque[Expected] = deque()
        self.wanted = True
        """Whether the server would ask for output."""
        self.stalled = False
        """Whether the client does not read."""

    def start(self) -> None:
        self.gateway.connected(self.sim.now_s)

    def send(self, *lines: bytes) -> None:
        data = b"".join(line + b"\n" for line in lines)
        self.receive(data)

    def receive(self, data: bytes) -> None:
        self.sim.trace.append(f"  {self}: {data[:120]!r}")
        cut = self.sim.random.randint(0, len(data))
        if self.sim.random.random() < 0.9:
            cut = 0
        for part in (data[:cut], data[cut:]):
            if part:
                self.gateway.receive(part, self.sim.now_s)
            while self.gateway.busy:
                self.gateway.go_on(self.sim.now_s)
        self.wanted = True

    def pull(self) -> None:
        """Read what the gateway has, as far as it is willing."""
        room = ROOM if self.sim.random.random() < 0.8 else 1
        self.wanted = room == 1
        data = b"".join(self.gateway.output(self.sim.now_s, room))
        self.output(data)

    def output(self, data: bytes) -> None:
        for line in data.split(b"\r\n"):
            if line:
                self.line(line)

    def line(self, line: bytes) -> None:
        raise NotImplementedError

    def expect(
        self,
        text: bytes,
        or_error: bytes | None = None,
        done: Callable[[bytes], None] | None = None,
        tag: object = None,
    ) -> None:
        self.expected.append(Expected(text.removesuffix(b"\r\n"), or_error, done, tag))

    def answered(self, line: bytes) -> None:
        """Compare an answer with the one that is due."""
        expect = self.sim.expect
        expect(bool(self.expected), f"{self} got {line!r}, expected nothing")
        one = self.expected.popleft()
        if one.or_error is not None and line.startswith(one.or_error):
            return
        expect(line.startswith(one.text), f"{self} got {line!r}, not {one.text!r}")
        if one.done is not None:
            one.done(line)

    def disconnect(self) -> None:
        left = self.leave()
        self.gateway.disconnected(self.sim.now_s)
        for sub, follows in left:
            self.sim.follow(sub, follows)

    def leave(self) -> list[tuple[Sub, Follows]]:
        """Tell the model that this connection is gone; what follows from it."""
        subs, left = self.sim.world.subs, []
        for key, sub in list(subs.items()):
            if self in sub.holders:
                left.append((sub, sub.give_back(self)))
                if sub.temporary:
                    del subs[key]
        return left

    def ended(self, sub: Sub, reason: str) -> None:
        """A subscription was ended by the broker."""

    def moved(self, sub: Sub) -> None:
        """A subscription was moved."""

    def introduce(self) -> None:
        """Say what most clients say first."""

    def act(self) -> None:
        """Do something at random."""

    def respond(self) -> None:
        """Answer everything that can be answered."""

    # What subscribing means

    def join(
        self, key: Key, policy: Policy, start: int, *, temporary: bool = False
    ) -> Sub | None:
        """Make or resume a subscription in the model; None if it is refused."""
        sub = self.sim.world.subs.get(key)
        if sub is None:
            sub = self.sim.world.subs[key] = Sub(
                key[0], key[1], policy, start, temporary
            )
        elif sub.policy.order != policy.order:
            return None
        qos = sub.policy.qos
        if qos != policy.qos and (sub.holders or 2 in (qos, policy.qos)):
            return None
        if sub.holders and (policy.in_order or sub.policy.in_order):
            self.sim.met["taken in order"] += 1
            return None
        sub.govern(policy)
        self.sim.touch(key)
        if self not in sub.holders:
            sub.holders.append(self)
        return sub

    def part(self, key: Key, *, ends: bool = True) -> None:
        """Unsubscribe in the model; ``ends``: events wait for nobody any more."""
        subs = self.sim.world.subs
        sub = subs.get(key)
        if sub is None:
            return
        follows = sub.give_back(self)
        if sub.temporary:
            del subs[key]
        self.sim.follow(sub, follows)
        if ends and not sub.temporary and not sub.holders:
            sub.active = sub.suspended = False
            self.sim.touch(key)


class LinePeer(Peer):
    def __init__(self, sim: Simulation) -> None:
        super().__init__(sim)
        self.line_gateway = LineGateway(sim.broker, LineOptions())
        self.gateway = self.line_gateway
        self.name: str | None = None
        self.window = 1
        self.confirm = False
        self.shares: dict[str, int] = {}
        self.delivered: list[tuple[str, str, int]] = []
        self.expect(b"Successfully connected to message_broker")

    def __str__(self) -> str:
        return f"line {self.line_gateway._number} ({self.name})"

    def key(self, topic: str) -> Key:
        return self.name or f"$line-{self.line_gateway._number}", topic

    def introduce(self) -> None:
        r = self.sim.random
        if r.random() < 0.8:
            self.call_me(r.choice(NAMES))
        self.set_confirm(on=r.random() < 0.7)
        self.set_window(r.choice([1, 2, 5]))
        self.sub(self.sim.some_topic())

    def act(self) -> None:
        r, topic = self.sim.random, self.sim.some_topic()
        draw = r.random()
        if draw < 0.35:
            self.publish()
        elif draw < 0.42:
            self.sub(topic)
        elif draw < 0.45:
            self.unsub(topic)
        elif draw < 0.48:
            self.call_me(r.choice(NAMES))
        elif draw < 0.51:
            self.set_window(r.choice([1, 2, 5]))
        elif draw < 0.53:
            self.set_confirm(on=r.random() < 0.8)
        else:
            self.acks()

    def respond(self) -> None:
        while self.delivered:
            self.ack([self.delivered[0][:2]])

    def publish(self) -> None:
        r, lines, sent = self.sim.random, [], []
        mixed = r.random() < 0.3
        topic = self.sim.some_topic()
        for _ in range(r.choice([1, 1, 2, 6])):
            topic = self.sim.some_topic() if mixed else topic
            payload = self.sim.payload(topic)
            fields: dict[str, Any] = {"msg": int(payload)}
            fields["priority"] = r.choice([0, 0, 1, 7])
            if (id_ := r.choice(IDS)) is not None:
                fields["id"] = id_
            lines.append(f"pub {topic} ".encode() + msgspec.json.encode(fields))
            sent.append((topic, payload))
        self.send(*lines)
        for topic, payload in sent:
            lost = (topic, payload) not in self.sim.appended
            begun = payload in self.sim.attempted.get(topic, ())
            if lost and (self.confirm or not begun):
                self.expect(b"error: ")
            elif self.confirm and not lost:
                self.expect(
                    b"published %b " % topic.encode(),
                    b"error: not stored",
                    self.sim.confirm(topic, payload),
                )

    def sub(self, topic: str) -> None:
        known = self.sim.broker.log.has_topic(topic)
        end = self.sim.world.end(topic)
        self.send(b"sub " + topic.encode())
        done = b"successfully subscribed to topic " + topic.encode()
        if not known:
            self.expect(b"error: topic %b does not exist" % topic.encode())
        elif topic in self.shares:
            self.expect(done)
        else:
            policy = Policy(order="priority", window=self.window)
            temporary = self.name is None
            if self.join(self.key(topic), policy, end, temporary=temporary) is None:
                self.expect(b"error: ")
                return
            self.shares[topic] = end
            self.expect(done, done=self.sim.promise(self.key(topic)))

    def unsub(self, topic: str) -> None:
        self.send(b"unsub " + topic.encode())
        self.shares.pop(topic, None)
        self.delivered = [one for one in self.delivered if one[0] != topic]
        self.part(self.key(topic))
        done = b"successfully unsubscribe from topic " + topic.encode()
        self.expect(done, done=self.sim.promise(self.key(topic)))

    def call_me(self, name: str) -> None:
        self.send(b"as " + name.encode())
        if self.shares:
            self.expect(b"error: as must come before")
        else:
            self.name = name
            self.expect(b"subscriber " + name.encode())

    def set_window(self, window: int) -> None:
        self.send(b"window %d" % window)
        self.window = window
        for topic in self.shares:
            self.join(self.key(topic), Policy(order="priority", window=window), 0)
        self.expect(b"window %d" % window)

    def set_confirm(self, *, on: bool) -> None:
        self.confirm = on
        self.send(b"confirm on" if on else b"confirm off")
        self.expect(b"confirm on" if on else b"confirm off")

    def acks(self) -> None:
        """Some that were delivered, and now and then others."""
        r = self.sim.random
        count = min(len(self.delivered), r.choice([1, 1, 3]))
        chosen = [one[:2] for one in r.sample(self.delivered, count)]
        if r.random() < 0.2:
            chosen.append((self.sim.some_topic(), r.choice(["1", "2", "9"])))
        self.ack(chosen)

    def ack(self, chosen: list[tuple[str, str]]) -> None:
        if not chosen:
            return
        self.send(*(f"ack {topic} {id_}".encode() for topic, id_ in chosen))
        for topic, id_ in chosen:
            self.acked(topic, id_)

    def acked(self, topic: str, id_: str) -> None:
        if topic not in self.shares:
            self.expect(b"error: not a topic %b subscriber" % topic.encode())
            return
        key = self.key(topic)
        sub = self.sim.world.subs[key]
        for one in [one for one in self.delivered if one[:2] == (topic, id_)]:
            self.delivered.remove(one)
            debt = sub.held(one[2], self)
            if debt is not None and debt.stage == SENT:
                sub.settle(one[2])
                logs = one[2] < self.shares[topic]
                answer = b"logs ev_id=" + id_.encode() if logs else b"current session"
                done = self.sim.settled(key, one[2])
                self.expect(b"acknowledged from " + answer, done=done)
                return
        self.expect(b"no_event_error: " + id_.encode())

    def line(self, line: bytes) -> None:
        if line.startswith(b"{"):
            self.event(msgspec.json.decode(line))
        elif line == b"no available message":
            idle = [
                topic
                for topic in self.shares
                if not self.sim.unsettled(self.key(topic))
            ]
            self.sim.expect(bool(idle), f"{self}: {line!r}, but there are some")
        else:
            self.answered(line)

    def event(self, event: dict[str, Any]) -> None:
        topic, payload = event["topic"], msgspec.json.encode(event["msg"])
        offset = self.sim.deliver(self, self.key(topic), payload)
        row = self.sim.world.topics[topic][offset]
        right = (event["id"], event["priority"]) == (row.id, row.priority)
        self.sim.expect(right, f"{self} got {event}, not {row}")
        self.delivered.append((topic, event["id"], offset))

    def ended(self, sub: Sub, reason: str) -> None:
        self.shares.pop(sub.topic)
        self.delivered = [one for one in self.delivered if one[0] != sub.topic]
        self.expect(f"error: subscription to {sub.topic} ended: {reason}".encode())
