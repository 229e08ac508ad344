"""The one door for publishers: a batch goes in, what was stored and refused comes out.

Every gateway, HTTP and programs that embed a broker publish here, so a batch means the
same for all of them: whatever can be stored is, what cannot is refused with a reason of
its own, and no topic is made for events that are refused.

A batch consists of *units*: what its publisher wants stored whole or not at all. For
most of them that is each event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.promised import is_lost
from penstock.delivery import letters
from penstock.delivery.pending import PendingMessage
from penstock.errors import InvalidBatch, InvalidPayload, LimitReached, PenstockError
from penstock.log import Appended, AppendedRows, Columns

if TYPE_CHECKING:
    from penstock.broker.broker import Broker

# What may be the fault of some events, or too much for all of them: others may do.
_DIVISIBLE = (InvalidPayload, InvalidBatch, LimitReached)


@dataclass(slots=True)
class StoredPiece:
    """Units that were stored together: true once their group is committed."""

    units: Sequence[int]
    offsets: Sequence[int]
    """Of all their events, one after the other."""
    group: int
    appended: Appended | AppendedRows | None
    """None if some of them may have been stored before: then they keep their ids."""

    def id_at(self, broker: Broker, topic: str, place: int) -> str | None:
        """The id that one of its events was given; None if it is gone by now."""
        if self.appended is not None:
            return self.appended.generated_id(place)
        return ids_at(broker, topic, [self.offsets[place]])[0]


@dataclass(slots=True)
class Accepted:
    """What became of a batch."""

    pieces: list[StoredPiece]
    refused: dict[int, PenstockError] = field(default_factory=dict)
    """Why, by the number of the unit."""

    def whole(self) -> StoredPiece:
        """Where a batch of one unit is; raises why it was refused."""
        for error in self.refused.values():
            raise error
        (piece,) = self.pieces
        return piece

    @property
    def group(self) -> int:
        """The last group that holds any of it; 0 if nothing was stored."""
        return max((piece.group for piece in self.pieces), default=0)


class PublishTerms(NamedTuple):
    """Where a batch goes, and what is promised of it.

    now_s: by which dedup ids are old.
    relaxed: no promise that it is on disk.
    keep: the last event is retained.
    charged: to the account of its publisher, at an earlier time.
    stored: told of each piece before anything else is stored, so that whatever belongs
    to it can go into the same group.
    """

    broker: Broker
    topic: str
    now_s: float
    relaxed: bool
    keep: bool
    charged: bool
    stored: Callable[[StoredPiece], None] | None

    def store(
        self, units: Sequence[int], events: Columns, ids: list[str | None] | None
    ) -> StoredPiece:
        """Store these events together, or raise."""
        piece = self._append(units, events, ids)
        if self.stored is not None:
            self.stored(piece)
        return piece

    def _append(
        self, units: Sequence[int], events: Columns, ids: list[str | None] | None
    ) -> StoredPiece:
        broker, topic, now_s, relaxed, keep, charged, _ = self
        if ids is not None:
            offsets = publish_once(broker, topic, events, ids, now_s)
            return StoredPiece(units, offsets, broker.promised, None)
        appended = broker.publish(
            topic, events, relaxed=relaxed, keep=keep, charged=charged
        )
        base = appended.base_offset
        places = range(base, base + appended.count)
        return StoredPiece(units, places, appended.group, appended)


def accept(
    how: PublishTerms,
    events: Columns,
    units: Sequence[int],
    dedup_ids: list[str | None] | None,
) -> Accepted:
    """Store events in a topic, which is made if need be.

    Args:
        units: how many events each unit has; all have one if it is empty.
        dedup_ids: what was published with one of these lately is not stored again.

    Raises what all of it is refused for: InvalidName, ReservedName, Backlogged,
    WriteFailed.
    """
    count = len(units) or len(events)
    try:
        return Accepted([how.store(range(count), events, dedup_ids)])
    except _DIVISIBLE as error:
        if count == 1:
            return Accepted([], {0: error})
    outcome = Accepted([])
    ends = list(accumulate(units))
    _Dividing(how, events, ends, dedup_ids, outcome).divide(range(count))
    take_out_failed(how.broker, outcome)
    return outcome


@dataclass(slots=True)
class _Dividing:
    """A batch that cannot be stored whole."""

    how: PublishTerms
    events: Columns
    ends: list[int]
    """Behind the last event of each unit, unless all of them have one."""
    dedup_ids: list[str | None] | None
    outcome: Accepted
    limit: LimitReached | None = None
    """Reached by one of the units: those behind it are not tried any more."""

    def divide(self, units: Sequence[int]) -> None:
        """Store what can be; by halves, so that few bad ones cost few steps."""
        outcome = self.outcome
        if not units:
            return
        if self.limit is not None:
            outcome.refused.update(dict.fromkeys(units, self.limit))
            return
        try:
            outcome.pieces.append(self._store(units))
        except InvalidPayload as error:
            if len(units) == 1:
                outcome.refused[units[0]] = error
                return
            fitting = self._fitting(units)
            assert len(fitting) < len(units), "one of them does not fit"
            self.divide(fitting)
        except _DIVISIBLE as error:
            if len(units) == 1:
                outcome.refused[units[0]] = error
                if isinstance(error, LimitReached):
                    self.limit = error
                return
            half = len(units) // 2
            self.divide(units[:half])
            self.divide(units[half:])
        except PenstockError as error:
            outcome.refused.update(dict.fromkeys(units, error))

    def _store(self, units: Sequence[int]) -> StoredPiece:
        rows, ids = self._rows(units), self.dedup_ids
        picked = None if ids is None else [ids[row] for row in rows]
        return self.how.store(units, self.events.pick(rows), picked)

    def _fitting(self, units: Sequence[int]) -> list[int]:
        """Those whose payloads fit the schema of the topic; the others are refused."""
        payloads, fitting = self.events.payloads, []
        for unit in units:
            mine = [payloads[row] for row in self._rows([unit])]
            refused = self.how.broker.registry.refused(self.how.topic, mine)
            if refused:
                self.outcome.refused[unit] = next(iter(refused.values()))
            else:
                fitting.append(unit)
        return fitting

    def _rows(self, units: Sequence[int]) -> Sequence[int]:
        """The events of some units."""
        if not self.ends:
            return units
        return [
            row
            for unit in units
            for row in range(self.ends[unit - 1] if unit else 0, self.ends[unit])
        ]


def take_out_failed(broker: Broker, outcome: Accepted) -> None:
    """Refuse what is lost already.

    A group that was full may have been written, and have failed, while there was more
    to store. Who stores several batches before any is answered asks again at the end.
    """
    log = broker.log
    for piece in [one for one in outcome.pieces if is_lost(log, one.group)]:
        assert log.failure is not None, "a commit has failed"
        outcome.pieces.remove(piece)
        outcome.refused.update(dict.fromkeys(piece.units, log.failure))


def ids_at(broker: Broker, topic: str, offsets: Sequence[int]) -> list[str | None]:
    """The ids of events that are in the log; None for those that are gone."""
    found: list[str | None] = []
    page = None
    for offset in offsets:
        if page is None or not page.base <= offset < page.end:
            gone = not broker.log.has_topic(topic)
            page = None if gone else broker.pages.at(topic, offset)
        index = 0 if page is None else page.batch.index_of(offset)
        if page is None or page.batch.offset_of(index) != offset:
            found.append(None)
            continue
        found.append(page.ids[index])
    return found


def publish_once(
    broker: Broker,
    topic: str,
    events: Columns,
    dedup_ids: list[str | None],
    now_s: float,
) -> list[int]:
    """Append those events whose dedup id is new; the offsets of all of them.

    An id that is known is answered, and not stored again.
    """
    now_ms = int(now_s * 1000)
    plan = broker.dedup.plan(topic, dedup_ids, now_ms)
    if not plan.fresh:
        return plan.placed(0)
    try:
        appended = broker.publish(topic, events.pick(plan.fresh))
    except InvalidPayload as error:
        raise error.at(plan.fresh[error.index]) from None
    offsets = plan.placed(appended.base_offset)
    fresh = [(dedup_ids[index], offsets[index]) for index in plan.fresh]
    named = [(id_, offset) for id_, offset in fresh if id_ is not None]
    if named:
        ids, places = zip(*named, strict=True)
        broker.dedup.add(topic, list(ids), list(places), now_ms)
    return offsets


def release(broker: Broker, message: PendingMessage, now_s: float) -> None:
    """Publish a pending message and forget it, in one step: what a PUBREL does.

    Since its PUB the topic may have got another schema. A message that no longer fits
    becomes a dead letter in the same way, so that it is neither lost nor tried for
    ever: raises InvalidPayload.
    """
    columns = Columns([message.payload], int(now_s * 1000))
    columns.take({name: [time] for name, time in message.times.items()})
    try:
        # Charged for at its PUB, perhaps to another account.
        broker.accept(message.topic, columns, charged=True).whole()
    except InvalidPayload as error:
        letter = letters.unfit(message, str(error), now_s)
        letters.keep(broker.log, letter, broker.letter_options)
        broker.pending.give_up(message)
        raise
    broker.pending.remove(message)
