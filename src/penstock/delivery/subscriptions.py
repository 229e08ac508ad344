"""All subscriptions of a broker, and how the journal keeps them.

Changes are noted per subscription and become one record when a group is closed,
however many deliveries and settlements there were. A record holds subscriptions as
they are (new ones, and all of them after a failed commit), what changed in others, and
the numbers of those that are gone. Of failures and amended events it has only those
that changed: an event that is settled, or begins anew without tries, loses its own.

Crash promise: precious. Replayed from the journal, carried by every checkpoint. What
only the counting of tries would miss waits for the next commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import msgspec

from penstock.delivery.cursor import GetLevels
from penstock.delivery.fresh import GetMark
from penstock.delivery.kept import Kept
from penstock.delivery.owed import JournalNotes, Owed
from penstock.delivery.pages import Pages
from penstock.delivery.states import READY, RELEASED, OwedState
from penstock.delivery.subscription import Subscription
from penstock.errors import LimitReached
from penstock.log import Record
from penstock.model.failure import Failure, of_lines
from penstock.model.policy import Policy

# Offset, level, tries, and 2 if it is RELEASED, 1 if it was never sent.
OwedEntry = tuple[int, int, int, int]
_TO_SEND, _UNSENT, _RELEASED = 0, 1, 2
# First offset, end, level: in flight for the first time.
RunEntry = tuple[int, int, int]
# Offset -> failures; texts alone in records of versions that knew no more.
ErrorRows = Mapping[int, Sequence[str | Failure]]


class StoredSubscription(msgspec.Struct, array_like=True, frozen=True):
    """A subscription with everything that is kept of it."""

    number: int
    subscriber: str
    topic: str
    policy: Policy
    start: int
    sent: int
    active: bool
    suspended: bool
    places: dict[int, int]
    owed: list[OwedEntry]
    runs: list[RunEntry]
    errors: ErrorRows
    amended: Mapping[int, bytes] = {}
    owner: str = ""
    postponed: int = 0
    due: Mapping[int, bytes] = {}
    expired: int = 0


class SubscriptionChange(msgspec.Struct, array_like=True, frozen=True):
    """What is different since the record before."""

    number: int
    sent: int
    active: bool
    suspended: bool
    places: dict[int, int]
    owed: list[OwedEntry]
    settled: list[int]
    runs: list[RunEntry]
    """All there are: others are settled, or in ``owed``."""
    errors: ErrorRows
    """Of events whose failures changed; empty: it has none any more."""
    amended: Mapping[int, bytes] = {}
    """Of events that are owed anew; empty: as it is stored."""
    postponed: int = 0
    due: Mapping[int, bytes] = {}
    """What has become due since, by level, as 64-bit offsets."""
    due_taken: Mapping[int, int] = {}
    """How many were taken of what is due, the first of each level."""
    expired: int = 0


class SubscriptionChanges(msgspec.Struct, array_like=True, frozen=True):
    full: list[StoredSubscription] = []
    changed: list[SubscriptionChange] = []
    gone: list[int] = []
    whole: bool = False
    """Whether ``full`` is all there is: others are gone."""


_encode = msgspec.msgpack.Encoder().encode
_decode_changes = msgspec.msgpack.Decoder(SubscriptionChanges).decode
_decode_snapshot = msgspec.msgpack.Decoder(tuple[int, list[StoredSubscription]]).decode


class Subscriptions(Kept):
    """Owner of the subscriptions' records."""

    kind = 256

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._next_number = 0
        self._by_number: dict[int, Subscription] = {}
        self._by_topic: dict[str, dict[int, Subscription]] = {}
        self._by_subscriber: dict[str, dict[str, Subscription]] = {}
        self.owners: Counter[str] = Counter()
        """How many each user has made that are still there, temporary ones too."""
        self._notes = JournalNotes()
        self._unsaid: dict[Subscription, None] = {}
        self._gone: list[int] = []
        self._whole = False
        self._sources: tuple[Pages, GetLevels, GetMark] | None = None

    def wire(self, pages: Pages, levels: GetLevels, mark: GetMark) -> None:
        """Say where events come from, once the log is open."""
        self._sources = pages, levels, mark
        for one in self._by_number.values():
            one.wire(pages, levels, mark)

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._by_number.values())

    def get(self, subscriber: str, topic: str) -> Subscription | None:
        return self._by_subscriber.get(subscriber, {}).get(topic)

    def numbered(self, number: int) -> Subscription | None:
        return self._by_number.get(number)

    def by_topic(self) -> Iterator[tuple[str, Iterable[Subscription]]]:
        """The topics that have subscriptions, each with its own."""
        for topic, found in self._by_topic.items():
            yield topic, found.values()

    def among(self, topics: Set[str]) -> Set[str]:
        """Those of some topics that have subscriptions."""
        return self._by_topic.keys() & topics

    def of_topic(self, topic: str) -> Iterable[Subscription]:
        return self._by_topic.get(topic, {}).values()

    def of_subscriber(self, subscriber: str) -> list[Subscription]:
        return list(self._by_subscriber.get(subscriber, {}).values())

    @property
    def urgent(self) -> bool:
        """Whether anything waits that was promised to a client."""
        return self._notes.urgent or self._unsaid_anything

    @property
    def dirty(self) -> bool:
        """Whether anything waits to be written."""
        return bool(self._notes.dirty) or self._unsaid_anything

    @property
    def _unsaid_anything(self) -> bool:
        return bool(self._unsaid or self._gone or self._whole)

    def add(
        self,
        subscriber: str,
        topic: str,
        policy: Policy,
        start: int,
        *,
        temporary: bool,
        limited: bool = True,
        owner: str = "",
    ) -> Subscription:
        """Make a subscription, for its owner; raises LimitReached."""
        if limited and len(self._by_number) >= self._limit:
            raise LimitReached("subscriptions", self._limit, "max_subscriptions")
        self._next_number += 1
        one = self._make(
            *(self._next_number, subscriber, topic, policy, start),
            temporary=temporary,
            owner=owner,
        )
        if not temporary:
            self._unsaid[one] = None
        return one

    def remove(self, one: Subscription) -> None:
        """Forget a subscription with its position."""
        self._take_out(one)
        if not one.temporary:
            self._gone.append(one.number)

    def update(self, one: Subscription) -> None:
        """Have a change of policy, start or activity written."""
        if not one.temporary and not one.ended:
            self._unsaid[one] = None

    def _make(
        self,
        number: int,
        subscriber: str,
        topic: str,
        policy: Policy,
        start: int,
        *,
        temporary: bool = False,
        owner: str = "",
    ) -> Subscription:
        one = Subscription(
            number,
            subscriber,
            topic,
            policy,
            start,
            temporary=temporary,
            notes=self._notes,
        )
        if self._sources is not None:
            one.wire(*self._sources)
        one.owner = owner
        if owner:
            self.owners[owner] += 1
        self._by_number[number] = one
        self._by_topic.setdefault(topic, {})[number] = one
        self._by_subscriber.setdefault(subscriber, {})[topic] = one
        return one

    def _take_out(self, one: Subscription) -> None:
        one.ended = True
        del self._by_number[one.number]
        if one.owner:
            self.owners[one.owner] -= 1
            if not self.owners[one.owner]:
                del self.owners[one.owner]
        topics = self._by_topic[one.topic]
        del topics[one.number]
        if not topics:
            del self._by_topic[one.topic]
        owned = self._by_subscriber[one.subscriber]
        del owned[one.topic]
        if not owned:
            del self._by_subscriber[one.subscriber]
        self._notes.dirty.pop(one, None)
        self._unsaid.pop(one, None)

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        if not self.dirty:
            return []
        sync = self._notes.sync or self._unsaid_anything
        full = [_full(one) for one in self._unsaid]
        changed = [_change(one) for one in self._notes.dirty if one not in self._unsaid]
        data = _encode(SubscriptionChanges(full, changed, self._gone, self._whole))
        for new in self._unsaid:
            new.owed.said(everything=True)
            new.fresh.due.said()
        for known in self._notes.dirty:
            known.owed.said()
            known.fresh.due.said()
        self._notes.clear()
        self._unsaid.clear()
        self._gone, self._whole = [], False
        return [(data, sync)]

    def taken_back(self) -> None:
        """Say everything again: the lost records said some of it."""
        self._unsaid = {one: None for one in self if not one.temporary}
        self._whole = True

    def snapshot(self) -> bytes:
        lasting = [one for one in self if not one.temporary]
        for one in lasting:
            one.owed.snapped()
        return _encode((self._next_number, [_full(one) for one in lasting]))

    def restore(self, snapshot: bytes) -> None:
        self._next_number, rows = _decode_snapshot(snapshot)
        for row in rows:
            self._take_up(row)

    def replay(self, record: Record) -> None:
        changes = _decode_changes(record.data)
        if changes.whole:
            for one in list(self):
                self._take_out(one)
        # First those that are gone: another one may stand in their place.
        for number in [*changes.gone, *(row.number for row in changes.full)]:
            if (known := self._by_number.get(number)) is not None:
                self._take_out(known)
        for row in changes.full:
            self._take_up(row)
        for change in changes.changed:
            _apply(self._by_number[change.number], change)

    def _take_up(self, row: StoredSubscription) -> None:
        self._next_number = max(self._next_number, row.number)
        place = row.number, row.subscriber, row.topic, row.policy, row.start
        one = self._make(*place, owner=row.owner)
        one.active, one.suspended = row.active, row.suspended
        one.cursor.sent, one.cursor.places = row.sent, row.places
        one.fresh.postponed, one.fresh.expired = row.postponed, row.expired
        one.fresh.due.take_up(row.due, {})
        _take_up_texts(one, row)
        one.take_up((), _owed(row.owed), row.runs)


def _full(one: Subscription) -> StoredSubscription:
    rows = [_row(owed) for owed in one.owed.singles()]
    return StoredSubscription(
        one.number,
        one.subscriber,
        one.topic,
        one.policy,
        one.cursor.start,
        one.cursor.sent,
        one.active,
        one.suspended,
        one.cursor.places,
        rows,
        one.owed.runs,
        one.errors,
        one.amended,
        one.owner,
        one.fresh.postponed,
        one.fresh.due.packed(),
        one.fresh.expired,
    )


def _change(one: Subscription) -> SubscriptionChange:
    rows: list[OwedEntry] = []
    settled: list[int] = []
    for offset in one.owed.touched:
        found = one.owed.single(offset)
        if found is None:
            settled.append(offset)
        else:
            rows.append(_row(found))
    return SubscriptionChange(
        one.number,
        one.cursor.sent,
        one.active,
        one.suspended,
        one.cursor.places,
        rows,
        settled,
        one.owed.runs,
        {offset: one.errors.get(offset, ()) for offset in one.owed.erred},
        {offset: one.amended.get(offset, b"") for offset in one.owed.amended},
        one.fresh.postponed,
        {level: offsets.tobytes() for level, offsets in one.fresh.due.added.items()},
        one.fresh.due.taken,
        one.fresh.expired,
    )


def _row(owed: Owed) -> OwedEntry:
    kept = _UNSENT if owed.unsent else _TO_SEND
    if owed.state is RELEASED:
        kept = _RELEASED
    return owed.offset, owed.level, owed.tries, kept


def _owed(
    rows: Iterable[OwedEntry],
) -> Iterator[tuple[int, int, int, OwedState, bool]]:
    for offset, level, tries, kept in rows:
        state = RELEASED if kept == _RELEASED else READY
        yield offset, level, tries, state, kept == _UNSENT


def _apply(one: Subscription, change: SubscriptionChange) -> None:
    one.active, one.suspended = change.active, change.suspended
    one.cursor.sent, one.cursor.places = change.sent, change.places
    one.fresh.postponed, one.fresh.expired = change.postponed, change.expired
    one.fresh.due.take_up(change.due, change.due_taken)
    _take_up_texts(one, change)
    one.take_up(change.settled, _owed(change.owed), change.runs)


def _take_up_texts(
    one: Subscription, row: StoredSubscription | SubscriptionChange
) -> None:
    for offset, failures in row.errors.items():
        one.errors[offset] = of_lines(failures)
        if not failures:
            del one.errors[offset]
    for offset, frame in row.amended.items():
        one.amended[offset] = frame
        if not frame:
            del one.amended[offset]
