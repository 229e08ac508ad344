"""Crashes of a simulated broker, and what has to be there afterwards.

The broker must be found in the state that some group was closed with: the last one
that is durable, or one behind it. The model goes on from there. Beside that, whatever
any client was told counts on its own: confirmations, acks, PUBREC, subscriptions.
"""

from __future__ import annotations

from typing import Any

from penstock.delivery.error_log import TOPIC as ERRORS
from penstock.delivery.letters import TOPIC as LETTERS
from penstock.delivery.letters import decode_letter
from tests.properties.broker_life import Life
from tests.properties.broker_model import (
    Debt,
    Message,
    Row,
    Sub,
    World,
    bookkeeping,
    dedup_of,
    fails_of,
    kept,
    modelled,
    payload_of,
    pending_of,
    reborn,
    seen,
    settled_of,
    stage_of,
)


class Recovery(Life):
    def crash(self, *, power: bool) -> None:
        """The machine loses power, or only the process dies."""
        what = "power failure" if power else "kill -9"
        self.met[what] += 1
        self.trace.append(f"  {what}")
        log = self.broker.log
        durable = log.synced if power else log.written
        self.disk.fail(None)
        self.disk.cut_power_in(None)
        log.abandon()
        if power:
            self._forgive_unsynced(durable)
            self.disk = self.disk.crashed(self.random)
        self._restart(durable)

    def restart(self) -> None:
        """An orderly end, and a new beginning."""
        self._finish_work()
        self._broker_closes()
        self._restart(self.broker.log.written)

    def _broker_closes(self) -> None:
        for peer in self.peers:
            peer.disconnect()
        self.broker.log.close()

    def _finish_work(self) -> None:
        log = self.broker.log
        if self.commit is not None:
            if not self.ran:
                self.commit.run()
            commit, self.commit = self.commit, None
            log.end_commit(commit)
        if self.work is not None:
            work, self.work = self.work, None
            work.run()
            log.end_store(work)
        log.store()

    def _forgive_unsynced(self, durable: int) -> None:
        """What was written and not synced on purpose may be lost with the power."""
        relaxed = [
            topic.name
            for topic in self.broker.log.each_topic()
            if topic.options.durability == "os"
        ]
        for name in relaxed:
            rows, told = self.rows(name), self.confirmed.get(name, {})
            self.confirmed[name] = {
                o: payload for o, payload in told.items() if rows[o].group <= durable
            }
            for key in {*self.answered, *self.world.subs}:
                if key[1] == name:
                    self.reset(key)

    def _restart(self, durable: int) -> None:
        before = self.world
        self.peers.clear()
        self.connected.clear()
        self.commit = self.work = None
        self.ran = False
        self.broker = self._open()
        found = self._read_topics()
        for topic in (self.deleting, *self.undecided):
            if topic is not None and topic not in found:
                self.forget_topic(topic)
        self.deleting = None
        self.undecided.clear()
        for name, rows in before.topics.items():
            self._check_rows(name, rows, found.get(name, []), durable)
        self.world = self._world(found)
        self._check_state(durable, found)
        self._check_promises(found)
        self.ticks = False
        for name, topic in self.moved:  # perhaps it was forgotten again
            if name in self.users:
                self.users[name].again(topic)
        self.moved.clear()
        self._begin()
        self.check()

    def _check_rows(
        self, name: str, before: list[Row], found: list[Row], durable: int
    ) -> None:
        safe = [row for row in before if row.group <= durable]
        there = [row.payload for row in found]
        wanted = [row.payload for row in safe]
        lost = f"{name} was {wanted}, is {there}"
        self.expect(there[: len(wanted)] == wanted, lost)
        may_be_alike = name in (LETTERS, ERRORS)
        self.expect(len(set(there)) == len(there) or may_be_alike, f"twice: {lost}")
        strange = set(there) - self.attempted.get(name, set())
        self.expect(not strange, f"{name}: nobody published {strange}")

    def _read_topics(self) -> dict[str, list[Row]]:
        log = self.broker.log
        found: dict[str, list[Row]] = {}
        for name in log.topics():
            rows = found[name] = []
            while batches := log.read(name, len(rows)):
                for batch in batches:
                    for event in batch.events():
                        self.expect(event.offset == len(rows), f"{name}: a gap")
                        row = Row(event.payload, event.id, event.priority, 0)
                        rows.append(row)
        return found

    def _world(self, found: dict[str, list[Row]]) -> World:
        """The model of what came back."""
        world = World()
        world.topics = found
        self.appended = {
            (name, row.payload): row for name, rows in found.items() for row in rows
        }
        for one in self.broker.subscriptions:
            sub = Sub(one.subscriber, one.topic, one.policy, one.cursor.start)
            sub.active, sub.suspended = one.active, one.suspended
            sub.settled = settled_of(one, found[one.topic])
            sub.owed = {
                debt.offset: Debt(
                    stage_of(debt),
                    debt.tries,
                    fails=fails_of(one, debt.offset),
                    amended=payload_of(one.amended.get(debt.offset)),
                )
                for debt in one.owed.values()
            }
            world.subs[one.subscriber, one.topic] = sub
        for message in self.broker.pending._messages.values():
            world.messages[message.id] = Message(
                message.id, message.topic, message.payload, message.at_ms
            )
        for topic, known in self.broker.dedup._topics.items():
            for id_, (offset, at_ms) in known.items():
                world.dedup[topic, id_] = (offset, at_ms, 0)
        return world

    def _check_state(self, durable: int, found: dict[str, list[Row]]) -> None:
        actual = kept(self.broker, found)
        states = [state for number, state in self.history if number >= durable]
        states += [state for _, state in self.ghosts]
        possible = [self._pruned(reborn(state)) for state in states]
        self.expect(
            self._pruned(actual) in possible,
            f"came back as none of {len(possible)} states that may be:\n"
            f"{actual}\nbut the first would be\n{possible[0]}",
        )

    def _pruned(self, state: dict[str, Any]) -> dict[str, Any]:
        """Without what belongs to topics that are not there, or is too old."""
        topics = self.world.topics
        oldest_ms = (self.now_s - self.broker.options.dedup_age_s) * 1000
        return {
            "subs": {k: v for k, v in state["subs"].items() if k[1] in topics},
            "pending": state["pending"],
            "dedup": {
                key: place
                for key, place in state["dedup"].items()
                if key[0] in topics and place[1] >= oldest_ms
            },
        }

    def _check_promises(self, found: dict[str, list[Row]]) -> None:
        for name, told in self.confirmed.items():
            rows = found.get(name, [])
            for offset, payload in told.items():
                there = offset < len(rows) and rows[offset].payload == payload
                self.expect(there, f"confirmed: {name} {offset} {payload!r}")
        for key, active in self.promised.items():
            sub = self.world.subs.get(key)
            if self.ticks and sub is not None and sub.suspended:
                self.promised[key] = False  # on disk before the power went
                continue
            is_active = None if sub is None else sub.active
            self.expect(is_active == active, f"{key} is {is_active}, not {active}")
        for key, offsets in self.answered.items():
            sub = self.world.subs.get(key)
            settled = set() if sub is None else sub.settled
            forgotten = {o for o in offsets if sub and o >= sub.start} - settled
            self.expect(not forgotten, f"{key} has to settle {forgotten} again")
        self._check_received(found)

    def _check_received(self, found: dict[str, list[Row]]) -> None:
        """Every PUBREC holds: pending, published, or a dead letter."""
        letters = self.raw_letters(found)
        ids = self.broker.pending._next_id
        for message in self.received.values():
            self.expect(message.id < ids, f"{message.id} is given out again")
            rows = found.get(message.topic, [])
            published = any(row.payload == message.payload for row in rows)
            pending = message.id in self.world.messages
            here = published + pending
            buried = message.payload in letters and message.payload in self.expired
            self.expect(here == 1 or buried, f"{message} is there {here} times")

    def raw_letters(self, found: dict[str, list[Row]]) -> set[bytes]:
        rows = found.get(LETTERS, [])
        return {decode_letter(row.payload).raw or b"" for row in rows}

    # While it lives

    def check(self) -> None:
        """The broker and its model agree, and the broker with itself."""
        broker, world = self.broker, self.world
        for topic in broker.log.each_topic():
            rows = world.topics.get(topic.name, [])
            ends = topic.end_offset, topic.next_offset
            wanted = len(rows), world.end(topic.name)
            self.expect(ends == wanted, f"{topic.name} ends at {ends}, not {wanted}")
        real = {(one.subscriber, one.topic): one for one in broker.subscriptions}
        self.expect(
            real.keys() == world.subs.keys(),
            f"subscriptions {sorted(real)}, not {sorted(world.subs)}",
        )
        for key, one in real.items():
            rows = world.topics.get(one.topic, [])
            is_, wanted_ = seen(one, rows), modelled(world.subs[key])
            self.expect(is_ == wanted_, f"{key} is\n{is_}, not\n{wanted_}")
            wrong = bookkeeping(one, rows)
            self.expect(wrong is None, f"{key}: {wrong}")
        pending = {m.id: (m.topic, m.payload) for m in world.pending().values()}
        self.expect(pending_of(broker) == pending, f"pending: {pending}")
        now_ms = broker.log.now_ms() - broker.options.dedup_age_s * 1000
        dedup = {k: v[0] for k, v in world.dedup.items() if v[1] >= now_ms}
        self.expect(dedup_of(broker) == dedup, f"{dedup_of(broker)}, not {dedup}")
