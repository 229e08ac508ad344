"""One subscription: where it stands, what it sends, settles, takes back and gives up.

Theory. A subscription is a *cursor* (one place per priority level, fresh.py) and the
events in front of it that are still *owed* (owed_book.py), each in a state of
states.py. Everything else in front of the cursor is settled, or postponed until its
time. So memory grows with the window and never with the backlog, and the whole state
fits into a few numbers that the journal can keep. Changes are noted in
``owed.touched`` and ``JournalNotes``.

``take`` hands events to a consumer within the window; ``settle`` and ``answer`` finish
them; ``refuse``, ``give_back`` and ``overdue`` end tries that failed: refused, lost
with their consumer, or out of time. Nothing here reads a clock or writes a file.

Tries. A try counts from the moment its event is handed out. One that ends without an
answer, because the consumer went away or the process ended, is *lost*. Where the policy
counts losses (``Policy.counts_losses``) a loss is a failure like any other, but that
there is no pause after it: a consumer that comes back was gone long enough. A restart
tells a loss by its records: an event whose last try is not among its failures was in
the middle of it. Events that were lost again and again are sent alone, see
isolation.py. A consumer that goes away in good order may *put back* what it never
began: that was no try.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop
from typing import TYPE_CHECKING

from penstock.delivery.amend import amended_page
from penstock.delivery.cursor import ALL, TAKE_BYTES, GetLevels
from penstock.delivery.fresh import MAX_LOOKS, Fresh, GetMark, Rank, no_delays
from penstock.delivery.handshake import Reply, next_state
from penstock.delivery.isolation import SendAgain, is_suspect
from penstock.delivery.key_order import KeyOrder
from penstock.delivery.owed import Failed, JournalNotes, Overdue, Owed, Portion
from penstock.delivery.owed_book import OwedBook, SentRun
from penstock.delivery.pages import Page, Pages
from penstock.delivery.retry import NoMoreTries, TryAgain, after_failure
from penstock.delivery.states import (
    ALONE,
    HELD,
    IN_FLIGHT,
    PAUSED,
    QUEUED,
    READY,
    RELEASED,
    SENT,
    SETTLED,
    SUSPECT,
    Move,
    OwedState,
)
from penstock.model.failure import EXPIRED, GONE, LOST, TIMEOUT, Failure
from penstock.model.policy import Policy

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer

# Errors remembered of the tries of one event, the newest.
MAX_ERRORS = 20
# What their texts take together: they are written again with every try that fails.
# At least three fit in, however long they are.
MAX_ERRORS_BYTES = 1 << 16
CONSUMER_LEFT = "the consumer went away in the middle of this try"
BROKER_ENDED = "the broker ended in the middle of this try"


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
        notes: JournalNotes,
    ) -> None:
        self.number = number
        self.subscriber = subscriber
        self.topic = topic
        self.policy = policy
        self.temporary = temporary
        self.owner = ""
        """The user who has made it; empty if there are no users."""
        self.active = True
        """False: unsubscribed or suspended, with its position kept."""
        self.suspended = False
        self.ended = False
        """Whether it is gone for good, although references to it remain."""
        self.fresh = Fresh(topic, policy.order, start, lasting=not temporary)
        self.cursor = self.fresh.cursor
        self.owed = OwedBook()
        self.keyed: KeyOrder | None = None
        """Who gets which key, where consumers share it by key."""
        self.errors: dict[int, list[Failure]] = {}
        """Why earlier tries of owed events failed."""
        self.amended: dict[int, bytes] = {}
        """Frames that are sent in place of stored events; see amend.py."""
        self.consumers: list[Consumer] = []
        self.relaxed = False
        """Whether its topic is written without a sync: then so are settlements."""
        self.misses = 0
        """How many events were gone when they were to be sent again."""
        self.armed_s = 0.0
        """When the broker looks at it next; 0 for never."""
        self._serial = 0
        self._gone: list[Failed] = []
        self._restored_runs: list[tuple[int, int, int]] = []
        self._notes = notes
        self._mark: GetMark = no_delays
        self._share()

    # What the journal says, before it is wired

    def owe(
        self,
        offset: int,
        level: int,
        tries: int,
        state: OwedState,
        *,
        unsent: bool = False,
    ) -> None:
        """Take up an event that is owed."""
        one = Owed(offset, level)
        one.unsent = unsent
        one.tries, one.state, one.recorded = tries, state, True
        self.owed.forget(offset)
        self.owed.add(one)

    def take_up(
        self,
        settled: Iterable[int],
        owed: Iterable[tuple[int, int, int, OwedState, bool]],
        runs: list[tuple[int, int, int]],
    ) -> None:
        """Take up a record."""
        for offset in settled:
            self.owed.forget(offset)
            self.errors.pop(offset, None)
            self.amended.pop(offset, None)
        for offset, level, tries, state, unsent in owed:
            self.owe(offset, level, tries, state, unsent=unsent)
            if not tries:  # it has begun anew
                self.errors.pop(offset, None)
        self._restored_runs = runs

    def wire(self, pages: Pages, levels: GetLevels, mark: GetMark = no_delays) -> None:
        """Say where events come from; what is owed so far is to be sent again."""
        self.fresh.wire(pages, levels, mark)
        self.relaxed = pages.relaxed(self.topic)
        for lo, hi, level in self._restored_runs:
            for offset in range(lo, hi):
                self.owe(offset, level, 1, READY)
                # Records list runs as a whole: none has this one for itself.
                self.owed.touched[offset] = None
        self._restored_runs = []
        self._line_up()

    def recover(self, now_s: float) -> list[Failed]:
        """Tries that a broker which ended was in the middle of; after ``wire``."""
        if not self.policy.counts_losses:
            return []
        lost = [
            one
            for one in self.owed.singles()
            if one.state in QUEUED and one.tries > self.last_failed(one.offset)
        ]
        failed = [self._lose(one, BROKER_ENDED, now_s) for one in lost]
        if lost:
            self._line_up()  # some are suspects now
            self.note()
        return failed

    # How it stands

    @property
    def credit(self) -> int:
        """How many events may be sent now."""
        return self.policy.window - self.owed.in_flight - self.owed.paused

    @property
    def short_of_events(self) -> bool:
        """Whether neither the window nor any event holds up others."""
        return self.credit > 0 and self.keyed is None and not self._queue.isolating()

    @property
    def drained(self) -> bool:
        """Nothing is owed and nothing is left to be sent."""
        return not self.owed and not self.fresh.delayed and self.cursor.next() is None

    def lag(self) -> int:
        """How many events are not settled."""
        return self.cursor.unsent() + len(self.owed) + self.fresh.delayed

    def position(self) -> int:
        """The lowest offset that is not settled, but for events postponed."""
        return self.fresh.due.lowest(self.owed.lowest(self.cursor.lowest()))

    def last_failed(self, offset: int) -> int:
        """Which try of an owed event is known to have failed last; 0 for none."""
        errors = self.errors.get(offset)
        return errors[-1].tries if errors else 0

    def find(self, offset: int) -> tuple[Page, int] | None:
        """An event as it is delivered: amended, or as it is stored; None if gone."""
        amended = self.amended.get(offset)
        if amended is not None:
            return amended_page(self.topic, amended), 0
        return self.cursor.find(offset)

    # Its rules

    def keeps_qos(self, wanted: int) -> bool:
        """Whether its quality of service may not change to this one.

        A handshake of QoS 2 is more than acks, so one is never made the other; and
        nothing changes while there are consumers.
        """
        qos = self.policy.qos
        return qos != wanted and (bool(self.consumers) or 2 in (qos, wanted))

    def govern(self, policy: Policy) -> None:
        """Go on, by these rules from now on."""
        before, self.policy = self.policy, policy
        self.active, self.suspended = True, False
        if policy.counts_losses and not before.counts_losses:
            self._forgive()
        if _queueing(before) != _queueing(policy):
            self._share()
            self._line_up()

    def _share(self) -> None:
        """Choose who decides what goes next, by the rules."""
        if self.policy.order == "key":
            self.keyed = KeyOrder(pipelined=self.policy.in_order)
            for consumer in self.consumers:
                if not consumer.away:
                    self.keyed.joined(consumer)
        else:
            self.keyed = None
        self.owed.queue = self.keyed or SendAgain()

    def _line_up(self) -> None:
        """Queue anew all that is to be sent again."""
        if self.keyed is not None:
            for one in self.owed.singles():
                self._enter(one.offset)
        self.owed.line_up(self._again)

    def _enter(self, offset: int) -> None:
        """Let an unsettled event stand in the lane of its key, if there are lanes."""
        if self.keyed is not None:
            found = self.find(offset)
            self.keyed.enter(offset, None if found is None else found[0].keys[found[1]])

    def _forgive(self) -> None:
        """Count no tries that were lost while losses did not count."""
        for one in self.owed.singles():
            if one.state not in IN_FLIGHT:
                one.tries = min(one.tries, self.last_failed(one.offset))
                self._touch(one)

    def seek(self, offset: int) -> None:
        """Begin anew at ``offset``: nothing is owed any more."""
        self.owed.clear()
        self.errors.clear()
        self.amended.clear()
        self.fresh.seek(offset)
        for consumer in self.consumers:
            consumer.outlet.moved(consumer)

    # Its consumers

    def joined(self, consumer: Consumer) -> None:
        """A consumer takes part from now on."""
        self._serial += 1
        consumer.serial = self._serial
        self.consumers.append(consumer)
        if self.keyed is not None:
            self.keyed.joined(consumer)

    def left(self, consumer: Consumer) -> None:
        """A consumer takes nothing any more."""
        self.consumers.remove(consumer)
        if self.keyed is not None:
            self.keyed.left(consumer)

    # Taking

    def take(self, consumer: Consumer, now_s: float, limit: int) -> list[Portion]:
        """Hand events to a consumer, in order, within window and ``limit``."""
        free = min(self.credit, limit)
        if free <= 0 or not self.active:
            return []
        if self.keyed is not None:
            taken = self._take_by_key(self.keyed, consumer, now_s, free)
        elif self.cursor.plain:
            again = self._queue.waiting
            taken = self._take_again(consumer, now_s, free) if again else []
            fresh = 0 if self._held_up else free - len(taken)
            level = self.cursor.plain_level
            for portion in self.fresh.runs(fresh, now_s):
                self._send_first(portion, level, consumer, now_s)
                taken.append(portion)
        else:
            taken = self._take_by_priority(consumer, now_s, free)
        if taken or self.fresh.passed:
            self.fresh.passed = False
            self.note()
        return taken

    def _take_again(self, consumer: Consumer, now_s: float, free: int) -> list[Portion]:
        """Events that were sent before and came back; they precede fresh ones."""
        taken: list[Portion] = []
        while len(taken) < free and (queue := self._next_again()):
            portion = self._send_again(heappop(queue)[1], consumer, now_s)
            if portion is not None:
                taken.append(portion)
        return taken

    def _take_by_priority(
        self, consumer: Consumer, now_s: float, free: int
    ) -> list[Portion]:
        taken: list[Portion] = []
        room, missed = TAKE_BYTES, 0
        while len(taken) < free:
            if room <= 0 or missed >= MAX_LOOKS:
                self.fresh.unfinished = True
                break
            fresh, queue = self.fresh.first(), self._next_again()
            if queue and (fresh is None or queue[0] <= fresh):
                portion = self._send_again(heappop(queue)[1], consumer, now_s)
            elif fresh is not None:
                portion = self.fresh.pick(fresh, now_s)
                if portion is not None:
                    self._send_first(portion, -fresh[0], consumer, now_s)
            else:
                break
            if portion is None:
                missed += 1
                continue
            taken.append(portion)
            room -= max(portion.size, len(portion.page.payloads[portion.lo]))
        return taken

    def let_due(self, offset: int, priority: int) -> bool:
        """The time of a delayed event has come: whether it was postponed here."""
        late = self.fresh.let_due(offset, priority)
        if late:
            self.note()
        return late

    def _take_by_key(
        self, keyed: KeyOrder, consumer: Consumer, now_s: float, free: int
    ) -> list[Portion]:
        """What this consumer may have of all keys: what was read past, then fresh."""
        taken: list[Portion] = []
        while len(taken) < free and (offset := keyed.next_for(consumer)) is not None:
            portion = self._send_again(offset, consumer, now_s)
            if portion is not None:
                taken.append(portion)
        free -= len(taken)
        while free > 0:
            unsent = len(self.owed) - self.owed.in_flight - self.owed.paused
            ahead = min(free, self.policy.window - unsent)
            runs = list(self.fresh.runs(ahead, now_s))
            if not runs:
                break
            for run in runs:
                mine = self._send_by_key(keyed, run, consumer, now_s)
                free -= sum(portion.hi - portion.lo for portion in mine)
                taken += mine
        return taken

    def _send_by_key(
        self, keyed: KeyOrder, run: Portion, consumer: Consumer, now_s: float
    ) -> list[Portion]:
        """Note a run of fresh events: what this consumer gets, and what waits."""
        mine: list[Portion] = []
        due_s, page = self._due(now_s), run.page
        for index in range(run.lo, run.hi):
            offset, key = page.offset_of(index), page.keys[index]
            goes, one = keyed.goes_to(key, consumer), Owed(offset, ALL)
            if not goes:
                one.unsent = True
                self.owed.add(one)
                self._touch(one)
                keyed.enter(offset, key)
                keyed.moved(one, HELD)
                continue
            if self.policy.qos:
                one.state, one.tries, one.due_s, one.holder = SENT, 1, due_s, consumer
                self.owed.add(one)
                self._touch(one)
                keyed.sent_first(one, key)
            if mine and mine[-1].hi == index:
                mine[-1].hi += 1
            else:
                mine.append(Portion(page, index, index + 1, 1))
        return mine

    @property
    def _held_up(self) -> bool:
        """Whether fresh events have to wait for one that is sent alone."""
        return self.policy.in_order and self._queue.isolating()

    def _next_again(self) -> list[Rank]:
        """The heap whose first event goes next of those that came back."""
        return self._queue.first(in_order=self.policy.in_order)

    @property
    def _queue(self) -> SendAgain:
        queue = self.owed.queue
        assert isinstance(queue, SendAgain), "asked for only where nothing is keyed"
        return queue

    def _send_first(
        self, portion: Portion, level: int, consumer: Consumer, now_s: float
    ) -> None:
        """Note events as sent for the first time, neighbours as one run."""
        if self.policy.qos == 0:
            return
        page, lo, hi = portion.page, portion.lo, portion.hi
        due_s = self._due(now_s)
        if page.dense and hi - lo > 1:
            first, end = page.base + lo, page.base + hi
            self.owed.add_run(SentRun(first, end, level, due_s, consumer))
            return
        for offset in (
            page.batch.offsets()[lo:hi] if hi - lo > 1 else (page.offset_of(lo),)
        ):
            one = Owed(offset, level)
            one.state = SENT
            one.tries = 1
            one.due_s = due_s
            one.holder = consumer
            self.owed.add(one)
            self._touch(one)

    def _send_again(
        self, offset: int, consumer: Consumer, now_s: float
    ) -> Portion | None:
        one = self.owed.get(offset)
        if one is None or one.state not in QUEUED:
            return None  # settled, or moved on while it waited
        if one.state is SUSPECT and self.owed.queue.alone is not None:
            return None  # it waits with the suspects, since it was queued
        found = self.find(offset)
        if found is None:
            self._miss(one, now_s)
            return None
        if one.unsent:
            if self.fresh.has_expired(*found, now_s):
                self._finish(one, Move.GIVE_UP)
                return None
            one.unsent = False
        one.tries += 1
        if self.policy.qos == 0:
            self._finish(one, Move.GIVE_UP)  # settled by being sent
        else:
            self.owed.move(one, Move.SEND, self._due(now_s), consumer)
            self._touch(one)
        return Portion(found[0], found[1], found[1] + 1, one.tries)

    def _miss(self, one: Owed, now_s: float) -> None:
        """An event that was to be tried again is not there any more."""
        self.note(urgent=True)
        if self.policy.qos == 0:
            self._finish(one, Move.GIVE_UP)
            return
        self.misses += 1
        one.tries += 1
        why = Failure(0, 0, GONE, "retention or compaction took it before this try")
        self._gone.append(self._fail(one, why, now_s, NoMoreTries("dead-letter")))

    def missed(self, now_s: float) -> list[Failed]:
        """Events that were to be taken and are gone, for a dead letter each."""
        if self.fresh.lapsed:
            self._lapse(now_s)
        if not self._gone:
            return []
        gone, self._gone = self._gone, []
        return gone

    def _lapse(self, now_s: float) -> None:
        """Events have expired unsent, of a topic that wants to know."""
        lapsed, self.fresh.lapsed = self.fresh.lapsed, []
        if self.temporary or not self.policy.qos:
            return  # no operator looks at letters of those
        why = Failure(0, 0, EXPIRED, "it expired before it was sent").noted(0, now_s)
        self._gone += [
            Failed(offset, 0, [why], "dead-letter", level) for offset, level in lapsed
        ]

    def _due(self, now_s: float) -> float:
        timeout_s = self.policy.ack_timeout_s
        return 0.0 if timeout_s is None else now_s + timeout_s

    # Settling

    def settle(self, offset: int, *, urgent: bool = True) -> bool:
        """Finish a delivery in flight; False if there is none."""
        if not self.owed.settle(offset):
            one = self.owed.get(offset)
            if one is None or one.state not in IN_FLIGHT:
                return False
            self._finish(one, Move.SETTLE)
        self.note(urgent=urgent)
        return True

    def settle_run(
        self, first: int, end: int, holder: Consumer, *, urgent: bool = True
    ) -> bool:
        """Finish neighbours that a consumer has in flight; False if it has not all."""
        if not self.owed.covers(first, end, holder):
            return False
        self.owed.settle_range(first, end, holder)
        self.note(urgent=urgent)
        return True

    def settle_all(
        self, offsets: list[int], holder: Consumer, *, urgent: bool = True
    ) -> int:
        """Finish what a consumer has in flight of these; how many those were.

        ``urgent``: a client waits for it to be written.
        """
        if not offsets:
            return 0
        first, end = offsets[0], offsets[-1] + 1
        before = self.owed.in_flight
        rest: Iterable[int] = offsets
        if end - first == len(offsets) and offsets == list(range(first, end)):
            taken = self.owed.settle_range(first, end, holder)
            rest = () if taken == len(offsets) else self.owed.singles_of(offsets)
        for offset in rest:
            if self.owed.holder_of(offset) is holder:
                self.settle(offset, urgent=urgent)
        settled = before - self.owed.in_flight
        if settled:
            self.note(urgent=urgent)
        return settled

    def answer(self, offset: int, answer: Reply, now_s: float) -> OwedState | None:
        """Move a handshake on; None if the answer makes no sense."""
        one = self.owed.get(offset)
        if one is None:
            return None
        state = next_state(self.policy.qos, one.state, answer)
        if state is SETTLED:
            self._finish(one, Move.SETTLE)
        elif state is RELEASED and one.state is not RELEASED:
            one.tries = 1  # from now on the tries of PUBREL
            due_s = now_s + self.policy.release_interval_s
            self.owed.move(one, Move.RECEIVE, due_s, one.holder)
            self._touch(one)
        if state is not None:
            self.note(urgent=True)
        return state

    def resume(self, consumer: Consumer, now_s: float) -> list[Owed]:
        """Deliveries that wait for PUBCOMP, taken over by a new consumer."""
        found = [
            one
            for one in self.owed.singles()
            if one.state is RELEASED and one.holder is None
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
            if one is not None and one.state in QUEUED:
                self.owed.move(one, Move.RESUME, holder=holder)

    def _finish(self, one: Owed, move: Move) -> None:
        """Owe an event no more, and forget what is known of it."""
        self.owed.move(one, move)
        if self.errors:
            self.errors.pop(one.offset, None)
        if self.amended:
            self.amended.pop(one.offset, None)

    # Tries that fail

    def refuse(
        self, offset: int, failure: Failure, now_s: float, *, final: bool = False
    ) -> Failed | None:
        """A consumer failed with an event; None if it has no such event.

        ``final``: no other try can be better, whatever the policy says.
        """
        one = self.owed.get(offset)
        if one is None or one.state not in (SENT, ALONE):
            return None
        self.note(urgent=True)
        decision = NoMoreTries("dead-letter") if final else self._decide(one, now_s)
        return self._fail(one, failure, now_s, decision)

    def give_back(self, consumer: Consumer, now_s: float) -> list[Failed]:
        """Return what a consumer held, for the next one; tries that count as failed."""
        failed: list[Failed] = []
        for one in self.owed.held_by(consumer):
            if one.state is RELEASED:
                one.holder, one.due_s = None, 0.0
            elif self.policy.counts_losses:
                failed.append(self._lose(one, CONSUMER_LEFT, now_s))
            else:
                if self.policy.exhausted == "suspend":
                    self._begin_anew(one)  # patience is with a connection
                    self._touch(one)
                    self.note()
                self._requeue(one)
        if failed:
            self.note()
        return failed

    def put_back(self, offsets: Iterable[int], holder: Consumer) -> None:
        """Return events that a consumer never began: their try does not count."""
        for offset in offsets:
            if self.owed.holder_of(offset) is not holder:
                continue
            one = self.owed.get(offset)
            if one is not None and one.state in (SENT, ALONE):
                one.tries -= 1
                self._requeue(one)
                self._touch(one)
        self.note()

    def overdue(self, now_s: float) -> Overdue:
        """Act on everything whose time has come."""
        done = Overdue([], [])
        for one in self.owed.due(now_s):
            if one.state is PAUSED:
                self._requeue(one)
            elif one.state is not RELEASED:
                timeout_s = self.policy.ack_timeout_s  # the rules may have changed
                within = "" if timeout_s is None else f" within {timeout_s:g} s"
                why = Failure(0, 0, TIMEOUT, f"no answer{within}", "", timeout_s)
                decision = self._decide(one, now_s)
                done.failed.append(self._fail(one, why, now_s, decision))
            elif one.tries >= self.policy.release_tries:
                self._finish(one, Move.SETTLE)  # counts as received
            else:
                one.tries += 1
                one.due_s = now_s + self.policy.release_interval_s
                done.released.append(one)
        self.note()
        return done

    def next_due_s(self) -> float | None:
        """The earliest moment at which something runs out of time."""
        return self.owed.next_due_s()

    def put_off_until(self, offset: int, at_s: float) -> None:
        """Let an event that is to be sent again wait, at least until then."""
        one = self.owed.get(offset)
        if one is not None and (one.state in QUEUED or one.state is PAUSED):
            self.owed.move(one, Move.PAUSE, max(one.due_s, at_s))

    def _decide(self, one: Owed, now_s: float) -> TryAgain | NoMoreTries:
        return after_failure(self.policy, one.tries, now_s, one.offset)

    def _lose(self, one: Owed, message: str, now_s: float) -> Failed:
        decision = self._decide(one, now_s)
        if isinstance(decision, TryAgain):
            decision = TryAgain(now_s)
        return self._fail(one, Failure(0, 0, LOST, message), now_s, decision)

    def _fail(
        self,
        one: Owed,
        failure: Failure,
        now_s: float,
        decision: TryAgain | NoMoreTries,
    ) -> Failed:
        """A try has failed: queue the next one, or tell what follows the last."""
        offset = one.offset
        errors = self.errors.setdefault(offset, [])
        errors.append(failure.noted(one.tries, now_s))
        _shorten(errors)
        then = decision.then if isinstance(decision, NoMoreTries) else None
        amended = self.amended.get(offset)
        payer = None if one.holder is None else one.holder.payer
        kept = list(errors)
        failed = Failed(offset, one.tries, kept, then, one.level, amended, payer)
        if then == "dead-letter":
            self._finish(one, Move.GIVE_UP)
            return failed
        self._touch(one)
        if not self.temporary:
            self.owed.erred[offset] = None
        if then == "suspend":
            self._begin_anew(one)
        if isinstance(decision, TryAgain) and decision.at_s > now_s:
            self.owed.move(one, Move.PAUSE, decision.at_s)
        else:
            self._requeue(one)
        return failed

    def _requeue(self, one: Owed) -> None:
        self.owed.move(one, self._again(one))

    def _again(self, one: Owed) -> Move:
        """How an event is sent again: alone, if it is a suspect."""
        errors = self.errors.get(one.offset) if self.errors else None
        suspect = errors is not None and is_suspect(self.policy, errors)
        return Move.ISOLATE if suspect else Move.RETRY

    def _begin_anew(self, one: Owed) -> None:
        """Forget the tries so far: a subscriber that comes back has all of them."""
        one.tries = 0
        if self.errors.pop(one.offset, None) is not None and not self.temporary:
            self.owed.erred[one.offset] = None

    # Owing again what was settled

    def add_back(
        self, offset: int, priority: int, amended: bytes | None = None
    ) -> bool:
        """Owe an event again that was settled before; False if it is owed already.

        ``amended`` is the frame that is sent in its place.
        """
        one = self._owe_again(offset, priority, amended)
        if one is None:
            return False
        self._requeue(one)
        return True

    def hold_back(
        self, offset: int, priority: int, amended: bytes | None = None
    ) -> Owed | None:
        """As ``add_back``, but it is not sent before ``let_go``."""
        return self._owe_again(offset, priority, amended)

    def let_go(self, one: Owed) -> None:
        """Send an event that was held back, if it still is."""
        if self._holds_back(one):
            self._requeue(one)

    def call_off(self, one: Owed) -> None:
        """Owe an event no more that was held back, if it still is."""
        if self._holds_back(one):
            self._finish(one, Move.GIVE_UP)
            self.note()

    def take_back(self, failed: Failed) -> None:
        """Owe an event again whose end was not stored: its last try is repeated."""
        one = self._owe_again(failed.offset, failed.level, failed.amended)
        if one is None:
            return
        one.tries = max(failed.tries - 1, 0)
        if not failed.tries:  # it has expired unsent, and will again
            one.unsent = True
            self.fresh.expired -= 1
        errors = [error for error in failed.errors if error.tries < failed.tries]
        if errors:
            self.errors[failed.offset] = errors
        self._requeue(one)

    def _holds_back(self, one: Owed) -> bool:
        return one.state is HELD and self.owed.single(one.offset) is one

    def _owe_again(
        self, offset: int, priority: int, amended: bytes | None
    ) -> Owed | None:
        """An event that is owed again, and held."""
        if offset in self.owed:
            return None
        one = Owed(offset, self.cursor.level_of(priority))
        one.state = HELD
        one.recorded = True  # perhaps: it may have been settled in this very group
        self.owed.add(one)
        if amended is not None:
            self.amended[offset] = amended
        if self.keyed is not None:
            self._enter(offset)
            self.keyed.moved(one, HELD)
        if not self.temporary:
            # So the journal may still know what it was before it was settled.
            self.owed.erred[offset] = self.owed.amended[offset] = None
        self._touch(one)
        self.note(urgent=True)
        return one

    # What the journal is to hear

    def note_tries(self) -> None:
        """Have the tries of what was taken written before a consumer begins.

        Without a sync: it is the end of the process that must not hide a try, and
        what the operating system has outlives that.
        """
        self.note(urgent=True, sync=False)

    def note(self, *, urgent: bool = False, sync: bool = True) -> None:
        """Have the changes so far written, soon if a client waits for it."""
        if self.temporary or self.ended:
            return
        notes = self._notes
        notes.dirty[self] = None
        if urgent:
            notes.urgent = True
            notes.sync = notes.sync or (sync and not self.relaxed)

    def _touch(self, one: Owed) -> None:
        if not self.temporary:
            self.owed.touched[one.offset] = None


def _queueing(policy: Policy) -> tuple[object, ...]:
    """What of the rules decides how events are queued."""
    return policy.counts_losses, policy.tries, policy.order, policy.in_order


def _shorten(errors: list[Failure]) -> None:
    """Keep the newest, within what is kept of one event."""
    del errors[:-MAX_ERRORS]
    size = sum(one.size for one in errors)
    while size > MAX_ERRORS_BYTES:
        size -= errors.pop(0).size
