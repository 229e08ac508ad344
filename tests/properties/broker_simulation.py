"""A broker's life at random: clients, time, commits, failures and crashes.

Everything is drawn from a seed. After every step the broker is compared with its
model; in the end everybody comes back and settles what is left, and nothing may be.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress

from penstock.delivery.amend import EventCopy, amended_frame
from penstock.errors import PenstockError, WriteFailed
from penstock.log import TopicOptions
from penstock.model.policy import Policy
from penstock.testing import CrashDisk, PowerCut
from tests.properties.broker_json_peers import ConsumerPeer, PublisherPeer
from tests.properties.broker_model import Message
from tests.properties.broker_native_peer import NativePeer
from tests.properties.broker_peers import LinePeer, Peer
from tests.properties.broker_recovery import Recovery

TOPICS = ("a", "b", "o")
DEAD = "deadLetterChan"
PEERS: list[type[Peer]] = [
    LinePeer,
    LinePeer,
    ConsumerPeer,
    ConsumerPeer,
    PublisherPeer,
    NativePeer,
    NativePeer,
]
MAX_PEERS = 7
ROUNDS = 600


class Simulation(Recovery):
    def __init__(self, seed: int, disk: CrashDisk | None = None) -> None:
        self.ran = False
        self.sick = False
        """Whether writes may fail."""
        self.counter = 0
        super().__init__(seed, disk)
        self.broker.create_topic("o", TopicOptions(durability="os"))
        self.broker.create_topic("a")
        self.broker.log.commit()

    def run(self, steps: int) -> None:
        """Do ``steps`` random operations, checking as it goes, and then settle."""
        for _ in range(steps):
            operation = self.random.choices(OPERATIONS, WEIGHTS)[0]
            self.trace.append(operation.__name__)
            self._attempt(operation)
            self.check()
            self.clock.advance(self.random.random() * 0.2)
        self.trace.append("drain")
        self.drain()

    def _attempt(self, operation: Callable[[Simulation], None]) -> None:
        """Do something with the power cut at a random call, now and then."""
        if self.random.random() < 0.01:
            self.disk.cut_power_in(self.random.randint(1, 12))
        try:
            operation(self)
        except PowerCut:
            self.crash(power=True)
        self.disk.cut_power_in(None)

    # What clients ask for

    def some_topic(self) -> str:
        return DEAD if self.random.random() < 0.05 else self.random.choice(TOPICS)

    def payload(self, topic: str) -> bytes:
        self.counter += 1
        return b"%d" % self.counter

    def junk(self) -> bytes:
        self.counter += 1
        return b"junk %d" % self.counter

    # Clients

    def connect(self) -> None:
        if len(self.peers) < MAX_PEERS:
            peer = self.random.choice(PEERS)(self)
            self.enter(peer)
            if self.random.random() < 0.9:
                peer.introduce()

    def enter(self, peer: Peer) -> None:
        self.peers.append(peer)
        peer.start()

    def disconnect(self) -> None:
        if self.peers:
            self.leave(self.random.choice(self.peers))

    def leave(self, peer: Peer) -> None:
        self.trace.append(f"  {peer} leaves")
        self.peers.remove(peer)
        peer.disconnect()

    def fall(self) -> None:
        """A consumer dies with what it holds, and so does the next, and the next."""
        holding = [p for p in self.peers if isinstance(p, NativePeer) and p.held]
        if not holding:
            return
        peer = self.random.choice(holding)
        name, topic = peer.channels[peer.held[0][0]]
        sub = self.world.subs[name, topic]
        for _ in range(self.random.randint(1, 4)):
            for channel, key in list(peer.channels.items()):
                if key == (name, topic) and self.random.random() < 0.2:
                    peer.unsubscribe(channel)  # in good order, with some put back
            self.leave(peer)
            if sub.temporary or self.world.subs.get((name, topic)) is not sub:
                return
            peer = NativePeer(self)
            self.enter(peer)
            peer.subscribe_as(topic, name, "latest", sub.policy)
            self.commit_now()
            self.pull(peer)

    def act(self) -> None:
        if not self.peers:
            return
        peer = self.random.choice(self.peers)
        if not peer.gateway.closing:
            peer.act()
        if self.random.random() < 0.7:
            self.pull(peer)

    def stall(self) -> None:
        if self.peers:
            peer = self.random.choice(self.peers)
            peer.stalled = not peer.stalled

    def pump(self) -> None:
        """Let everybody send who was woken, as a server does."""
        awake, self.broker.awake = self.broker.awake, {}
        for peer in list(self.peers):
            peer.wanted = peer.wanted or peer.gateway in awake
            if peer.wanted:
                self.pull(peer)

    def pull(self, peer: Peer) -> None:
        if not peer.stalled:
            peer.pull()
            if peer.gateway.closing:
                self.leave(peer)

    # Commits, as a server does them and as anybody may

    def commit_now(self) -> None:
        if self.commit is None and self.work is None:
            with suppress(WriteFailed):
                self.broker.log.commit()

    def begin(self) -> None:
        if self.commit is None and self.broker.dirty:
            self.commit, self.ran = self.broker.log.begin_commit(), False

    def run_commit(self) -> None:
        if self.commit is not None and not self.ran:
            self.ran = True
            self.commit.run()

    def end(self) -> None:
        if self.commit is not None:
            self.run_commit()
            commit, self.commit = self.commit, None
            self.broker.log.end_commit(commit)

    def begin_store(self) -> None:
        if self.work is None:
            self.work = self.broker.log.begin_store()

    def end_store(self) -> None:
        if self.work is not None:
            work, self.work = self.work, None
            work.run()
            self.broker.log.end_store(work)

    def checkpoint(self) -> None:
        if self.commit is None and self.work is None:
            with suppress(WriteFailed):
                self.broker.log.checkpoint()

    def fail(self) -> None:
        """Some calls of the file system fail from now on."""
        actions = self.random.sample(["write", "sync", "truncate", "create"], 2)
        error = OSError(self.random.choice([errno.ENOSPC, errno.EIO]), "simulated")
        places = self.random.choice([(".jnl",), (".jnl", ".seg", ".tmp")])
        self.trace.append(f"  {actions} of {places}")
        self.sick = True
        self.disk.fail(
            lambda what, path: (
                error if what in actions and path.endswith(places) else None
            )
        )

    def heal(self) -> None:
        self.sick = False
        self.disk.fail(None)

    # Time and administration

    def step_clock(self) -> None:
        self.clock.advance(self.random.choice([0.5, 4, 11, 11, 60]))
        self.tick()

    def tick(self) -> None:
        oldest_ms = (self.now_s - self.broker.options.pending_ttl_s) * 1000
        # Before anything else: the power may go in the middle.
        self.expired.update(one.payload for one in self._late(oldest_ms))
        self.ticks = True
        self.broker.tick(self.now_s)
        self.ticks = False
        for sub in list(self.world.subs.values()):
            before = len(sub.settled)
            again, follows = sub.expire(self.now_s)
            self.met["PUBREL again"] += len(again)
            if sub.policy.qos == 2:
                self.met["PUBREL exhausted"] += len(sub.settled) - before
            for holder, offset in again:
                if isinstance(holder, ConsumerPeer):
                    holder.expect_pubrel(sub, offset)
            self.follow(sub, follows)
        # Not those of before: a commit may have failed that had given up some.
        for message in self._late(oldest_ms):
            stays = self.broker.pending.get(message.id) is not None
            refused = self.sick or self.commit is not None or self.work is not None
            if not (stays and refused):
                message.ended = self._given_up_in(message.id)
                self.met["pending expired"] += 1

    def _late(self, oldest_ms: float) -> list[Message]:
        """Pending messages that are given up now."""
        pending = self.world.pending().values()
        return [one for one in pending if one.at_ms < oldest_ms]

    def _given_up_in(self, msg_id: int) -> int:
        """The group of it, which keeping a letter may have closed already."""
        changes, group = self.broker.pending._changes, self.broker.group
        if msg_id in {one.id for _, one in changes._open}:
            return group
        flying = msg_id in {one.id for _, one in changes._flying}
        return group - 1 if flying else self.broker.log.written

    def seek(self) -> None:
        lasting = [k for k, sub in self.world.subs.items() if not sub.temporary]
        if not lasting:
            return
        key = self.random.choice(sorted(lasting))
        end = self.world.end(key[1])
        offset = self.random.randint(0, end)
        self.trace.append(f"  {key} to {offset}")
        starts: list[str | int] = ["latest", offset]
        self.broker.seek(*key, self.random.choice(starts))
        self.reset(key)
        sub = self.world.subs[key]
        sub.seek(self.broker.subscription(*key).cursor.start)
        for peer in sub.holders:
            assert isinstance(peer, Peer)
            peer.moved(sub)
        self.expect(sub.start in (end, offset), f"{key} is at {sub.start}")

    def amend(self) -> None:
        """An event that was settled is owed again with another payload."""
        chosen = [
            (key, offset)
            for key, sub in sorted(self.world.subs.items())
            for offset in sorted(sub.settled)
            if not sub.temporary and offset < len(self.world.topics.get(key[1], ()))
        ]
        if not chosen:
            return
        key, offset = self.random.choice(chosen)
        row, payload = self.world.topics[key[1]][offset], self.payload(key[1])
        self.trace.append(f"  {key} {offset} is {payload!r}")
        copy = EventCopy(id=row.id, timestamp_ms=7, priority=row.priority)
        frame = amended_frame(copy, key[1], offset, payload)
        one = self.broker.subscription(*key)
        one.add_back(offset, row.priority, frame)
        self.broker.wake(one)
        self.reset(key)
        self.world.subs[key].unbury(offset, payload)

    def note_tries(self) -> None:
        """Somebody wants tries written before it begins."""
        for one in self.broker.subscriptions:
            one.note_tries()

    def forget(self) -> None:
        keys = list(self.world.subs)  # not sorted: some names hold a global counter
        if keys:
            key = self.random.choice(keys)
            self.trace.append(f"  {key}")
            self.broker.forget(*key)
            self.end_sub(self.world.subs[key], "the subscription was forgotten")

    def delete(self) -> None:
        topic = self.some_topic()
        if self.commit or self.work or not self.broker.log.has_topic(topic):
            return
        self.trace.append(f"  {topic}")
        self.deleting = topic
        try:
            self.broker.delete_topic(topic)
            self.broker.log.commit()
        except WriteFailed:
            self.trace.append("  which fails")
            self.undecided.add(topic)
        self.deleting = None

    # Accidents

    def kill(self) -> None:
        self.crash(power=False)

    def cut(self) -> None:
        self.crash(power=True)

    def close(self) -> None:
        self.heal()
        self.restart()

    # The end

    def drain(self) -> None:
        """Everybody comes back and answers: nothing is left, nothing was lost."""
        self.heal()
        self._finish_work()
        while self.peers:
            self.leave(self.peers[0])
        with suppress(PenstockError):  # the segments may have been full until now
            self.broker.log.commit()
        self._everybody()
        for _ in range(ROUNDS):
            for peer in list(self.peers):
                peer.respond()
            if self.broker.dirty:
                self.broker.log.commit()
            self.pump()
            self.check()
            if not self.broker.dirty and not self.broker.awake and self._settled():
                break
        self._check_end()

    def _settled(self) -> bool:
        return not any(self.unsettled(key) for key in self.world.subs)

    def _everybody(self) -> None:
        users: dict[str, ConsumerPeer] = {}
        self.enter(PublisherPeer(self))
        for key, sub in list(self.world.subs.items()):
            name, topic = key
            if sub.policy.qos == 2:
                if name not in users:
                    users[name] = ConsumerPeer(self)
                    self.enter(users[name])
                    users[name].log_in(name)
                users[name].sub(topic)
            elif sub.policy.order == "priority" and self.random.random() < 0.5:
                line = LinePeer(self)
                self.enter(line)
                line.call_me(name)
                line.sub(topic)
            else:
                native = NativePeer(self)
                self.enter(native)
                qos = sub.policy.qos
                policy = Policy(order=sub.policy.order, window=3, qos=qos)
                native.subscribe_as(topic, name, "latest", policy)

    def _check_end(self) -> None:
        for key, sub in self.world.subs.items():
            left = self.unsettled(key)
            self.expect(not left, f"{key} never got {left}")
            offsets = range(sub.start, len(self.world.topics.get(key[1], [])))
            unseen = set(offsets) - self.observed.get(key, set())
            self.expect(not unseen, f"{key} settled {unseen} unseen")
        for peer in self.peers:
            due = [one.text for one in peer.expected]
            self.expect(not due, f"{peer} was never answered: {due}")
            if isinstance(peer, NativePeer):
                self.expect(not peer.handlers, f"{peer} was never answered")
        self.expect(not self.world.messages, f"pending: {self.world.messages}")
        found = self._read_topics()
        for name, rows in self.world.topics.items():
            there = [row.payload for row in found[name]]
            wanted = [row.payload for row in rows]
            self.expect(there == wanted, f"{name} is {there}, not {wanted}")
        self._check_promises(found)


_WEIGHTED: dict[Callable[[Simulation], None], int] = {
    Simulation.act: 240,
    Simulation.connect: 60,
    Simulation.disconnect: 10,
    Simulation.fall: 30,
    Simulation.pump: 60,
    Simulation.stall: 3,
    Simulation.commit_now: 20,
    Simulation.begin: 50,
    Simulation.run_commit: 20,
    Simulation.end: 50,
    Simulation.begin_store: 10,
    Simulation.end_store: 15,
    Simulation.checkpoint: 3,
    Simulation.fail: 3,
    Simulation.heal: 12,
    Simulation.step_clock: 20,
    Simulation.seek: 3,
    Simulation.amend: 6,
    Simulation.note_tries: 10,
    Simulation.forget: 2,
    Simulation.delete: 2,
    Simulation.kill: 4,
    Simulation.cut: 4,
    Simulation.close: 2,
}
OPERATIONS = list(_WEIGHTED)
WEIGHTS = list(_WEIGHTED.values())
