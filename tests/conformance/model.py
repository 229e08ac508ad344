"""A client that knows what it has to get, and does its part badly at times.

It acknowledges late or not at all, is cut off, comes back, and compares everything it
is sent with what was published while it was subscribed:

- QoS 2 comes exactly once, whatever happens in between; QoS 1 at least once, and again
  only after a cut; QoS 0 at most once, or again after a crash of the server;
- nothing comes that was not subscribed to; nothing is missing in the end;
- first deliveries keep the order of a topic; what comes again has its identifier and
  says so; no more is under way than the client takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.conformance.packets import (
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    RECEIVE_MAXIMUM,
    SESSION_EXPIRY,
    Packet,
)
from tests.conformance.peer import Peer

KEEP = (SESSION_EXPIRY, 1000)
# Of a message of QoS 2: its PUBREL has come, so the PUBLISH may not come any more.
LATE = ("released", "waits for PUBREL")


@dataclass
class Due:
    """A message that the client may get, and has to unless it is let off."""

    topic: str
    published: int
    levels: set[int]
    must: bool


@dataclass
class Client:
    name: str
    random: Random
    version: int = 5
    peer: Peer | None = None
    topic_filters: dict[str, int] = field(default_factory=dict)
    due: dict[int, Due] = field(default_factory=dict)
    got: dict[int, int] = field(default_factory=dict)
    """How often each message came, duplicates of one delivery left out."""
    unacked: list[tuple[int, int]] = field(default_factory=list)
    """Identifier and message of QoS 1, in the order they came."""
    received: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Identifier of QoS 2 -> message, and how far it is."""
    under_way: set[int] = field(default_factory=set)
    most: int = 65535
    spare: int = 0
    killed: bool = False
    passing: bool = False
    """Whether the session ends with the connection, as version 3.1.1 has it."""
    last: dict[tuple[str, int], int] = field(default_factory=dict)

    def connect(self, port: int, *, clean: bool = False, most: int = 65535) -> None:
        self.peer = Peer(port, version=self.version)
        most = most if self.version == 5 else 65535
        limits = [KEEP] if most == 65535 else [KEEP, (RECEIVE_MAXIMUM, most)]
        answer = self.peer.connect(self.name, clean=clean, pairs=limits)
        assert answer.reason == 0, answer
        self.most, self.under_way, self.spare = most, set(), 0
        self.passing = clean and self.version == 4
        if clean:
            self._forget()
        self.unacked = []
        self.received = {
            identifier: (number, "waits for PUBREL" if stage in LATE else "waits")
            for identifier, (number, stage) in self.received.items()
        }

    def cut(self) -> None:
        if self.peer is not None:
            self.peer.drop()
            if self.passing:
                self._forget()
        self.peer = None

    def _forget(self) -> None:
        """The session has ended, or a new one begins."""
        self.topic_filters, self.due, self.got, self.last = {}, {}, {}, {}
        self.received = {}

    def subscribe(self, filter: str, qos: int) -> None:
        assert self.peer is not None
        assert self.peer.subscribe(filter, qos=qos).reasons == [qos]
        self._change(filter, qos)

    def unsubscribe(self, filter: str) -> None:
        assert self.peer is not None
        self.peer.unsubscribe(filter)
        self._change(filter, None)

    def _change(self, filter: str, qos: int | None) -> None:
        """What waits for the filter may come as before, or as from now on."""
        less = qos is None or qos < self.topic_filters.get(filter, 0)
        self.topic_filters.pop(filter, None)
        if qos is not None:
            self.topic_filters[filter] = qos
        for one in self.due.values():
            if fits(filter, one.topic):
                one.levels |= {min(one.published, qos)} if qos is not None else set()
                rest = [q for f, q in self.topic_filters.items() if fits(f, one.topic)]
                one.levels |= {min(one.published, q) for q in rest}
                one.must = one.must and not less

    def published(self, number: int, topic: str, qos: int, *, sure: bool) -> None:
        """Somebody published; ``sure``: and was told that it was accepted."""
        granted = [q for f, q in self.topic_filters.items() if fits(f, topic)]
        if granted:
            level = min(qos, max(granted))
            self.due[number] = Due(topic, qos, {level}, sure and level > 0)

    def pump(self, *, lazy: bool) -> None:
        """Take in what has come; ``lazy``: and answer as the mood is."""
        assert self.peer is not None
        self.peer.ping()
        inbox, self.peer.inbox = self.peer.inbox, []
        for packet in inbox:
            if packet.kind == PUBLISH:
                self._message(packet)
            elif packet.kind == PUBREL:
                self._released(packet.packet_id)
        self._answer(lazy=lazy)

    def _message(self, packet: Packet) -> None:
        number, identifier = int(packet.payload), packet.packet_id
        due = self.due.get(number)
        story = f"{self.name}: {number} by {packet}"
        assert due is not None, f"nobody subscribed to it: {story}"
        assert due.topic == packet.topic, story
        assert packet.qos in due.levels, f"{due.levels}: {story}"
        seen = self.got.get(number, 0)
        if packet.qos:
            self.under_way.add(identifier)
            assert len(self.under_way) <= self.most + self.spare, f"too many: {story}"
        if packet.qos == 0:
            assert not seen, f"twice: {story}"
        elif packet.qos == 1:
            assert packet.dup or self.killed or not seen, f"again, unsaid: {story}"
            self.unacked.append((identifier, number))
        elif identifier in self.received:
            known, stage = self.received[identifier]
            assert (known, packet.dup) == (number, True), f"{known} {stage}: {story}"
            assert stage not in LATE, f"after its PUBREL: {story}"
            self.received[identifier] = (number, "come")
            return
        else:
            assert not seen, f"QoS 2 twice: {story}"
            self.received[identifier] = (number, "come")
        if not seen:
            place = (packet.topic, packet.qos)
            assert self.last.get(place, -1) < number, f"order: {self.last}: {story}"
            self.last[place] = number
        self.got[number] = seen + 1

    def _released(self, identifier: int) -> None:
        number, _ = self.received.get(identifier, (-1, ""))
        self.received[identifier] = (number, "released")

    def _answer(self, *, lazy: bool) -> None:
        """Answers in the order of what they answer, or a first part of them."""
        assert self.peer is not None
        count = len(self.unacked)
        for _ in range(self.random.randint(0, count) if lazy else count):
            identifier, _ = self.unacked.pop(0)
            self.peer.ack(PUBACK, identifier)
            self.under_way.discard(identifier)
        for identifier, (number, stage) in list(self.received.items()):
            if stage not in ("come", "released"):
                continue
            if lazy and self.random.random() < 0.4:
                break
            if stage == "come":
                self.peer.ack(PUBREC, identifier)
                self.received[identifier] = (number, "answered")
            else:
                self.peer.ack(PUBCOMP, identifier)
                del self.received[identifier]
                self.spare += identifier not in self.under_way
                self.under_way.discard(identifier)

    def missing(self) -> list[int]:
        return [
            number
            for number, due in self.due.items()
            if due.must and number not in self.got
        ]


def fits(filter: str, topic: str) -> bool:
    """Whether a filter matches, for names without $."""
    wanted, given = filter.split("/"), topic.split("/")
    for at, level in enumerate(wanted):
        if level == "#":
            return True
        if at >= len(given) or level not in ("+", given[at]):
            return False
    return len(wanted) == len(given)
