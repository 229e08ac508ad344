"""Both ends of a QoS 2 handshake with a bad link between them, and accidents.

The broker is real, with its gateways, on a ``CrashDisk``; its peers are simulated and
keep on a disk of their own what the rules of QoS 2 ask them to keep. Commits begin,
run and end as separate steps, so that everything else happens in between. Everything
is drawn from a seed.

What the link may do: lose packets, double them, and let them overtake each other. Two
limits lie in the protocol. A PUB that was overtaken by the PUBREL of the same message
is lost: nobody could tell it from a new message. And PUB and PUBREC of a publisher
come in order or, with the connection, not at all: nothing else ties one to the other.
"""

from __future__ import annotations

import errno
import json
from collections import deque
from functools import partial
from random import Random
from typing import Any

from penstock.broker.broker import Broker
from penstock.clock import ManualClock
from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.gateway.json_publisher import JsonPublisherGateway
from penstock.gateway.options import JsonOptions
from penstock.log import Columns, GroupCommit, Log, LogOptions
from penstock.testing import CrashDisk, PowerCut

# Small enough that some dozen steps take a checkpoint and another journal file.
LOG_OPTIONS = LogOptions(
    journal_file_bytes=4096,
    checkpoint_bytes=3000,
    write_out_bytes=1024,
    tail_cache_bytes=512,
)
OPTIONS = JsonOptions(pub_tries=3, pubrel_tries=3)
TOPIC = "t"
ROOM = 1 << 20
# A run that is not through by then is stuck.
MAX_ROUNDS = 300

Packet = dict[str, Any]


class Site:
    """The broker's side: commits step by step, and everything that goes wrong."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.disk = CrashDisk()
        self.clock = ManualClock()
        self.users: dict[str, JsonConsumerGateway] = {}
        self.crashes = 0
        self._commit: GroupCommit | None = None
        self._ran = False
        self.broker = self._open()

    @property
    def now_s(self) -> float:
        return self.clock.now_s()

    def step(self) -> None:
        """Begin a commit, let it run, or end it."""
        try:
            if self._commit is None:
                if self.broker.dirty:
                    self._commit = self.broker.log.begin_commit()
            elif not self._ran:
                self._ran = True
                self._run(self._commit)
            else:
                commit, self._commit, self._ran = self._commit, None, False
                self.broker.log.end_commit(commit)
                self.broker.log.store()
        except PowerCut:
            self.lose_power()

    def settle(self) -> None:
        """Let the commit under way end, and commit what is left."""
        while self._commit is not None or self.broker.dirty:
            self.step()

    def advance(self) -> None:
        self.clock.advance(self.random.choice([0.1, 1.0, 10.0]))
        self.broker.tick(self.now_s)

    def kill(self) -> None:
        """The process dies, the operating system does not."""
        self.broker.log.abandon()
        self._reopen()

    def lose_power(self) -> None:
        self.disk.cut_power_in(None)
        self.broker.log.abandon()
        self.disk = self.disk.crashed(self.random)
        self._reopen()

    def payloads(self) -> list[int]:
        """What the topic holds now."""
        found: list[int] = []
        while batches := self.broker.log.read(TOPIC, len(found)):
            found += [int(text) for batch in batches for text in batch.payloads()]
        return found

    def _run(self, commit: GroupCommit) -> None:
        fate = self.random.random()
        if fate < 0.1:
            self.disk.fail(lambda what, path: OSError(errno.EIO, "simulated"))
        elif fate < 0.2:
            self.disk.cut_power_in(self.random.randint(1, 3))
        commit.run()
        self.disk.fail(None)
        self.disk.cut_power_in(None)

    def _reopen(self) -> None:
        self.crashes += 1
        self._commit, self._ran = None, False
        self.users = {}
        self.broker = self._open()

    def _open(self) -> Broker:
        open_log = partial(
            Log.open,
            "/data",
            LOG_OPTIONS,
            files=self.disk,
            clock=self.clock,
            entropy=self.random.randbytes,
        )
        return Broker(open_log)


class Link:
    """Packets on their way in one direction."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._packets: list[Packet] = []

    def __bool__(self) -> bool:
        return bool(self._packets)

    def put(self, packet: Packet) -> None:
        self._packets.append(packet)

    def cut(self) -> None:
        self._packets.clear()

    def take(self, *, well: bool) -> Packet | None:
        """The next packet to arrive: the oldest, or any; maybe not for the last time.

        None if it got lost.
        """
        place = 0 if well else self._random.randrange(len(self._packets))
        fate = 1.0 if well else self._random.random()
        packet = self._packets[place]
        if fate > 0.2:  # it stays otherwise, and arrives again
            del self._packets[place]
        if 0.2 < fate < 0.4:
            return None
        overtaken = self._packets[:place]
        self._packets[:place] = [
            one for one in overtaken if one["msgId"] != packet["msgId"]
        ]
        return packet


class Consumer:
    """A receiver by the rules: remembers an id from its PUB until its PUBREL."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.received: list[int] = []
        self._ids: set[int] = set()
        self._down, self._up = Link(site.random), Link(site.random)
        self._gateway: JsonConsumerGateway | None = None
        self._crashes = 0

    def connect(self) -> None:
        if self._connected() is None:
            gateway = JsonConsumerGateway(self.site.broker, OPTIONS, self.site.users)
            gateway.connected(self.site.now_s)
            gateway.receive(b"log ann\r\n", self.site.now_s)
            self._gateway, self._crashes = gateway, self.site.crashes

    def disconnect(self) -> None:
        gateway = self._connected()
        if gateway is not None:
            gateway.disconnected(self.site.now_s)
        self._forget_connection()

    def reconnect(self) -> None:
        self.disconnect()
        self.connect()

    def subscribe(self) -> None:
        self._send({"type": "SUB", "topic": TOPIC})

    def pull(self) -> None:
        """Let the broker send."""
        gateway = self._connected()
        if gateway is not None:
            for packet in packets(gateway.output(self.site.now_s, ROOM)):
                self._down.put(packet)

    def hear(self, *, well: bool = False) -> None:
        """Let a packet of the broker arrive."""
        if self._connected() is not None and self._down:
            packet = self._down.take(well=well)
            if packet is not None:
                self._up.put(self._answer(packet))

    def speak(self, *, well: bool = False) -> None:
        """Let an answer arrive at the broker."""
        if self._connected() is not None and self._up:
            packet = self._up.take(well=well)
            if packet is not None:
                self._send(packet)

    def finish(self) -> None:
        """Have everything delivered over a good link."""
        for _ in range(MAX_ROUNDS):
            self.connect()
            self.subscribe()
            self.site.settle()
            self.pull()
            while self._down or self._up:
                self.hear(well=True)
                self.speak(well=True)
                self.site.settle()
                self.pull()
            if self._connected() and len(self.received) >= len(self.site.payloads()):
                return
            self.site.clock.advance(10)
            self.site.broker.tick(self.site.now_s)

    def _answer(self, packet: Packet) -> Packet:
        id_ = packet["msgId"]
        if packet["type"] == "PUB":
            if id_ not in self._ids:
                self.received.append(packet["msg"])
                self._ids.add(id_)
            return {"type": "PUBREC", "msgId": id_, "topic": TOPIC}
        assert packet["type"] == "PUBREL", packet
        self._ids.discard(id_)
        return {"type": "PUBCOMP", "msgId": id_, "topic": TOPIC}

    def _send(self, packet: Packet) -> None:
        gateway = self._connected()
        if gateway is not None:
            gateway.receive(json.dumps(packet).encode() + b"\n", self.site.now_s)

    def _connected(self) -> JsonConsumerGateway | None:
        if self._crashes != self.site.crashes:
            self._forget_connection()
        return self._gateway

    def _forget_connection(self) -> None:
        self._gateway, self._crashes = None, self.site.crashes
        self._down.cut()
        self._up.cut()


class Publisher:
    """A sender by the rules: PUB again without PUBREC, then PUBREL until PUBCOMP."""

    def __init__(self, site: Site, messages: range) -> None:
        self.site = site
        self.done: set[int] = set()
        self._todo = deque(messages)
        self._sent: deque[int] = deque()
        """Messages whose PUBREC has to come, over this connection."""
        self._owed: dict[int, int] = {}
        """Id -> message, from PUBREC to PUBCOMP; on disk."""
        self._down, self._up = Link(site.random), Link(site.random)
        self._gateway = JsonPublisherGateway(site.broker, OPTIONS)
        self._crashes = site.crashes

    def reconnect(self) -> None:
        """A new connection: what has no PUBREC is published anew."""
        if self._crashes == self.site.crashes:
            self._gateway.disconnected(self.site.now_s)
        self._gateway = JsonPublisherGateway(self.site.broker, OPTIONS)
        self._crashes = self.site.crashes
        self._gateway.connected(self.site.now_s)
        self._todo.extendleft(reversed(self._sent))
        self._sent.clear()
        self._down.cut()
        self._up.cut()

    def publish(self) -> None:
        self._check_connection()
        if self._todo:
            message = self._todo.popleft()
            self._sent.append(message)
            self._send({"type": "PUB", "topic": TOPIC, "msg": message})

    def release(self) -> None:
        """Put a PUBREL on its way, for the first time or again."""
        self._check_connection()
        if self._owed:
            id_ = self.site.random.choice(list(self._owed))
            self._up.put({"type": "PUBREL", "msgId": id_})

    def pull(self) -> None:
        """Let the broker send; PUBREC arrives at once, PUBCOMP when it does."""
        self._check_connection()
        for packet in packets(self._gateway.output(self.site.now_s, ROOM)):
            match packet.get("type"):
                case "PUBREC":
                    self._owed[packet["msgId"]] = self._sent.popleft()
                case "PUBCOMP":
                    self._down.put(packet)
                case _:
                    self.reconnect()  # not stored: nothing that was sent counts
                    return

    def hear(self, *, well: bool = False) -> None:
        self._check_connection()
        if self._down:
            packet = self._down.take(well=well)
            if packet is not None and packet["msgId"] in self._owed:
                self.done.add(self._owed.pop(packet["msgId"]))

    def speak(self, *, well: bool = False) -> None:
        self._check_connection()
        if self._up:
            packet = self._up.take(well=well)
            if packet is not None:
                self._send(packet)

    def finish(self) -> None:
        """Have everything released over a good link."""
        for _ in range(MAX_ROUNDS):
            self.publish()
            self.release()
            self.site.settle()
            self.pull()
            while self._down or self._up:
                self.speak(well=True)
                self.site.settle()
                self.pull()
                self.hear(well=True)
            if not (self._todo or self._sent or self._owed):
                return

    def _send(self, packet: Packet) -> None:
        self._gateway.receive(json.dumps(packet).encode() + b"\n", self.site.now_s)

    def _check_connection(self) -> None:
        if self._crashes != self.site.crashes:
            self.reconnect()


def packets(sent: list[bytes]) -> list[Packet]:
    """The packets among the lines of a gateway, and errors as empty ones."""
    found: list[Packet] = []
    for line in b"".join(sent).splitlines():
        if line.startswith(b"{"):
            found.append(json.loads(line))
        elif line.startswith(b"ERROR"):
            found.append({})
    return found


def deliver(seed: int, steps: int) -> tuple[list[int], list[int], set[int]]:
    """Events to a consumer: what it got, what is stored, what was confirmed."""
    random = Random(seed)
    site = Site(random)
    site.broker.create_topic(TOPIC)
    consumer = Consumer(site)
    consumer.connect()
    consumer.subscribe()
    site.broker.log.commit()
    published: dict[int, int] = {}
    confirmed: set[int] = set()

    def publish() -> None:
        for _ in range(random.choice([1, 1, 3])):
            number = len(published)
            columns = Columns([b"%d" % number], site.broker.log.now_ms())
            published[number] = site.broker.publish(TOPIC, columns).group

    def kill() -> None:
        note()
        random.choice([site.kill, site.lose_power])()

    def note() -> None:
        """Remember what the broker has confirmed, and forget what it never will."""
        for number, group in published.items():
            if group > 0 and site.broker.log.outcome(group) == "synced":
                confirmed.add(number)
                published[number] = 0

    weights = {
        publish: 3,
        site.step: random.choice([2, 12]),  # a slow disk, or a fast one
        consumer.pull: 8,
        consumer.hear: 8,
        consumer.speak: 8,
        site.advance: 2,
        consumer.connect: 2,
        consumer.subscribe: 0.5,
        consumer.disconnect: 0.5,
        consumer.reconnect: random.choice([0.5, 4]),
        kill: random.choice([0.5, 2]),
    }
    crashes = 0
    for _ in range(steps):
        random.choices(list(weights), list(weights.values()))[0]()
        if site.crashes != crashes:  # groups are counted anew
            crashes = site.crashes
            published = dict.fromkeys(published, 0)
        note()
    consumer.finish()
    return consumer.received, site.payloads(), confirmed


def publish(seed: int, steps: int) -> tuple[list[int], set[int]]:
    """Messages of two publishers: what is stored, and what they say is done."""
    random = Random(seed)
    site = Site(random)
    site.broker.create_topic(TOPIC)
    site.broker.log.commit()
    ends = [Publisher(site, range(15)), Publisher(site, range(100, 115))]
    weights: dict[Any, float] = {
        site.step: random.choice([5, 20]),
        site.advance: 1,
        site.kill: 0.5,
        site.lose_power: 0.5,
    }
    for end in ends:
        weights |= {
            end.publish: 3,
            end.release: 5,
            end.pull: 8,
            end.hear: 5,
            end.speak: 6,
            end.reconnect: 0.5,
        }
    for _ in range(steps):
        random.choices(list(weights), list(weights.values()))[0]()
    for end in ends:
        end.finish()
    site.settle()
    return site.payloads(), ends[0].done | ends[1].done
