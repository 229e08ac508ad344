"""A real broker on a disk that can fail, beside its model.

``Life`` opens the broker, follows what its log does and what its clients are told.
Crashes are in broker_recovery.py, what happens at random in broker_simulation.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from penstock.broker.broker import Broker
from penstock.broker.options import BrokerOptions
from penstock.clock import ManualClock
from penstock.delivery.letters import TOPIC as LETTERS
from penstock.delivery.letters import decode_letter
from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.log import (
    Appended,
    AppendedRows,
    Columns,
    GroupCommit,
    Log,
    LogOptions,
    StoreWork,
    TopicOptions,
)
from penstock.testing import CrashDisk
from tests.properties.broker_json_peers import User
from tests.properties.broker_model import (
    LOST,
    Debt,
    Follows,
    Key,
    Message,
    Row,
    Sub,
    World,
    is_suspect,
    kept,
)
from tests.properties.broker_peers import Peer
from tests.properties.broker_watch import Opening, Place, WatchedLog

DIRECTORY = "/data"
OPTIONS = LogOptions(
    journal_file_bytes=8192,
    checkpoint_bytes=12_000,
    group_bytes=1200,
    write_out_bytes=3000,
    tail_cache_bytes=1000,
)
BROKER_OPTIONS = BrokerOptions(pending_ttl_s=150.0, dedup_age_s=120.0)
TOPIC_OPTIONS = TopicOptions(segment_bytes=2000)


class Life:
    def __init__(self, seed: int, disk: CrashDisk | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.disk = disk or CrashDisk()
        self.clock = ManualClock()
        self.trace: list[str] = []
        self.met: Counter[str] = Counter()
        """What has happened, for those who ask whether anything did."""
        self.peers: list[Peer] = []
        self.connected: dict[str, JsonConsumerGateway] = {}
        self.commit: GroupCommit | None = None
        self.work: StoreWork | None = None
        self.deleting: str | None = None
        self.undecided: set[str] = set()
        """Topics whose deletion failed, and may be found in a ghost."""
        # What clients know, whatever happens to the broker.
        self.users: dict[str, User] = {}
        self.attempted: dict[str, set[bytes]] = {}
        self.received: dict[int, Message] = {}
        self.expired: set[bytes] = set()
        self.ticks = False
        """Whether the broker has begun what time brings, and was not done."""
        self.confirmed: dict[str, dict[int, bytes]] = {}
        self.answered: dict[Key, set[int]] = {}
        self.observed: dict[Key, set[int]] = {}
        self.promised: dict[Key, bool | None] = {}
        self.versions: Counter[Key] = Counter()
        self.epochs: Counter[Key] = Counter()
        self.moved: set[Key] = set()
        """Whose position was moved in this life."""
        # The model.
        self.world = World()
        self.appended: dict[tuple[str, bytes], Row] = {}
        self.history: list[tuple[int, dict[str, Any]]] = []
        self.ghosts: list[tuple[int, dict[str, Any]]] = []
        self.broker = self._open()
        self._begin()

    @property
    def now_s(self) -> float:
        return self.clock.now_s()

    def expect(self, true: bool, message: str) -> None:
        if not true:
            steps = "\n".join(self.trace[-60:])
            raise AssertionError(f"seed {self.seed}: {message}\nafter\n{steps}")

    def _open(self) -> Broker:
        def open_log(*, owners: Any) -> Log:
            log = WatchedLog.open(
                DIRECTORY,
                OPTIONS,
                files=self.disk,
                clock=self.clock,
                owners=owners,
                entropy=self.random.randbytes,
            )
            log.watch = Opening(self.attempted)
            return log

        broker = Broker(open_log, BROKER_OPTIONS, TOPIC_OPTIONS)
        if self.random.random() < 0.2:  # it dies before it has done anything
            broker.log.abandon()
            broker = Broker(open_log, BROKER_OPTIONS, TOPIC_OPTIONS)
        broker.log.commit(sync=True)
        assert isinstance(broker.log, WatchedLog)
        broker.log.watch = self
        return broker

    def _begin(self) -> None:
        log = self.broker.log
        self.history = [(log.written, kept(self.broker, self.world.topics))]
        self._lay_ghosts()

    def _lay_ghosts(self) -> None:
        """A failed group may be found until its place is written over."""
        here = self.broker.log.position
        self.ghosts = [ghost for ghost in self.ghosts if ghost[0] == here]
        if not self.ghosts:
            self.undecided.clear()

    # What the log does

    def noted_append(
        self,
        places: Sequence[Place],
        events: Columns,
        appended: Appended | AppendedRows,
    ) -> None:
        rows_of_events = zip(places, events.payloads, strict=True)
        for index, ((name, offset), payload) in enumerate(rows_of_events):
            rows = self.world.waiting.setdefault(name, [])
            where = self.world.end(name)
            self.expect(offset == where, f"{name} goes on at {offset}, not {where}")
            id_ = None if events.ids is None else events.ids[index]
            row = Row(
                payload,
                id_ or appended.generated_id(index),
                0 if events.priorities is None else events.priorities[index],
                appended.group,
            )
            rows.append(row)
            self.attempted.setdefault(name, set()).add(payload)
            self.appended[name, payload] = row

    def noted_begin(self, commit: GroupCommit) -> None:
        state = kept(self.broker, self.world.topics)
        self.history.append((commit.number, state))

    def noted_end(self, commit: GroupCommit) -> None:
        log = self.broker.log
        if commit.error is None:
            self.world.committed(commit.number)
            if self.deleting is not None and not log.has_topic(self.deleting):
                self.forget_topic(self.deleting)
                self.met["topic deleted"] += 1
            self.history = [one for one in self.history if one[0] >= log.synced]
            self._lay_ghosts()
            return
        self.met["a commit fails"] += 1
        self.trace.append("  the commit fails")
        number, state = self.history.pop()
        assert number == commit.number
        self.ghosts.append((log.position, state))
        self._take_back()

    def _take_back(self) -> None:
        log, world = self.broker.log, self.world
        names = {topic.name for topic in log.each_topic()}
        world.taken_back(log.written, names)
        there = {(name, row.payload) for name in names for row in self.rows(name)}
        self.appended = {k: row for k, row in self.appended.items() if k in there}
        for sub in list(world.subs.values()):
            if sub.topic not in names:
                self.end_sub(sub, "the topic is gone")
            for debt in sub.owed.values():
                if debt.group > log.written:
                    debt.group = log.open_group

    # Facts

    def rows(self, topic: str) -> list[Row]:
        world = self.world
        return world.topics.get(topic, []) + world.waiting.get(topic, [])

    def at(self, topic: str, offset: int) -> Row:
        return self.rows(topic)[offset]

    def offset(self, topic: str, payload: bytes) -> int | None:
        rows = self.rows(topic)
        return next((o for o, row in enumerate(rows) if row.payload == payload), None)

    def unsettled(self, key: Key) -> list[int]:
        return self.world.subs[key].unsettled(self.world.topics.get(key[1], []))

    # What peers report

    def touch(self, key: Key) -> None:
        """Whether a subscription is there and active has changed."""
        self.versions[key] += 1
        self.promised.pop(key, None)

    def reset(self, key: Key) -> None:
        """A position was moved: nothing counts as settled any more."""
        self.epochs[key] += 1
        self.answered.pop(key, None)
        self.moved.add(key)
        if key[0] in self.users:
            self.users[key[0]].again(key[1])

    def promise(self, key: Key) -> Callable[[bytes], None]:
        """What an answer about a subscription promises."""
        version = self.versions[key]
        sub = self.world.subs.get(key)

        def done(_: bytes) -> None:
            lasting = sub is not None and not sub.temporary
            if lasting and self.versions[key] == version:
                self.promised[key] = self.world.subs[key].active

        return done

    def settled(self, key: Key, offset: int) -> Callable[[bytes], None]:
        """What an answer to a settlement promises."""
        epoch, sub = self.epochs[key], self.world.subs[key]

        def done(_: bytes) -> None:
            if self.epochs[key] == epoch and not sub.temporary:
                self.answered.setdefault(key, set()).add(offset)
                qos = sub.policy.qos
                self.met["PUBCOMP answered" if qos == 2 else "ack answered"] += 1

        return done

    def confirm(self, topic: str, payload: bytes) -> Callable[[bytes], None]:
        """What the confirmation of a publish promises."""
        epoch = self.epochs["", topic]

        def done(line: bytes) -> None:
            if self.epochs["", topic] != epoch:
                return
            rows = self.world.topics.get(topic, [])
            found = [o for o, row in enumerate(rows) if row.payload == payload]
            self.expect(len(found) == 1, f"{line!r}: {topic} {payload!r} at {found}")
            if line.startswith(b"published"):
                said = int(line.split()[-1])
                self.expect(said == found[0], f"{line!r} is at {found[0]}")
            self.confirmed.setdefault(topic, {})[found[0]] = payload
            self.met["confirmation"] += 1

        return done

    def deliver(self, peer: Peer, key: Key, payload: bytes) -> int:
        """An event has reached a client; its offset."""
        what = f"{peer} got {key[1]} {payload!r}"
        sub = self.world.subs.get(key)
        self.expect(sub is not None and sub.active, f"{what} without a subscription")
        assert sub is not None
        rows = self.world.topics.get(key[1], [])
        amended = [o for o, debt in sub.owed.items() if debt.amended]
        found = [o for o in amended if sub.owed[o].amended == payload]
        self.met["amended delivery"] += len(found)
        for offset, row in enumerate(rows):
            if row.payload == payload and offset not in amended:
                found.append(offset)
        self.expect(len(found) == 1, f"{what}, which is at {found}")
        offset = found[0]
        self.expect(peer in sub.holders, f"{what} without a share")
        self.expect(offset not in self.answered.get(key, ()), f"{what} after its ack")
        self.expect(sub.credit > 0, f"{what} beyond the window")
        due = sub.next(rows)
        self.expect(offset == due, f"{what} at {offset}, but {due} is to go first")
        debt = sub.sent(offset, peer, self.now_s)
        others = [d for d in sub.owed.values() if d is not debt and d.stage == 0]
        if debt.alone and any(is_suspect(sub.policy, other) for other in others):
            self.met["sent alone"] += 1
        self.met["delivery" if debt.tries == 1 else "delivery again"] += 1
        if offset > min(sub.unsettled(rows)) and sub.policy.window == 1:
            self.met["priority first"] += 1
        if sub.policy.qos == 0:
            sub.settle(offset)
        self.observed.setdefault(key, set()).add(offset)
        return offset

    def follow(self, sub: Sub, follows: Follows) -> None:
        """Tries have failed; after the last a letter, owed as before, or suspended."""
        key = sub.name, sub.topic
        if self.world.subs.get(key) is not sub:
            return  # it ended, perhaps because the commit of a letter failed
        one = self.broker.subscription(*key)
        for offset, (then, debt) in follows.items():
            lost = bool(debt.fails) and debt.fails[-1][1] == LOST
            self.met["lost"] += lost
            if then == "suspend":
                self._suspend(sub)
            if then != "dead-letter":
                continue
            if offset in one.owed:
                sub.unbury(offset, debt.amended, debt)
                continue
            self.met["lost for good"] += lost
            group = self._check_letter(key, offset, debt)
            if group > self.broker.log.written:
                self.world.unconfirmed_letters.append((group, key, offset, debt))

    def _check_letter(self, key: Key, offset: int, debt: Debt) -> int:
        """The newest letter of an event says everything about it; its group."""
        for row in reversed(self.rows(LETTERS)):
            letter = decode_letter(row.payload)
            if (letter.subscriber, letter.topic, letter.offset) == (*key, offset):
                break
        else:
            raise AssertionError(f"seed {self.seed}: {key} {offset} has no letter")
        fails = [(failure.tries, failure.kind) for failure in letter.failures]
        self.expect(fails == debt.fails, f"{letter} of {debt}")
        self.expect(letter.tries == debt.tries, f"{letter} of {debt}")
        wanted = debt.amended or self.at(key[1], offset).payload
        assert letter.event is not None
        self.expect(letter.event.payload == wanted, f"{letter} is not of {wanted!r}")
        return row.group

    def _suspend(self, sub: Sub) -> None:
        for peer in list(sub.holders):
            assert isinstance(peer, Peer)
            sub.give_back(peer)
            peer.ended(sub, "")
        sub.active, sub.suspended = False, True
        self.touch((sub.name, sub.topic))
        self.met["PUB exhausted"] += 1

    def end_sub(self, sub: Sub, reason: str) -> None:
        """The broker ends a subscription."""
        key = sub.name, sub.topic
        for holder in list(sub.holders):
            assert isinstance(holder, Peer)
            sub.give_back(holder)
            holder.ended(sub, reason)
        del self.world.subs[key]
        self.touch(key)
        self.reset(key)

    def forget_topic(self, topic: str) -> None:
        """A topic is gone with all that anybody knew of it."""
        for sub in list(self.world.subs.values()):
            if sub.topic == topic:
                self.end_sub(sub, "the topic was deleted")
        self.world.drop(topic)
        self.epochs["", topic] += 1
        self.confirmed.pop(topic, None)
        self.observed = {k: v for k, v in self.observed.items() if k[1] != topic}
        self.answered = {k: v for k, v in self.answered.items() if k[1] != topic}
        self.appended = {k: v for k, v in self.appended.items() if k[0] != topic}
        for one in list(self.received.values()):
            if one.topic == topic and one.id not in self.world.messages:
                del self.received[one.id]
        for user in self.users.values():
            user.forget(topic)
