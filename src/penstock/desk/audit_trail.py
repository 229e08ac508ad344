"""The audit trail: who did what with which dead letters, and why.

Entries are events of the topic ``$audit``, appended to the group that does what they
tell of: both are stored, or neither is. They are appended first, and in one piece: an
append may commit the group in front of it, what owners collect may not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.desk.arguments import Limit, Number
from penstock.desk.scan import Budget, backwards, forwards, since
from penstock.desk.verbs import verb
from penstock.desk.views.audit import AuditEntry, AuditFilter, AuditPage, AuditRow
from penstock.log import Columns

TOPIC = "$audit"
# Of a payload, in an entry. The event itself is in its topic, or in its letter.
MAX_PAYLOAD_BYTES = 256 << 10
# Of payloads and numbers, in an answer.
MAX_ANSWER_BYTES = 4 << 20

AuditReason = Annotated[str, Meta(min_length=1, max_length=2000)]


# JSON, so that the topic can be read as a table like any other.
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AuditEntry).decode


class AuditDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def note(self, entries: Iterable[AuditEntry]) -> None:
        """Have entries stored with the open group; do what they say right after.

        Raises what the log raises; then nothing may be done.
        """
        log = self._broker.log
        if not log.has_topic(TOPIC):
            options = replace(
                self._broker.topic_options,
                durability="sync",
                retention_age_s=None,
                retention_bytes=None,
                compact=False,
            )
            log.create_topic(TOPIC, options)
        log.append(TOPIC, Columns(map(_encode, entries), log.now_ms()))

    @verb("dead-letters.audit")
    def search(
        self,
        *,
        filter: AuditFilter = AuditFilter(),  # noqa: B008 - it is frozen
        before: Number | None = None,
        limit: Limit = 100,
    ) -> AuditPage:
        """Entries in front of ``before``, the newest first."""
        log = self._broker.log
        found: list[AuditRow] = []
        budget, room = Budget(), MAX_ANSWER_BYTES
        start = since(log, TOPIC, filter.since_ms)
        for number, data in backwards(log, TOPIC, before, start):
            if len(found) >= limit or budget.spent or room <= 0:
                return AuditPage(entries=found, next=number + 1)
            budget.spend(len(data))
            entry = _decode(data)
            if filter.takes(entry):
                found.append(_row(number, entry))
                room -= len(data)
        return AuditPage(entries=found, next=None)

    def closing(self, number: int, since_ms: int) -> tuple[AuditRow | None, bool]:
        """The entry that closed a letter, and whether everything was looked at.

        A letter is closed once, after it was written.
        """
        log = self._broker.log
        budget = Budget()
        for offset, data in forwards(log, TOPIC, since(log, TOPIC, since_ms)):
            if budget.spent:
                return None, False
            budget.spend(len(data))
            entry = _decode(data)
            if number in entry.numbers:
                return _row(offset, entry), True
        return None, True


def edit_of(
    number: int,
    *,
    subscriber: str | None,
    topic: str | None,
    at_ms: int,
    by: str,
    reason: str,
    old: bytes,
    new: bytes,
) -> AuditEntry:
    """The entry of a letter that was sent with another payload."""
    return AuditEntry(
        at_ms=at_ms,
        by=by,
        action="edited",
        numbers=[number],
        subscriber=subscriber,
        topic=topic,
        reason=reason,
        old=old[:MAX_PAYLOAD_BYTES],
        new=new[:MAX_PAYLOAD_BYTES],
        cut=max(len(old), len(new)) > MAX_PAYLOAD_BYTES,
    )


def _row(number: int, entry: AuditEntry) -> AuditRow:
    fields = msgspec.structs.asdict(entry)
    return AuditRow(entry=number, **fields)
