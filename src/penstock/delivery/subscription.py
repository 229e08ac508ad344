"""One subscription at work: what it sends, settles, takes back and gives up.

``take`` hands events to a consumer within the window; ``settle`` and ``answer`` finish
them; ``expire`` finds those whose time has run out. What fails is in failing.py.
Nothing here reads a clock or writes a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop
from typing import TYPE_CHECKING

from penstock.delivery.amend import amended_page
from penstock.delivery.cursor import TAKE_BYTES
from penstock.delivery.failing import Failing
from penstock.delivery.handshake import Answer, Stage, next_stage
from penstock.delivery.owed import Expired, Failed, Owed, Portion
from penstock.delivery.owed_book import Run
from penstock.delivery.pages import Page
from penstock.delivery.retry import GiveUp
from penstock.model.failure import GONE, TIMEOUT, Failure

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer


class Subscription(Failing):
    # Taking

    def take(self, consumer: Consumer, now_s: float, limit: int) -> list[Portion]:
        """Hand events to a consumer, in order, within window and ``limit``."""
        free = min(self.credit, limit)
        if free <= 0 or not self.active:
            return []
        if self.cursor.plain:
            taken = self._take_returned(consumer, now_s, free)
            level = self.cursor.plain_level
            fresh = 0 if self._held_up else free - len(taken)
            for portion in self.cursor.runs(fresh):
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
        while len(taken) < free and (queue := self._back()):
            portion = self._resend(heappop(queue)[1], consumer, now_s)
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
            queue = self._back()
            if queue and (fresh is None or queue[0] <= fresh):
                portion = self._resend(heappop(queue)[1], consumer, now_s)
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
        if offset in self.held:
            return None  # settled, and owed again
        found = self.find(offset)
        if found is None:
            self._miss(one, now_s)
            return None
        one.tries += 1
        if self.policy.qos == 0:
            self._drop(one)  # settled by being sent
            return Portion(found[0], found[1], found[1] + 1, one.tries)
        one.stage = Stage.SENT
        one.due_s = self._due(now_s)
        one.holder = consumer
        self.flying += 1
        if offset in self._quarantine:
            self._quarantine.alone = offset
        self._touch(one)
        return Portion(found[0], found[1], found[1] + 1, one.tries)

    def _miss(self, one: Owed, now_s: float) -> None:
        """An event that was to be tried again is not there any more."""
        self.note(urgent=True)
        if self.policy.qos == 0:
            self._drop(one)
            return
        self.misses += 1
        one.tries += 1
        why = Failure(0, 0, GONE, "retention or compaction took it before this try")
        self._gone.append(self._fail(one, why, now_s, GiveUp("dead-letter")))

    def missed(self) -> list[Failed]:
        """Events that were to be taken and are gone, for a dead letter each."""
        if not self._gone:
            return []
        gone, self._gone = self._gone, []
        return gone

    def find(self, offset: int) -> tuple[Page, int] | None:
        """An event as it is delivered: amended, or as it is stored; None if gone."""
        amended = self.amended.get(offset)
        if amended is not None:
            return amended_page(self.topic, amended), 0
        return self.cursor.find(offset)

    def _due(self, now_s: float) -> float:
        timeout_s = self.policy.ack_timeout_s
        return 0.0 if timeout_s is None else now_s + timeout_s

    # Settling

    def settle(self, offset: int, *, urgent: bool = True) -> bool:
        """Finish a delivery in flight; False if there is none."""
        if self.owed.settle(offset):
            self.flying -= 1
        else:
            one = self.owed.get(offset)
            if one is None or one.stage is Stage.WAITING:
                return False
            self._drop(one)
        self.note(urgent=urgent)
        return True

    def settle_run(
        self, first: int, end: int, holder: Consumer, *, urgent: bool = True
    ) -> bool:
        """Finish neighbours that a consumer has in flight; False if it has not all."""
        if not self.owed.covers(first, end, holder):
            return False
        self.flying -= self.owed.settle_range(first, end, holder)
        self.note(urgent=urgent)
        return True

    def settle_all(
        self, offsets: list[int], holder: Consumer, *, urgent: bool = True
    ) -> int:
        """Finish what a consumer has in flight of these; how many those were.

        ``urgent``: somebody waits for it to be written.
        """
        if not offsets:
            return 0
        first, end = offsets[0], offsets[-1] + 1
        before = self.flying
        rest: Iterable[int] = offsets
        if end - first == len(offsets) and offsets == list(range(first, end)):
            taken = self.owed.settle_range(first, end, holder)
            self.flying -= taken
            rest = () if taken == len(offsets) else self.owed.singles_of(offsets)
        for offset in rest:
            if self.owed.holder_of(offset) is holder:
                self.settle(offset, urgent=urgent)
        if self.flying != before:
            self.note(urgent=urgent)
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
            self._quarantine.discard(offset)  # it was received
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

    def hold(self, offsets: Iterable[int], holder: Consumer) -> None:
        """Let a consumer have in flight again what it had before it went away."""
        for offset in offsets:
            one = self.owed.get(offset)
            if one is not None and one.stage is Stage.WAITING and not one.due_s:
                one.stage = Stage.SENT
                one.holder = holder
                self.flying += 1

    def add_back(
        self, offset: int, priority: int, amended: bytes | None = None
    ) -> bool:
        """Owe an event again that was settled before; False if it is owed already.

        ``amended`` is the frame that is sent in its place.
        """
        one = self._owe_again(offset, priority, amended)
        if one is None:
            return False
        self._queue(one)
        return True

    def hold_back(
        self, offset: int, priority: int, amended: bytes | None = None
    ) -> Owed | None:
        """As ``add_back``, but it is not sent before ``let_go``."""
        one = self._owe_again(offset, priority, amended)
        if one is not None:
            self.held[offset] = one
        return one

    def let_go(self, one: Owed) -> None:
        """Send an event that was held back, if it still is."""
        if self.held.get(one.offset) is one:
            del self.held[one.offset]
            self._queue(one)

    def call_off(self, one: Owed) -> None:
        """Owe an event no more that was held back, if it still is."""
        if self.held.get(one.offset) is one:
            self._drop(one)
            self.note()

    def _owe_again(
        self, offset: int, priority: int, amended: bytes | None
    ) -> Owed | None:
        if offset in self.owed:
            return None
        one = Owed(offset, self.cursor.level_of(priority))
        one.recorded = True  # perhaps: it may have been settled in this very group
        self.owed.add(one)
        if amended is not None:
            self.amended[offset] = amended
        if not self.temporary:
            # So the journal may still know what it was before it was settled.
            self.owed.erred[offset] = self.owed.amended[offset] = None
        self._touch(one)
        self.note(urgent=True)
        return one

    def take_back(self, failed: Failed) -> None:
        """Owe an event again whose end was not stored: its last try is repeated."""
        one = self._owe_again(failed.offset, failed.level, failed.amended)
        if one is None:
            return
        one.tries = max(failed.tries - 1, 0)
        errors = [error for error in failed.errors if error.tries < failed.tries]
        if errors:
            self.errors[failed.offset] = errors
            self._quarantine.judge(failed.offset, self.policy, errors)
        self._queue(one)

    def put_off_until(self, offset: int, at_s: float) -> None:
        """Let an event that is to be sent again wait, at least until then."""
        one = self.owed.get(offset)
        if one is not None and one.stage is Stage.WAITING:
            self._later += not one.due_s
            one.due_s = max(one.due_s, at_s)

    def seek(self, offset: int) -> None:
        """Begin anew at ``offset``: nothing is owed any more."""
        self.owed.clear()
        self.held.clear()
        self._returned, self._later, self.flying = [], 0, 0
        self.errors.clear()
        self.amended.clear()
        self._quarantine.clear()
        self.cursor.seek(offset)
        for consumer in self.consumers:
            consumer.outlet.moved(consumer)

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
                why = Failure(0, 0, TIMEOUT, f"no answer{within}", "", timeout_s)
                decision = self._decide(one, now_s)
                done.failed.append(self._fail(one, why, now_s, decision))
            elif one.tries >= self.policy.release_tries:
                self._drop(one)  # counts as received
            else:
                one.tries += 1
                one.due_s = now_s + self.policy.release_interval_s
                done.released.append(one)
        self.note()
        return done
