"""Storing what was published over HTTP, and telling where it went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.broker.account import Account
from penstock.broker.broker import Broker
from penstock.errors import Backlogged
from penstock.http.house import House
from penstock.http.incoming import Arrived
from penstock.http.pacing import paced
from penstock.log.intake import Appended

# How often room is waited for before a publisher is told to come again.
MOST_WAITS = 20


@dataclass(slots=True)
class Stored:
    """Events in the log: true once their group is committed."""

    topic: str
    group: int
    offsets: Sequence[int]
    once: bool
    """Whether some of them may have been stored before: then they keep their ids."""
    _given: list[str | None] | None
    _appended: Appended | None

    def ids(self, broker: Broker) -> list[str | None]:
        """The ids of the events; to be asked for when they are committed."""
        if self._appended is None:
            return ids_at(broker, self.topic, self.offsets)
        made = self._appended.generated_ids()
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
) -> Stored:
    """Append events, each once if it has a dedup id, for the user of an account.

    Raises InvalidName, ReservedName, LimitReached, InvalidBatch, InvalidPayload,
    Backlogged, WriteFailed: then none of them is stored.
    """
    with broker.accounts.acting(account):
        return _store(broker, topic, new, now_s)


def _store(broker: Broker, topic: str, new: Arrived, now_s: float) -> Stored:
    columns = new.columns
    if topic not in broker.log.catalog:
        columns.check(broker.log.options.max_event_bytes)  # make no topic in vain
    if new.dedup_ids is not None:
        offsets = broker.publish_once(topic, columns, new.dedup_ids, now_s)
        return Stored(topic, broker.promised, offsets, True, None, None)
    appended = broker.publish(topic, columns)
    base = appended.base_offset
    places = range(base, base + appended.count)
    return Stored(topic, appended.group, places, False, columns.ids, appended)


async def store_in_time(
    house: House,
    topic: str,
    new: Arrived,
    account: Account | None = None,
    most_s: float | None = None,
    check_still: Callable[[], None] | None = None,
) -> Stored:
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


def ids_at(broker: Broker, topic: str, offsets: Sequence[int]) -> list[str | None]:
    """The ids of events that are in the log; None for those that are gone."""
    found: list[str | None] = []
    page = None
    for offset in offsets:
        if page is None or not page.base <= offset < page.end:
            gone = topic not in broker.log.catalog
            page = None if gone else broker.pages.at(topic, offset)
        index = 0 if page is None else page.batch.index_of(offset)
        if page is None or page.batch.offset_of(index) != offset:
            found.append(None)
            continue
        found.append(page.ids[index])
    return found
