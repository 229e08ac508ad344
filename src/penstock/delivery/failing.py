"""Tries that fail: refused, out of time, or lost with whoever had them.

A try counts from the moment its event is handed out. One that ends without an answer,
because the consumer went away or the process ended, is *lost*. Where the policy counts
losses (``Policy.counts_losses``) a loss is a failure like any other, but that there is
no pause after it: whoever comes back was gone long enough. A restart tells a loss by
its records: an event whose last try is not among its failures was in the middle of it.
Events that were lost again and again are sent alone, see quarantine.py.

Whoever goes away in good order may *put back* what it never began: that was no try.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.delivery.handshake import Stage
from penstock.delivery.owed import Failed, Owed
from penstock.delivery.retry import GiveUp, TryAgain, after_failure
from penstock.delivery.standing import Standing
from penstock.model.failure import LOST, Failure

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer

# Errors remembered of the tries of one event, the newest.
MAX_ERRORS = 20
# What their texts take together: they are written again with every try that fails.
# At least three fit in, however long they are.
MAX_ERRORS_BYTES = 1 << 16
CONSUMER_LEFT = "the consumer went away in the middle of this try"
BROKER_ENDED = "the broker ended in the middle of this try"


class Failing(Standing):
    def refuse(
        self, offset: int, failure: Failure, now_s: float, *, final: bool = False
    ) -> Failed | None:
        """A consumer failed with an event; None if it has no such event.

        ``final``: no other try can be better, whatever the policy says.
        """
        one = self.owed.get(offset)
        if one is None or one.stage is not Stage.SENT:
            return None
        self.note(urgent=True)
        if final:
            return self._fail(one, failure, now_s, GiveUp("dead-letter"))
        return self._fail(one, failure, now_s, self._decide(one, now_s))

    def give_back(self, consumer: Consumer, now_s: float) -> list[Failed]:
        """Return what a consumer held, for the next one; tries that count as failed."""
        failed: list[Failed] = []
        for one in self.owed.held_by(consumer):
            if one.stage is Stage.SENT and self.policy.counts_losses:
                failed.append(self._lose(one, CONSUMER_LEFT, now_s))
                continue
            if one.stage is not Stage.SENT:
                one.holder, one.due_s = None, 0.0
            else:
                self._land(one)
                self._quarantine.discard(one.offset)  # the rules may have changed
                if self.policy.exhausted == "suspend":
                    self._begin_anew(one)  # patience is with a connection
                    self._touch(one)
                    self.note()
                self._queue(one)
        if failed:
            self.note()
        return failed

    def put_back(self, offsets: Iterable[int], holder: Consumer) -> None:
        """Return events that a consumer never began: their try does not count."""
        for offset in offsets:
            if self.owed.holder_of(offset) is not holder:
                continue
            one = self.owed.get(offset)
            if one is not None and one.stage is Stage.SENT:
                one.tries -= 1
                self._land(one)
                self._quarantine.judge(offset, self.policy, self.errors.get(offset))
                self._queue(one)
                self._touch(one)
        self.note()

    def recover(self, now_s: float) -> list[Failed]:
        """Tries that a broker which ended was in the middle of; after ``wire``."""
        if not self.policy.counts_losses:
            return []
        lost = [
            one
            for one in self.owed.singles()
            if one.stage is Stage.WAITING and one.tries > self.last_failed(one.offset)
        ]
        for one in lost:
            one.stage = Stage.SENT
        self.flying += len(lost)
        self._line_up()
        if lost:
            self.note()
        return [self._lose(one, BROKER_ENDED, now_s) for one in lost]

    def _decide(self, one: Owed, now_s: float) -> TryAgain | GiveUp:
        return after_failure(self.policy, one.tries, now_s, one.offset)

    def _lose(self, one: Owed, message: str, now_s: float) -> Failed:
        decision = self._decide(one, now_s)
        if isinstance(decision, TryAgain):
            decision = TryAgain(now_s)
        return self._fail(one, Failure(0, 0, LOST, message), now_s, decision)

    def _fail(
        self, one: Owed, failure: Failure, now_s: float, decision: TryAgain | GiveUp
    ) -> Failed:
        """A try has failed: queue the next one, or tell what follows the last."""
        offset = one.offset
        errors = self.errors.setdefault(offset, [])
        errors.append(failure.noted(one.tries, now_s))
        _shorten(errors)
        then = decision.then if isinstance(decision, GiveUp) else None
        amended = self.amended.get(offset)
        payer = None if one.holder is None else one.holder.payer
        kept = list(errors)
        failed = Failed(offset, one.tries, kept, then, one.level, amended, payer)
        if then == "dead-letter":
            self._drop(one)
            return failed
        self._land(one)
        self._touch(one)
        if not self.temporary:
            self.owed.erred[offset] = None
        self._quarantine.judge(offset, self.policy, errors)
        if isinstance(decision, TryAgain) and decision.at_s > now_s:
            one.stage = Stage.WAITING
            one.due_s = decision.at_s
            self._later += 1
            return failed
        if then == "suspend":
            self._begin_anew(one)
        self._queue(one)
        return failed

    def _land(self, one: Owed) -> None:
        """It is in flight no more, and owed still."""
        one.holder, one.due_s = None, 0.0
        self.flying -= 1

    def _begin_anew(self, one: Owed) -> None:
        """Forget the tries so far: whoever subscribes again has all of them."""
        one.tries = 0
        if self.errors.pop(one.offset, None) is not None and not self.temporary:
            self.owed.erred[one.offset] = None


def _shorten(errors: list[Failure]) -> None:
    """Keep the newest, within what is kept of one event."""
    del errors[:-MAX_ERRORS]
    size = sum(one.size for one in errors)
    while size > MAX_ERRORS_BYTES:
        size -= errors.pop(0).size
