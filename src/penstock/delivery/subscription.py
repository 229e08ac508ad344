"""One subscription: where it stands, what it owes, what it may send now.

Theory. A subscription is a *cursor* (one place per priority level) and the events in
front of it that are still *owed*: in flight, returned by a consumer that left, or
waiting for a retry. Everything else in front of the cursor is settled. So memory grows
with the window and never with the backlog, and the whole state fits into a few numbers
that the journal can keep.

``take`` hands events to a consumer within the window; ``settle`` and ``answer`` finish
them; ``give_back`` returns those of a consumer that left; ``expire`` finds those whose
time has run out. Nothing here reads a clock or writes a file: changes are noted in
``owed.touched`` and ``Notes`` for whoever keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from penstock.delivery.cursor import TAKE_BYTES, Cursor, GetLevels
from penstock.delivery.handshake import Answer, Stage, next_stage
from penstock.delivery.owed import Expired, Failed, Notes, Owed, Portion
from penstock.delivery.owed_book import OwedBook, Run
from penstock.delivery.pages import Pages
from penstock.delivery.retry import GiveUp, TryAgain, after_failure
from penstock.model.policy import Policy

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer

# Errors remembered of the tries of one event, the newest.
MAX_ERRORS = 20


class Subscription:
    def __init__(
        self,
        number: int,
        subscriber: str,
        topic: str,
        policy: Policy,
        start: int,
        *,
        temporary: bool,
        notes: Notes,
    ) -> None:
        self.number = number
        self.subscriber = subscriber
        self.topic = topic
        self.policy = policy
        self.temporary = temporary
        self.active = True
        """False: unsubscribed or suspended, with its position kept."""
        self.suspended = False
        self.ended = False
        """Whether it is gone for good, whoever still knows it."""
        self.cursor = Cursor(topic, policy.order, start)
        self.owed = OwedBook()
        self.errors: dict[int, list[str]] = {}
        """Why earlier tries of owed events failed."""
        self.consumers: list[Consumer] = []
        self.relaxed = False
        """Whether its topic is written without a sync: then so are settlements."""
        self.flying = 0
        self.armed_s = 0.0
        """When the broker looks at it next; 0 for never."""
        self._returned: list[tuple[int, int]] = []
        self._later = 0
        self._restored_runs: list[tuple[int, int, int]] = []
        self._notes = notes

    def wire(self, pages: Pages, levels: GetLevels) -> None:
        """Say where events come from; what is owed so far is to be sent again."""
        self.cursor.wire(pages, levels)
        self.relaxed = pages.relaxed(self.topic)
        for lo, hi, level in self._restored_runs:
            for offset in range(lo, hi):
                self.owe(offset, level, 1, Stage.WAITING)
                # Records list runs as a whole: none has this one for itself.
                self.owed.touched[offset] = None
        self._restored_runs = []
        waiting = [o for o in self.owed.singles() if o.stage is Stage.WAITING]
        self._returned = sorted((-one.level, one.offset) for one in waiting)
        self.flying = len(self.owed) - len(waiting)

    def owe(self, offset: int, level: int, tries: int, stage: Stage) -> None:
        """Take up what the journal says is owed, before ``wire``."""
        one = Owed(offset, level)
        one.tries, one.stage, one.recorded = tries, stage, True
        self.owed.add(one)

    def take_up(
        self,
        settled: Iterable[int],
        owed: Iterable[tuple[int, int, int, int]],
        runs: list[tuple[int, int, int]],
    ) -> None:
        """Take up a record of the journal, before ``wire``."""
        for offset in settled:
            self.owed.forget(offset)
        for offset, level, tries, stage in owed:
            self.owe(offset, level, tries, Stage(stage))
        self._restored_runs = runs

    def govern(self, policy: Policy) -> None:
        """Go on, by these rules from now on."""
        self.policy = policy
        self.active, self.suspended = True, False
        if policy.qos != 2:  # nobody will say PUBCOMP: released means received
            for one in self.owed.singles():
                if one.stage is Stage.RELEASED:
                    self._drop(one)

    # How it stands

    @property
    def credit(self) -> int:
        """How many events may be sent now."""
        return self.policy.window - self.flying - self._later

    @property
    def drained(self) -> bool:
        """Nothing is owed and nothing is left to be sent."""
        return not self.owed and self.cursor.next() is None

    def lag(self) -> int:
        """How many events are not settled."""
        return self.cursor.unsent() + len(self.owed)

    def position(self) -> int:
        """The lowest offset that is not settled."""
        return self.owed.lowest(self.cursor.lowest())

    # Taking

    def take(self, consumer: Consumer, now_s: float, limit: int) -> list[Portion]:
        """Hand events to a consumer, in order, within window and ``limit``."""
        free = min(self.credit, limit)
        if free <= 0 or not self.active:
            return []
        if self.cursor.plain:
            taken = self._take_returned(consumer, now_s, free)
            level = self.cursor.plain_level
            for portion in self.cursor.runs(free - len(taken)):
                self._fly(portion, level, consumer, now_s)
                taken.append(portion)
        else:
            taken = self._take_by_priority(consumer, now_s, free)
        if taken:
            self.note()
        return taken

    def _take_returned(
        self, consumer: Consumer, now_s: float, free: int
    ) -> list[Portion]:
        """Events that were sent before and came back; they precede fresh ones."""
        taken: list[Portion] = []
        while self._returned and len(taken) < free:
            portion = self._resend(heappop(self._returned)[1], consumer, now_s)
            if portion is not None:
                taken.append(portion)
        return taken

    def _take_by_priority(
        self, consumer: Consumer, now_s: float, free: int
    ) -> list[Portion]:
        taken: list[Portion] = []
        room = TAKE_BYTES
        while len(taken) < free and room > 0:
            fresh = self.cursor.next()
            back = self._returned[0] if self._returned else None
            if back is not None and (fresh is None or back <= fresh):
                portion = self._resend(heappop(self._returned)[1], consumer, now_s)
            elif fresh is not None:
                portion = self.cursor.pick(-fresh[0], fresh[1])
                if portion is not None:
                    self._fly(portion, -fresh[0], consumer, now_s)
            else:
                break
            if portion is not None:
                taken.append(portion)
                room -= len(portion.page.payloads[portion.lo])
        return taken

    def _fly(
        self, portion: Portion, level: int, consumer: Consumer, now_s: float
    ) -> None:
        """Note events as sent, neighbours as one run."""
        if self.policy.qos == 0:
            return
        page, lo, hi = portion.page, portion.lo, portion.hi
        self.flying += hi - lo
        due_s = self._due(now_s)
        if page.batch.dense and hi - lo > 1:
            first, end = page.base + lo, page.base + hi
            self.owed.add_run(Run(first, end, level, due_s, consumer))
            return
        for offset in (
            page.batch.offsets()[lo:hi] if hi - lo > 1 else (page.batch.offset_of(lo),)
        ):
            one = Owed(offset, level)
            one.stage = Stage.SENT
            one.tries = 1
            one.due_s = due_s
            one.holder = consumer
            self.owed.add(one)
            self._touch(one)

    def _resend(self, offset: int, consumer: Consumer, now_s: float) -> Portion | None:
        one = self.owed.get(offset)
        if one is None or one.stage is not Stage.WAITING or one.due_s:
            return None  # settled or put off while it waited
        found = self.cursor.find(offset)
        if found is None:
            self._drop(one)  # retention or compaction took it
            return None
        one.stage = Stage.SENT
        one.tries += 1
        one.due_s = self._due(now_s)
        one.holder = consumer
        self.flying += 1
        self._touch(one)
        return Portion(found[0], found[1], found[1] + 1, one.tries)

    def _due(self, now_s: float) -> float:
        timeout_s = self.policy.ack_timeout_s
        return 0.0 if timeout_s is None else now_s + timeout_s

    # Settling

    def settle(self, offset: int) -> bool:
        """Finish a delivery in flight; False if there is none."""
        if self.owed.settle(offset):
            self.flying -= 1
        else:
            one = self.owed.get(offset)
            if one is None or one.stage is Stage.WAITING:
                return False
            self._drop(one)
        self.note(urgent=True)
        return True

    def settle_all(self, offsets: list[int], holder: Consumer) -> int:
        """Finish what a consumer has in flight of these; how many those were."""
        if not offsets:
            return 0
        first, end = offsets[0], offsets[-1] + 1
        before = self.flying
        rest: Iterable[int] = offsets
        if end - first == len(offsets) and offsets == list(range(first, end)):
            taken = self.owed.settle_range(first, end, holder)
            self.flying -= taken
            if taken == len(offsets):
                rest = ()
        for offset in rest:
            if self.owed.holder_of(offset) is holder:
                self.settle(offset)
        if self.flying != before:
            self.note(urgent=True)
        return before - self.flying

    def answer(self, offset: int, answer: Answer, now_s: float) -> Stage | None:
        """Move a handshake on; None if the answer makes no sense."""
        one = self.owed.get(offset)
        if one is None:
            return None
        stage = next_stage(self.policy.qos, one.stage, answer)
        if stage is Stage.SETTLED:
            self._drop(one)
        elif stage is Stage.RELEASED and one.stage is not Stage.RELEASED:
            one.stage = stage
            one.tries = 1  # from now on the tries of PUBREL
            one.due_s = now_s + self.policy.release_interval_s
            self._touch(one)
        if stage is not None:
            self.note(urgent=True)
        return stage

    def resume(self, consumer: Consumer, now_s: float) -> list[Owed]:
        """Deliveries that wait for PUBCOMP, taken over by a new consumer."""
        found = [
            one
            for one in self.owed.singles()
            if one.stage is Stage.RELEASED and one.holder is None
        ]
        for one in found:
            one.holder = consumer
            one.tries = 1
            one.due_s = now_s + self.policy.release_interval_s
        return found

    def refuse(self, offset: int, error: str, now_s: float) -> Failed | None:
        """A consumer failed with an event; None if it has no such event."""
        one = self.owed.get(offset)
        if one is None or one.stage is not Stage.SENT:
            return None
        self.note(urgent=True)
        return self._fail(one, error, now_s)

    def add_back(self, offset: int, priority: int) -> bool:
        """Owe an event again that was settled before; False if it is owed already."""
        if offset in self.owed:
            return False
        one = Owed(offset, self.cursor.level_of(priority))
        self.owed.add(one)
        self._queue(one)
        self._touch(one)
        self.note(urgent=True)
        return True

    def give_back(self, consumer: Consumer) -> None:
        """Return what a consumer held, for the next one."""
        for one in self.owed.held_by(consumer):
            one.holder = None
            one.due_s = 0.0
            if one.stage is Stage.SENT:
                self.flying -= 1
                self._queue(one)

    def seek(self, offset: int) -> None:
        """Begin anew at ``offset``: nothing is owed any more."""
        self.owed.clear()
        self._returned, self._later, self.flying = [], 0, 0
        self.errors.clear()
        self.cursor.seek(offset)

    def note(self, *, urgent: bool = False) -> None:
        """Have the changes so far written, soon if somebody waits for it."""
        if self.temporary or self.ended:
            return
        notes = self._notes
        notes.dirty[self] = None
        if urgent:
            notes.urgent = True
            notes.sync = notes.sync or not self.relaxed

    def _queue(self, one: Owed) -> None:
        one.stage = Stage.WAITING
        heappush(self._returned, (-one.level, one.offset))

    def _drop(self, one: Owed) -> None:
        self.owed.forget(one.offset)
        if self.errors:
            self.errors.pop(one.offset, None)
        if one.stage is not Stage.WAITING:
            self.flying -= 1
        elif one.due_s:
            self._later -= 1
        if one.recorded:
            self.owed.touched[one.offset] = None
        else:
            self.owed.touched.pop(one.offset, None)

    def _touch(self, one: Owed) -> None:
        if not self.temporary:
            self.owed.touched[one.offset] = None

    # Time

    def next_due_s(self) -> float | None:
        """The earliest moment at which something runs out of time."""
        return self.owed.next_due_s()

    def expire(self, now_s: float) -> Expired:
        """Act on everything whose time has come."""
        done = Expired([], [])
        for one in self.owed.due(now_s):
            if one.stage is Stage.WAITING:  # the pause before a retry is over
                one.due_s = 0.0
                self._later -= 1
                self._queue(one)
            elif one.stage is Stage.SENT:
                timeout_s = self.policy.ack_timeout_s  # the rules may have changed
                within = "" if timeout_s is None else f" within {timeout_s:g} s"
                done.failed.append(self._fail(one, f"no answer{within}", now_s))
            elif one.tries >= self.policy.release_tries:
                self._drop(one)  # counts as received
            else:
                one.tries += 1
                one.due_s = now_s + self.policy.release_interval_s
                done.released.append(one)
        self.note()
        return done

    def _fail(self, one: Owed, error: str, now_s: float) -> Failed:
        """A try has failed: queue the next one, or tell what follows the last."""
        decision = after_failure(self.policy, one.tries, now_s)
        errors = self.errors.setdefault(one.offset, [])
        errors.append(error)
        del errors[:-MAX_ERRORS]
        then = decision.then if isinstance(decision, GiveUp) else None
        failed = Failed(one.offset, one.tries, list(errors), then, one.level)
        if then == "dead-letter":
            self._drop(one)
            return failed
        one.holder = None
        self.flying -= 1
        one.due_s = 0.0
        self._touch(one)
        if isinstance(decision, TryAgain) and decision.at_s > now_s:
            one.stage = Stage.WAITING
            one.due_s = decision.at_s
            self._later += 1
            return failed
        if then == "suspend":
            one.tries = 0  # whoever subscribes again begins anew
            self.errors.pop(one.offset)
        self._queue(one)
        return failed
