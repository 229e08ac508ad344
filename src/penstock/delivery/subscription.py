"""One subscription at work: what it sends, settles, takes back and gives up.

``take`` hands events to a consumer within the window; ``settle`` and ``answer`` finish
them; ``give_back`` returns those of a consumer that left; ``expire`` finds those whose
time has run out. Nothing here reads a clock or writes a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop
from typing import TYPE_CHECKING

from penstock.delivery.cursor import TAKE_BYTES
from penstock.delivery.handshake import Answer, Stage, next_stage
from penstock.delivery.owed import Expired, Failed, Owed, Portion
from penstock.delivery.owed_book import Run
from penstock.delivery.retry import GiveUp, TryAgain, after_failure
from penstock.delivery.standing import Standing

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer

# Errors remembered of the tries of one event, the newest.
MAX_ERRORS = 20


class Subscription(Standing):
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
        one.tries += 1
        if self.policy.qos == 0:
            self._drop(one)  # settled by being sent
            return Portion(found[0], found[1], found[1] + 1, one.tries)
        one.stage = Stage.SENT
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

    def settle_run(self, first: int, end: int, holder: Consumer) -> bool:
        """Finish neighbours that a consumer has in flight; False if it has not all."""
        if not self.owed.covers(first, end, holder):
            return False
        self.flying -= self.owed.settle_range(first, end, holder)
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
                if self.policy.exhausted == "suspend":
                    one.tries = 0  # patience is with a connection, not with a user
                    self._touch(one)
                    self.note()
                self._queue(one)

    def seek(self, offset: int) -> None:
        """Begin anew at ``offset``: nothing is owed any more."""
        self.owed.clear()
        self._returned, self._later, self.flying = [], 0, 0
        self.errors.clear()
        self.cursor.seek(offset)

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
