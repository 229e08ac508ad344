"""What follows failed tries, carried out: dead letters, the error log, suspensions.

A subscription decides (delivery/retry.py), this acts. An event that is given up is
settled in the group that stores its letter: if the log refuses the letter, or that
group fails, the event is owed again.

Texts of failures and letters are written on the account of the user who acts, or else
of the consumer that had the event. While that is in debt the event is not tried again:
its user could have them written without an end by giving no answer at all.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.delivery import error_log, letters
from penstock.delivery.owed import Failed
from penstock.delivery.subscription import Subscription
from penstock.model.failure import EXPIRED, GONE

if TYPE_CHECKING:
    from penstock.broker.broker import Broker

logger = logging.getLogger(__name__)

# Until the next try to store the letter of an event that is gone.
GONE_RETRY_S = 1.0
# What a row of the error log takes besides its texts, about.
ROW_BYTES = 256


class FailureHandling:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        options = broker.options
        self._error_log = error_log.ErrorLog(
            broker.log,
            error_log.topic_options(
                options.error_retention_age_s, options.error_retention_bytes
            ),
        )

        self._letters_start = self._first_letter()
        self._gaps: dict[Subscription, None] = {}
        """Of which an event is gone that others may wait for."""

    def recover(self) -> None:
        """Count the tries that a broker which ended was in the middle of."""
        now_s = self._broker.log.now_ms() / 1000
        for subscription in list(self._broker.subscriptions):
            if not subscription.ended:  # as it may be if a commit fails meanwhile
                self.carry_out(subscription, subscription.recover(now_s), now_s)

    def tick(self, now_s: float) -> None:
        """Act on everything whose time has come."""
        broker = self._broker
        if self._gaps:
            self._close_gaps()
        if (start := self._first_letter()) > self._letters_start:
            self._say_gone(start)
        for subscription in broker.timers.due(now_s):
            overdue = subscription.overdue(now_s)
            for one in overdue.released:
                if one.holder is not None:
                    one.holder.outlet.released(one.holder, [one])
                    broker.awake[one.holder.outlet] = None
            self.carry_out(subscription, overdue.failed, now_s)
        for message in broker.pending.expired(now_s - broker.options.pending_ttl_s):
            letter = letters.stale(message, now_s)
            if letters.kept(broker.log, letter, broker.letter_options):
                broker.pending.give_up(message)

    def _first_letter(self) -> int:
        log, name = self._broker.log, letters.TOPIC
        return log.topic(name).start_offset if log.has_topic(name) else 0

    def _say_gone(self, start: int) -> None:
        """Say how many open letters retention has taken."""
        lost = self._broker.letters.open_between(self._letters_start, start)
        self._letters_start = start
        if lost:
            logger.warning(
                "%d open dead letters are gone: there is room for "
                "broker.dead_letter_retention_bytes of them, and time for "
                "broker.dead_letter_retention_age_s",
                lost,
                extra={"action": "letters_expired", "count": lost},
            )

    def carry_out(
        self, subscription: Subscription, failures: list[Failed], now_s: float
    ) -> None:
        """Do what has to be done besides trying again, and see to the next try."""
        for failed in failures:
            letter = 0
            if failed.then == "dead-letter":
                letter = self._bury(subscription, failed, now_s)
            elif failed.then == "suspend":
                self.suspend(subscription)
            self._charge(failed, letter)
        if failures:
            self._error_log.add(subscription, failures, now_s)
            self._put_off(subscription, failures, now_s)
        next_s = subscription.next_due_s()
        if next_s is not None:
            self._broker.timers.arm(subscription, next_s)
        self._broker.wake(subscription)

    def _charge(self, failed: Failed, letter: int) -> None:
        """Have what is written paid: a row of the error log, and a letter or texts."""
        payer = self._broker.accounts.payer or failed.payer
        if payer is not None:
            size = letter or sum(one.size for one in failed.errors)
            row = failed.errors[-1].size + ROW_BYTES
            payer.charge(2 if letter else 1, size + row)

    def _put_off(
        self, subscription: Subscription, failures: list[Failed], now_s: float
    ) -> None:
        """Try nothing again before what its failure took is paid."""
        for failed in failures:
            payer = self._broker.accounts.payer or failed.payer
            if failed.then is None and payer is not None and (s := payer.wait_s()):
                subscription.put_off_until(failed.offset, now_s + s)

    def _close_gaps(self) -> None:
        """Have those begin anew who keep events behind one that will not come."""
        gaps, self._gaps = self._gaps, {}
        for subscription in gaps:
            for consumer in subscription.consumers:
                if consumer.prefetch > 1:
                    held = [one.offset for one in subscription.owed.held_by(consumer)]
                    subscription.put_back(held, consumer)
                    consumer.outlet.moved(consumer)
                    self._broker.wake_one(consumer)

    def _bury(self, subscription: Subscription, failed: Failed, now_s: float) -> int:
        """Keep the letter of an event that is given up, if that can be; its size."""
        log = self._broker.log
        letter = letters.buried(subscription, failed, now_s)
        gone = failed.errors[-1].kind in (GONE, EXPIRED)
        size = letters.kept(log, letter, self._broker.letter_options)
        if size:
            self._broker.unconfirmed_letters.add(
                self._broker.group, subscription, failed
            )
            if gone and subscription.policy.in_order:
                self._gaps[subscription] = None
            return size
        subscription.take_back(failed)
        if gone:  # no consumer is slow for us
            subscription.put_off_until(failed.offset, now_s + GONE_RETRY_S)
        return 0

    def suspend(self, subscription: Subscription) -> None:
        """Stop a subscription whose consumer does not answer, its position kept."""
        self._broker.dismiss(subscription, "suspended: no answer")
        subscription.active, subscription.suspended = False, True
        self._broker.subscriptions.update(subscription)
        self._broker.throttle.log(
            logger,
            logging.INFO,
            "subscription of %s to %s suspended",
            subscription.subscriber,
            subscription.topic,
            about=subscription.topic,
            extra={"action": "subscription_suspended", "topic": subscription.topic},
        )
