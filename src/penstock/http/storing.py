"""Storing what was published over HTTP, and telling where it went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.access.account import Account
from penstock.broker.broker import Broker
from penstock.broker.publishing import Accepted, StoredPiece, ids_at
from penstock.errors import Backlogged, PenstockError
from penstock.http.house import House
from penstock.http.incoming import Arrived
from penstock.http.pacing import paced

# How often room is waited for before a publisher is told to come again.
MOST_WAITS = 20


@dataclass(slots=True)
class StoredEvents:
    """Events in the log: true once their group is committed."""

    topic: str
    piece: StoredPiece
    _given: list[str | None] | None

    @property
    def group(self) -> int:
        return self.piece.group

    @property
    def offsets(self) -> Sequence[int]:
        return self.piece.offsets

    @property
    def once(self) -> bool:
        """Whether some may have been stored before: then they keep their ids."""
        return self.piece.appended is None

    def ids(self, broker: Broker) -> list[str | None]:
        """The ids of the events; to be asked for when they are committed."""
        appended = self.piece.appended
        if appended is None:
            return ids_at(broker, self.topic, self.offsets)
        made = appended.generated_ids()
        if self._given is None:
            return list(made)
        pairs = zip(self._given, made, strict=True)
        return [made_ if given is None else given for given, made_ in pairs]


def store(
    broker: Broker,
    topic: str,
    new: Arrived,
    now_s: float,
    account: Account | None = None,
) -> StoredEvents:
    """Append events, each once if it has a dedup id, for the user of an account.

    Raises InvalidName, ReservedName, LimitReached, InvalidBatch, InvalidPayload,
    Backlogged, WriteFailed: then none of them is stored.
    """
    outcome = _accepted(broker, topic, new, now_s, account, [len(new.columns)])
    return StoredEvents(topic, outcome.whole(), new.columns.ids)


def store_each(
    broker: Broker,
    topic: str,
    new: Arrived,
    now_s: float,
    account: Account | None = None,
) -> tuple[list[tuple[Sequence[int], StoredEvents]], dict[int, PenstockError]]:
    """As ``store``, of events that have nothing to do with one another.

    Those that were stored, by their places and together, and why the others were not.
    """
    try:
        outcome = _accepted(broker, topic, new, now_s, account, ())
    except PenstockError as error:
        return [], dict.fromkeys(range(len(new.columns)), error)
    given = new.columns.ids
    stored = []
    for piece in outcome.pieces:
        mine = None if given is None else [given[place] for place in piece.units]
        stored.append((piece.units, StoredEvents(topic, piece, mine)))
    return stored, outcome.refused


def _accepted(
    broker: Broker,
    topic: str,
    new: Arrived,
    now_s: float,
    account: Account | None,
    units: Sequence[int],
) -> Accepted:
    with broker.accounts.acting(account):
        return broker.accept(
            topic, new.columns, units=units, dedup_ids=new.dedup_ids, now_s=now_s
        )


async def store_in_time(
    house: House,
    topic: str,
    new: Arrived,
    account: Account | None = None,
    most_s: float | None = None,
    check_still: Callable[[], None] | None = None,
) -> StoredEvents:
    """As ``store``, when there is room for it; raises Backlogged after a while.

    Not before the user may publish more; raises QuotaReached if that takes longer than
    ``most_s``. ``check_still`` raises if the user may not any more, after all that.
    """
    promises = house.promises
    for _ in range(MOST_WAITS):
        await promises.room()
        await paced(account, most_s)
        if check_still is not None:
            check_still()
        try:
            return store(house.broker, topic, new, promises.now_s(), account)
        except Backlogged:
            promises.kick()
            await promises.kept_at_last(house.broker.promised)
        finally:
            promises.kick()
    return store(house.broker, topic, new, promises.now_s(), account)
