"""What a broker promises, in the plainest words: lists, sets and no files.

``World`` is the model that a real broker is compared with: topics are lists, a
subscription is the set of what it has settled and a dict of what it owes, a commit
moves events from one list to another. ``seen`` takes the same facts out of a real
broker, and ``kept`` those of them that outlive a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.broker.broker import Broker
from penstock.delivery.owed import Owed
from penstock.delivery.states import ALONE, IN_FLIGHT, PAUSED
from penstock.delivery.states import RELEASED as IS_RELEASED
from penstock.delivery.subscription import MAX_ERRORS, Subscription
from penstock.log import Batch
from penstock.model.policy import Policy

WAITING, SENT, RELEASED = 0, 1, 2
LOST = "Lost"
Key = tuple[str, str]
"""Subscriber and topic."""
Fail = tuple[int, str]
"""Which try failed, and the kind of its error."""


@dataclass(frozen=True)
class Row:
    """An event; no two have the same payload."""

    payload: bytes
    id: str
    priority: int
    group: int


@dataclass
class Debt:
    """An event that was sent and is not settled."""

    stage: int
    tries: int
    due_s: float = 0.0
    holder: object = None
    group: int = 0
    """Whose commit makes the PUBREC durable."""
    fails: list[Fail] = field(default_factory=list)
    amended: bytes | None = None
    """The payload that is sent in place of the event's own."""
    alone: bool = False
    """Whether it was a suspect when it was sent."""

    @property
    def last_failed(self) -> int:
        return self.fails[-1][0] if self.fails else 0

    def failed(self, kind: str) -> None:
        self.fails.append((self.tries, kind))
        del self.fails[:-MAX_ERRORS]


def counts_losses(policy: Policy) -> bool:
    return policy.tries is not None and policy.exhausted == "dead-letter"


def is_suspect(policy: Policy, debt: Debt | None) -> bool:
    """Whether it was lost again and again: twice, or once if that leaves one try."""
    if debt is None or not counts_losses(policy):
        return False
    enough = 1 if policy.tries == 2 else 2
    kinds = [kind for _, kind in debt.fails[-enough:]]
    return kinds == [LOST] * enough


@dataclass
class Sub:
    name: str
    topic: str
    policy: Policy
    start: int
    temporary: bool = False
    active: bool = True
    suspended: bool = False
    settled: set[int] = field(default_factory=set)
    owed: dict[int, Debt] = field(default_factory=dict)
    holders: list[object] = field(default_factory=list)

    @property
    def credit(self) -> int:
        busy = [d for d in self.owed.values() if d.stage != WAITING or d.due_s]
        return self.policy.window - len(busy)

    def unsettled(self, rows: list[Row]) -> list[int]:
        return [o for o in range(self.start, len(rows)) if o not in self.settled]

    def next(self, rows: list[Row]) -> int | None:
        """What is to be sent first among all that could be."""
        open_ = [o for o in self.unsettled(rows) if self._may_go(o)]
        if self.policy.order == "priority":
            return min(open_, key=lambda o: (-rows[o].priority, o), default=None)
        return min(open_, default=None)

    def _may_go(self, offset: int) -> bool:
        debt = self.owed.get(offset)
        if self.policy.in_order and self._overtakes(offset):
            return False
        if debt is None:
            return True
        ready = debt.stage == WAITING and not debt.due_s
        return ready and not (is_suspect(self.policy, debt) and self.guarded)

    def _overtakes(self, offset: int) -> bool:
        """Whether a suspect has to go before it, or to end."""
        for place, debt in self.owed.items():
            out = debt.stage == SENT and debt.alone
            waits = debt.stage == WAITING and is_suspect(self.policy, debt)
            if offset not in self.owed and (out or waits):
                return True
            if out and place < offset:
                return True
        return False

    @property
    def guarded(self) -> bool:
        """Whether a suspect is in flight."""
        return any(debt.stage == SENT and debt.alone for debt in self.owed.values())

    def sent(self, offset: int, holder: object, now_s: float) -> Debt:
        debt = self.owed.setdefault(offset, Debt(WAITING, 0))
        timeout_s = self.policy.ack_timeout_s
        debt.alone = is_suspect(self.policy, debt)
        debt.stage, debt.holder = SENT, holder
        debt.tries += 1
        debt.due_s = 0.0 if timeout_s is None else now_s + timeout_s
        return debt

    def settle(self, offset: int) -> None:
        del self.owed[offset]
        self.settled.add(offset)

    def held(self, offset: int, holder: object) -> Debt | None:
        debt = self.owed.get(offset)
        return debt if debt is not None and debt.holder is holder else None

    def give_back(self, holder: object) -> Follows:
        """A holder is gone; what follows the tries that it was in the middle of."""
        if holder in self.holders:
            self.holders.remove(holder)
        follows: Follows = {}
        for offset, debt in list(self.owed.items()):
            if debt.holder is not holder:
                continue
            if debt.stage == SENT and counts_losses(self.policy):
                follows[offset] = self.fail(offset, LOST), debt
                continue
            debt.holder, debt.due_s = None, 0.0
            if debt.stage == SENT:
                debt.stage = WAITING
                if self.policy.exhausted == "suspend":
                    debt.tries = 0
                    debt.fails.clear()
        return follows

    def put_back(self, offset: int, holder: object) -> None:
        """It was never begun: no try."""
        debt = self.held(offset, holder)
        if debt is not None and debt.stage == SENT:
            debt.tries -= 1
            debt.stage, debt.holder, debt.due_s = WAITING, None, 0.0

    def resume(self, holder: object, now_s: float) -> list[int]:
        """Offsets whose PUBREL a new consumer gets again."""
        found = []
        for offset, debt in self.owed.items():
            if debt.stage == RELEASED and debt.holder is None:
                debt.holder, debt.tries = holder, 1
                debt.due_s = now_s + self.policy.release_interval_s
                found.append(offset)
        return found

    def govern(self, policy: Policy) -> None:
        """Go on by other rules; without QoS 2 nobody would say PUBCOMP."""
        before = self.policy
        self.policy, self.active, self.suspended = policy, True, False
        if counts_losses(policy) and not counts_losses(before):
            for debt in self.owed.values():
                if debt.stage == WAITING:
                    debt.tries = min(debt.tries, debt.last_failed)
        for offset, debt in list(self.owed.items()):
            if policy.qos != 2 and debt.stage == RELEASED:
                self.settle(offset)

    def unbury(
        self, offset: int, amended: bytes | None, failed: Debt | None = None
    ) -> None:
        """A dead letter could not be stored: the last try is still owed."""
        self.settled.discard(offset)
        self.owed[offset] = debt = Debt(WAITING, 0, amended=amended)
        if failed is not None:
            debt.tries = max(failed.tries - 1, 0)
            debt.fails = [one for one in failed.fails if one[0] < failed.tries]

    def seek(self, offset: int) -> None:
        self.start = offset
        self.owed.clear()
        self.settled.clear()

    def fail(self, offset: int, kind: str, *, final: bool = False) -> str | None:
        """A try has failed; what is to be done besides trying again."""
        debt = self.owed[offset]
        debt.failed(kind)
        policy = self.policy
        last = policy.tries is not None and debt.tries >= policy.tries
        if final or (last and policy.exhausted == "dead-letter"):
            self.settle(offset)
            return "dead-letter"
        debt.stage, debt.holder, debt.due_s = WAITING, None, 0.0
        if last:
            debt.tries = 0
            debt.fails.clear()
            return "suspend"
        return None

    def expire(self, now_s: float) -> tuple[list[tuple[object, int]], Follows]:
        """PUBRELs that are sent again, and what follows failed tries."""
        again: list[tuple[object, int]] = []
        follows: Follows = {}
        for offset, debt in list(self.owed.items()):
            if not debt.due_s or debt.due_s > now_s:
                continue
            if debt.stage == SENT:
                follows[offset] = self.fail(offset, "Timeout"), debt
            elif debt.tries >= self.policy.release_tries:
                self.settle(offset)
            else:
                debt.tries += 1
                debt.due_s = now_s + self.policy.release_interval_s
                again.append((debt.holder, offset))
        return again, follows


Follows = dict[int, tuple[str | None, Debt]]
"""What is to be done after a failed try, and the event as it failed."""


@dataclass
class Message:
    """A message of a JSON publisher on its way in."""

    id: int
    topic: str
    payload: bytes
    at_ms: int
    group: int = 0
    """Whose commit makes it pending."""
    ended: int | None = None
    """Whose commit publishes it, or gives it up."""


class World:
    """Topics, subscriptions, pending messages and dedup ids."""

    def __init__(self) -> None:
        self.topics: dict[str, list[Row]] = {}
        """What was committed."""
        self.waiting: dict[str, list[Row]] = {}
        """What waits for its commit, in order."""
        self.subs: dict[Key, Sub] = {}
        self.messages: dict[int, Message] = {}
        self.dedup: dict[Key, tuple[int, int, int]] = {}
        """Topic and id -> offset, time, group."""
        self.unconfirmed_letters: list[tuple[int, Key, int, Debt]] = []
        """Group, subscription and offset of events given up, as they were then, if
        that is not durable yet."""

    def pending(self) -> dict[int, Message]:
        return {k: m for k, m in self.messages.items() if m.ended is None}

    def end(self, topic: str) -> int:
        return len(self.topics.get(topic, [])) + len(self.waiting.get(topic, []))

    def committed(self, group: int) -> None:
        """A group is there for good."""
        for name, rows in self.waiting.items():
            here = [row for row in rows if row.group <= group]
            self.topics.setdefault(name, []).extend(here)
            self.waiting[name] = rows[len(here) :]
        self.unconfirmed_letters = [
            grave for grave in self.unconfirmed_letters if grave[0] > group
        ]
        for message in list(self.messages.values()):
            if message.ended is not None and message.ended <= group:
                del self.messages[message.id]

    def taken_back(self, committed: int, catalog: Iterable[str]) -> None:
        """A commit has failed: undo what is not in the groups before."""
        self.waiting.clear()
        there = set(catalog)
        self.topics = {
            name: rows for name, rows in self.topics.items() if name in there
        }
        for message in list(self.messages.values()):
            ended = message.ended is not None and message.ended <= committed
            if message.group > committed or ended:
                del self.messages[message.id]
            message.ended = None
        self.dedup = {k: v for k, v in self.dedup.items() if v[2] <= committed}
        for _, key, offset, debt in self.unconfirmed_letters:
            if key in self.subs and offset in self.subs[key].settled:
                self.subs[key].unbury(offset, debt.amended, debt)
        self.unconfirmed_letters = []
        for sub in self.subs.values():
            sub.start = min(sub.start, self.end(sub.topic))

    def drop(self, topic: str) -> None:
        """A topic is gone."""
        self.topics.pop(topic, None)
        self.waiting.pop(topic, None)
        self.subs = {k: sub for k, sub in self.subs.items() if k[1] != topic}
        self.dedup = {k: v for k, v in self.dedup.items() if k[0] != topic}


# The same facts of a real broker


def settled_of(one: Subscription, rows: list[Row]) -> set[int]:
    """What a real subscription counts as settled."""
    cursor, found = one.cursor, set()
    for offset in range(cursor.start, len(rows)):
        level = cursor.plain_level if cursor.plain else rows[offset].priority
        if offset < cursor.places.get(level, cursor.start) and offset not in one.owed:
            found.add(offset)
    return found


def seen(one: Subscription, rows: list[Row]) -> dict[str, Any]:
    return {
        "policy": one.policy,
        "start": one.cursor.start,
        "active": one.active,
        "suspended": one.suspended,
        "settled": settled_of(one, rows),
        "owed": {d.offset: (stage_of(d), d.tries) for d in one.owed.values()},
        "fails": {o: fails_of(one, o) for o in one.errors},
        "amended": {o: payload_of(frame) for o, frame in one.amended.items()},
    }


def fails_of(one: Subscription, offset: int) -> list[Fail]:
    return [(failure.tries, failure.kind) for failure in one.errors.get(offset, ())]


def payload_of(frame: bytes | None) -> bytes | None:
    return None if frame is None else Batch.of("", frame).payloads()[0]


def modelled(sub: Sub) -> dict[str, Any]:
    return {
        "policy": sub.policy,
        "start": sub.start,
        "active": sub.active,
        "suspended": sub.suspended,
        "settled": sub.settled,
        "owed": {o: (d.stage, d.tries) for o, d in sub.owed.items()},
        "fails": {o: d.fails for o, d in sub.owed.items() if d.fails},
        "amended": {o: d.amended for o, d in sub.owed.items() if d.amended},
    }


def kept(broker: Broker, topics: dict[str, list[Row]]) -> dict[str, Any]:
    """What a crash must leave as it is."""
    subs = {}
    for one in broker.subscriptions:
        if not one.temporary:
            facts = seen(one, topics.get(one.topic, []))
            facts["owed"] = {
                offset: (stage, 0) if stage == RELEASED else (WAITING, tries)
                for offset, (stage, tries) in facts["owed"].items()
            }
            subs[one.subscriber, one.topic] = facts
    return {
        "subs": subs,
        "pending": pending_of(broker),
        "dedup": {
            (topic, id_): place
            for topic, known in broker.dedup._topics.items()
            for id_, place in known.items()
        },
    }


def reborn(state: dict[str, Any]) -> dict[str, Any]:
    """What a broker that is opened makes of a state: open tries were lost."""
    return {**state, "subs": {k: _recovered(sub) for k, sub in state["subs"].items()}}


def _recovered(facts: dict[str, Any]) -> dict[str, Any]:
    policy: Policy = facts["policy"]
    if not counts_losses(policy):
        return facts
    sub = Sub("", "", policy, 0, settled=set(facts["settled"]))
    for offset, (stage, tries) in facts["owed"].items():
        fails = list(facts["fails"].get(offset, []))
        amended = facts["amended"].get(offset)
        debt = sub.owed[offset] = Debt(stage, tries, fails=fails, amended=amended)
        if stage == WAITING and tries > debt.last_failed:
            sub.fail(offset, LOST)
    after = modelled(sub)
    changed = {k: after[k] for k in ("settled", "owed", "fails", "amended")}
    return {**facts, **changed}


def pending_of(broker: Broker) -> dict[int, tuple[str, bytes]]:
    messages = broker.pending._messages.values()
    return {one.id: (one.topic, one.payload) for one in messages}


def dedup_of(broker: Broker) -> dict[Key, int]:
    """Those that still count."""
    oldest_ms = broker.log.now_ms() - broker.options.dedup_age_s * 1000
    return {
        (topic, id_): offset
        for topic, known in broker.dedup._topics.items()
        for id_, (offset, at_ms) in known.items()
        if at_ms >= oldest_ms
    }


def stage_of(owed: Owed) -> int:
    """What the model knows of the state of an event."""
    if owed.state is IS_RELEASED:
        return RELEASED
    return SENT if owed.state in IN_FLIGHT else WAITING


def bookkeeping(one: Subscription, rows: list[Row]) -> str | None:
    """What does not add up within a real subscription."""
    owed = list(one.owed.values())
    flying = sum(debt.state in IN_FLIGHT for debt in owed)
    paused = sum(debt.state is PAUSED for debt in owed)
    book = one.owed
    if (book.in_flight, book.paused) != (flying, paused):
        return f"counts {book.in_flight} in flight, {book.paused} paused, of {owed}"
    alone = [debt.offset for debt in owed if debt.state is ALONE]
    if alone != [offset for offset in [book.queue.alone] if offset is not None]:
        return f"thinks that {book.queue.alone} is alone, not {alone}"
    if any(debt.due_s == 0 for debt in owed if debt.state is PAUSED):
        return f"has an event without a time that waits for it: {owed}"
    if len(owed) != len(one.owed) or {d.offset for d in owed} != set(one.owed):
        return f"owes {len(one.owed)}, tells {owed}"
    for debt in owed:
        if debt.holder is not None and debt.holder not in one.consumers:
            return f"{debt.offset} is held by somebody who is gone"
        if stage_of(debt) == SENT and debt.holder is None:
            return f"{debt.offset} was sent to nobody"
    left = set(range(one.cursor.start, len(rows))) - settled_of(one, rows)
    if one.lag() != len(left):
        return f"lag {one.lag()}, but {len(left)} are not settled"
    if one.position() != min(left, default=len(rows)):
        return f"position {one.position()}, but not settled are {sorted(left)}"
    return None
