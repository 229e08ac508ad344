"""The error log: every failed try of every subscription, in the topic ``$errors``.

Each is one JSON event. The topic is bounded by age and size, is written without asking
for a sync, and is for people: nothing is decided by what it says, and nothing fails
because it could not be written. Then a warning says so, once a minute at most.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from math import inf

import msgspec

from penstock.delivery.amend import amended_page
from penstock.delivery.owed import Failed
from penstock.delivery.subscription import Subscription
from penstock.errors import Backlogged, LogError, PenstockError
from penstock.log import BrokerLog, Columns, TopicOptions

logger = logging.getLogger(__name__)

TOPIC = "$errors"
# Retention takes whole segments: of one part in so many it may be late.
PARTS = 8
# Rows of one append: many may fail at once, and a group has a limit.
MAX_BATCH_BYTES = 1 << 20
WARN_S = 60.0


class FailedTry(msgspec.Struct, frozen=True, kw_only=True):
    """One failed try, as it is in the error log."""

    subscriber: str
    topic: str
    offset: int
    id: str | None
    tries: int
    kind: str
    message: str
    traceback: str
    duration_s: float | None
    at_ms: int


_encode = msgspec.json.Encoder().encode
decode_failed_try = msgspec.json.Decoder(FailedTry).decode


def topic_options(age_s: float, max_bytes: int) -> TopicOptions:
    """Options of the topic, with segments small enough for retention to bite."""
    return TopicOptions(
        durability="os",
        retention_age_s=age_s,
        retention_bytes=max_bytes,
        segment_bytes=max(max_bytes // PARTS, 1 << 10),
        segment_age_s=age_s / PARTS,
    )


class ErrorLog:
    def __init__(self, log: BrokerLog, options: TopicOptions) -> None:
        self._log = log
        self._options = options
        self._warned_s = -inf
        if log.has_topic(TOPIC) and log.topic(TOPIC).options != options:
            log.set_options(TOPIC, options)

    def add(
        self, subscription: Subscription, failures: Iterable[Failed], now_s: float
    ) -> None:
        """Write the last try of each; there is at least one."""
        try:
            rows = [_encode(_row(subscription, failed)) for failed in failures]
            for batch in _batches(rows):
                self._append(batch, int(now_s * 1000))
        except PenstockError as error:
            self._warn(error, now_s)

    def _append(self, rows: list[bytes], at_ms: int) -> None:
        # What is left of a group that waits for another is for those who publish.
        waiting, limit = self._log.pending_bytes, self._log.options.group_bytes
        if waiting > limit:
            raise Backlogged(waiting, limit)
        if not self._log.has_topic(TOPIC):
            self._log.create_topic(TOPIC, self._options)
        self._log.append(TOPIC, Columns(rows, at_ms))

    def _warn(self, error: PenstockError, now_s: float) -> None:
        if now_s - self._warned_s < WARN_S:
            return
        self._warned_s = now_s
        logger.warning(
            "failed tries are missing from the error log: %s",
            error,
            extra={"action": "error_log_failed", "topic": TOPIC},
        )


def _batches(rows: list[bytes]) -> Iterable[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for row in rows:
        if batch and size + len(row) > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += len(row)
    yield batch


def _row(subscription: Subscription, failed: Failed) -> FailedTry:
    last = failed.errors[-1]
    return FailedTry(
        subscriber=subscription.subscriber,
        topic=subscription.topic,
        offset=failed.offset,
        id=_id(subscription, failed),
        tries=last.tries,
        kind=last.kind,
        message=last.message,
        traceback=last.traceback,
        duration_s=last.duration_s,
        at_ms=last.at_ms,
    )


def _id(subscription: Subscription, failed: Failed) -> str | None:
    if failed.amended is not None:
        return amended_page(subscription.topic, failed.amended).ids[0]
    try:
        found = subscription.cursor.find(failed.offset)
    except LogError:
        return None  # its frame is damaged; that it failed is to be known all the same
    return None if found is None else found[0].ids[found[1]]
