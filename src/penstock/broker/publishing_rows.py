"""A batch whose events go to several topics: one step for all of it, if it is good.

If any of it is refused, or has to be looked for by a dedup id, the topics are gone
through one by one, in the order in which they first come, by the door that a batch of
one topic takes (publishing.py). So a batch means the same, whichever way it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.publishing import Accepted, StoredPiece, take_out_failed
from penstock.errors import PenstockError
from penstock.log import Columns

if TYPE_CHECKING:
    from penstock.broker.broker import Broker


class RowsTerms(NamedTuple):
    """What is promised of a batch; as of PublishTerms.

    units: how many events each unit has, all of one topic; one if it is empty.
    """

    broker: Broker
    units: Sequence[int]
    dedup_ids: list[str | None] | None
    now_s: float
    relaxed: bool
    stored: Callable[[StoredPiece], None] | None


def accept_rows(how: RowsTerms, topics: Sequence[str], events: Columns) -> Accepted:
    """Store events, each in the topic at its place, which is made if need be."""
    if how.dedup_ids is None:
        try:
            appended = how.broker.publish_rows(topics, events, relaxed=how.relaxed)
        except PenstockError:
            pass  # nothing is stored: those it is for get it again, the others do not
        else:
            units = range(len(how.units) or len(events))
            piece = StoredPiece(units, appended.offsets, appended.group, appended)
            if how.stored is not None:
                how.stored(piece)
            return Accepted([piece])
    return _one_by_one(how, topics, events)


def places_of(topics: Sequence[str]) -> dict[str, list[int]]:
    """Where each topic stands, in the order in which they first come."""
    places: dict[str, list[int]] = {}
    for at, topic in enumerate(topics):
        places.setdefault(topic, []).append(at)
    return places


def _one_by_one(how: RowsTerms, topics: Sequence[str], events: Columns) -> Accepted:
    """Each topic for itself; what is refused as a whole is refused for its units."""
    ids, outcome = how.dedup_ids, Accepted([])
    ends = list(accumulate(how.units)) or range(1, len(events) + 1)
    starts = [0, *ends]
    for topic, mine in places_of([topics[end - 1] for end in ends]).items():
        rows = [row for unit in mine for row in range(starts[unit], ends[unit])]
        try:
            found = how.broker.accept(
                topic,
                events.pick(rows),
                units=[how.units[unit] for unit in mine] if how.units else (),
                dedup_ids=None if ids is None else [ids[row] for row in rows],
                now_s=how.now_s,
                relaxed=how.relaxed,
                stored=None if how.stored is None else _renumbering(how.stored, mine),
            )
        except PenstockError as error:
            outcome.refused.update(dict.fromkeys(mine, error))
            continue
        outcome.pieces += [_renumbered(piece, mine) for piece in found.pieces]
        for unit, refusal in found.refused.items():
            outcome.refused[mine[unit]] = refusal
    take_out_failed(how.broker, outcome)
    return outcome


def _renumbered(piece: StoredPiece, mine: Sequence[int]) -> StoredPiece:
    """A piece of one topic's batch, whose units are these of the whole batch."""
    return replace(piece, units=[mine[unit] for unit in piece.units])


def _renumbering(
    stored: Callable[[StoredPiece], None], mine: Sequence[int]
) -> Callable[[StoredPiece], None]:
    return lambda piece: stored(_renumbered(piece, mine))
