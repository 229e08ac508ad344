"""A handler's share in a subscription of the broker in this process.

Events are taken as the handler has room for them. Their tries are written before the
handler gets them: an event that ends the process must not be tried for ever. What the
handlers have done is told to the broker once for all of it, each turn of the pump.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.access.peer import Peer
from penstock.broker.finish import finish
from penstock.broker.promised import Promised
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed, Portion
from penstock.delivery.subscription import Subscription
from penstock.embedded.job import Job, jobs_of
from penstock.embedded.outgoing import Intent, by_topic, columns_of
from penstock.embedded.runner import Runner
from penstock.errors import PenstockError
from penstock.log import Columns
from penstock.model.failure import Failure

if TYPE_CHECKING:
    from penstock.embedded.local import LocalLink

logger = logging.getLogger(__name__)

JobsDone = tuple[list[Job], list[Intent]]


class LocalChannel:
    def __init__(
        self, link: LocalLink, subscription: Subscription, runner: Runner
    ) -> None:
        self._link = link
        self._broker = link.broker
        self._subscription = subscription
        self._runner = runner
        self._ordered = runner.handler.options.ordered
        self._by_key = runner.handler.options.order == "key"
        self._taken: Promised[list[Portion]] = Promised(self._broker.log)
        """Events whose tries are being written."""
        self._underway = 0
        """How many those are."""
        self._plain: list[int] = []
        """Offsets to be settled."""
        self._done: list[JobsDone] = []
        """Events to be settled together with publishing something."""
        self._unsure: Promised[tuple[list[Job], bool]] = Promised(self._broker.log)
        """Events that are settled, or given up, once their group is written."""
        self._refused: list[tuple[Job, Failure, bool]] = []
        self.peer = Peer("embedded", link.clock.now_s(), name=runner.subscriber)
        self._consumer: Consumer = self._broker.attach(subscription, self)
        link.engine.members[self] = self
        link.engine.kick()

    # The handler's side

    def finish(self, jobs: list[Job], intents: list[Intent]) -> None:
        if intents:
            if self in self._link.engine.members:
                self._done.append((jobs, intents))
                self.wake()
            else:  # it has ended: nothing is published for these any more
                self._runner.let_go(jobs)
            return
        if not self._plain:  # told once for all of this turn
            self.wake()
        self._plain += [job.offset for job in jobs]

    def refuse(self, job: Job, failure: Failure, *, final: bool) -> bool:
        self._refused.append((job, failure, final))
        self.wake()
        return self._ordered

    def put_back(self, jobs: list[Job]) -> None:
        self._tell(self._link.clock.now_s())
        self._subscription.put_back([job.offset for job in jobs], self._consumer)
        unread = [portion for portions in self._taken for portion in portions]
        self._taken.clear()
        self._underway = 0
        offsets = [one.offset for one in jobs_of("", unread, by_key=False)]
        self._subscription.put_back(offsets, self._consumer)

    def wake(self) -> None:
        self._broker.awake[self] = None
        self._link.engine.kick()

    def owes(self, offset: int) -> bool:
        unsure = any(job.offset == offset for jobs, _ in self._unsure for job in jobs)
        return unsure or offset in self._subscription.owed

    async def close(self) -> None:
        if self._link.engine.members.pop(self, None) is not None:
            self._tell(self._link.clock.now_s())
            self._broker.detach(self._consumer)
            self._link.engine.kick()

    # The broker's side; see Outlet and Member

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        """Never: there is no handshake."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        self._link.engine.members.pop(self, None)
        self._runner.ended(reason)
        left = [jobs for jobs, _ in self._done] + [
            jobs for jobs, at_hand in self._unsure if at_hand
        ]
        self._done.clear()
        self._unsure.clear()
        for jobs in left:
            self._runner.let_go(jobs)

    def moved(self, consumer: Consumer) -> None:
        self._taken.clear()
        self._underway = 0
        self._unsure.clear()
        for what in (self._plain, self._done, self._refused):
            what.clear()
        self._runner.moved()

    def flush(self, now_s: float) -> None:
        """Tell what was done, hand over what may be begun, take more."""
        try:
            self._tell(now_s)
            self._confirm()
            self._hand_over()
            room = self._runner.room() - self._underway - self._put_off()
            if room > 0:
                self._take(room, now_s)
        except Exception:  # a mistake of ours: others must not suffer from it
            logger.exception(
                "%s stopped handling %s",
                self._runner.subscriber,
                self._subscription.topic,
                extra={"action": "handler_stopped", "topic": self._subscription.topic},
            )
            self.ended(self._consumer, "an error of the broker")
            self._broker.detach(self._consumer)

    def _put_off(self) -> int:
        """Events that others wait for, which need room when they come again."""
        return self._subscription.owed.paused if self._ordered else 0

    def _take(self, room: int, now_s: float) -> None:
        misses = self._subscription.misses
        portions = self._broker.take(self._consumer, now_s, room)
        if self._subscription.misses != misses:
            self._runner.unblock()  # what a lane waits for may be gone
        if not portions:
            return
        self._subscription.note_tries()
        self._taken.put(self._broker.group, portions, again=True)
        self._underway += sum(one.hi - one.lo for one in portions)
        self._broker.waiting[self] = None
        self._link.engine.kick()

    def _hand_over(self) -> None:
        ready = [one for portions, _ in self._taken.take() for one in portions]
        if self._taken:
            self._broker.waiting[self] = None
        if ready:
            self._underway -= sum(one.hi - one.lo for one in ready)
            topic = self._subscription.topic
            self._runner.arrived(jobs_of(topic, ready, by_key=self._by_key))

    def _tell(self, now_s: float) -> None:
        if self._plain:
            offsets, self._plain = self._plain, []
            offsets.sort()
            self._subscription.settle_all(offsets, self._consumer)
            self._broker.wake(self._subscription)
        if self._done:  # some of it may be refused
            self._publish_done()
        if self._refused:
            refused, self._refused = self._refused, []
            for job, failure, final in refused:
                self._broker.refuse(
                    self._consumer, job.offset, failure, now_s, final=final
                )
                if self._ordered and self._runner.is_last(job, final=final):
                    self._unsure.put(self._broker.promised, ([job], False))

    # Settling with publishing

    def _publish_done(self) -> None:
        done, self._done = self._done, []
        held = self._held(done)
        if not held:
            return
        try:
            self._finish(held)
        except PenstockError as error:
            if error.retriable:
                self._done = held
                self._link.retry(self)
                return
            self._one_by_one(held)
        self._broker.wake(self._subscription)

    def _one_by_one(self, done: list[JobsDone]) -> None:
        """Find those whose events are refused: their handlers failed."""
        for one in done:
            try:
                self._finish([one])
            except PenstockError as error:
                if error.retriable:
                    self._done.append(one)
                    self._link.retry(self)
                    continue
                for job in one[0]:
                    self._runner.could_not_publish(job, error)

    def _finish(self, done: list[JobsDone]) -> None:
        offsets = [job.offset for jobs, _ in done for job in jobs]
        events = self._columns([one for _, intents in done for one in intents])
        finish(self._broker, self._consumer, offsets, events)
        for jobs, _ in done:
            if self._ordered:
                self._unsure.put(self._broker.promised, (jobs, True))
                self._broker.waiting[self] = None
            else:
                self._runner.finished(jobs)

    def _confirm(self) -> None:
        """Let lanes go on whose first event is settled for good.

        If the commit failed it comes again, and nothing is to overtake it: what was
        not begun goes back, and comes behind it.
        """
        for (jobs, at_hand), holds in self._unsure.take():
            if not holds:
                # One of what was not begun may be sent alone, and wait for these.
                self.put_back(self._runner.taken_back(jobs if at_hand else []))
            elif at_hand:
                self._runner.finished(jobs)
            else:
                self._runner.passed(jobs)
        if self._unsure:
            self._broker.waiting[self] = None

    def _columns(self, intents: list[Intent]) -> dict[str, Columns]:
        now_ms = int(self._link.clock.now_s() * 1000)
        producer = self._runner.subscriber
        return {
            topic: columns_of(group, now_ms, producer)
            for topic, group in by_topic(intents).items()
        }

    def _held(self, done: list[JobsDone]) -> list[JobsDone]:
        """Those whose events are still here: others must not publish for them."""
        held = []
        for jobs, intents in done:
            here = [job for job in jobs if self._consumer.holds(job.offset)]
            if len(here) == len(jobs):
                held.append((jobs, intents))
            else:  # a batch that was broken up: what is left of it is tried again
                offsets = [job.offset for job in here]
                self._subscription.put_back(offsets, self._consumer)
                self._runner.let_go(jobs)
        return held
