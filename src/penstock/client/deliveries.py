"""Events as a consumer gets them, and what it has to say about each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from penstock.errors import RemoteProtocolError, SubscriptionEnded
from penstock.model import ids as generated
from penstock.model.columns import events_of
from penstock.model.event import Event
from penstock.wire.native import EVENTS_COLUMNS, Events, Published


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event on its way to a consumer; ``tries``: this is the first, the second…"""

    event: Event
    tries: int

    @property
    def payload(self) -> bytes:
        return self.event.payload

    @property
    def offset(self) -> int:
        return self.event.offset


@dataclass(frozen=True, slots=True)
class _MessagePart:
    """What the server said of some events of a message."""

    count: int
    given: Sequence[str | None] | None
    first_id: str | None
    """Of the message."""
    skipped: int = 0
    """Events of the message in front of these."""

    def id(self, index: int) -> str | None:
        given = None if self.given is None else self.given[index]
        if given is not None or self.first_id is None:
            return given
        # Generated ids count on from the first, see model/ids.py.
        return generated.event_id(_base(self.first_id), self.skipped + index)

    def ids(self) -> list[str | None]:
        if self.first_id is None:
            return [None] * self.count if self.given is None else list(self.given)
        places = range(self.skipped, self.skipped + self.count)
        made = generated.event_ids(_base(self.first_id), places)
        if self.given is None:
            return [*made]
        return [one or other for one, other in zip(self.given, made, strict=True)]


class Offsets(Sequence[int]):
    """Where published events are, in the order they were given."""

    __slots__ = ("_offsets", "_parts")

    def __init__(self, offsets: Sequence[int], parts: list[_MessagePart]) -> None:
        self._offsets = offsets
        self._parts = parts

    @classmethod
    def of(
        cls, message: Published, count: int, given: Sequence[str | None] | None
    ) -> Offsets:
        """What the server said about ``count`` events with these ids."""
        said = message.offsets
        offsets = range(said, said + count) if isinstance(said, int) else said
        if len(offsets) != count:
            text = f"Published: {len(offsets)} offsets for {count} events"
            raise RemoteProtocolError("native", text)
        if message.refused is not None:  # there is an id for each
            return cls(offsets, [_MessagePart(count, _ids(message, given), None)])
        first_id = message.ids[0] if message.ids else None
        return cls(offsets, [_MessagePart(count, given, first_id)])

    def cut(self, counts: Sequence[int]) -> Iterator[Offsets]:
        """Those of each call that shared the message, by how many events it has."""
        (whole,) = self._parts
        given, first_id = whole.given, whole.first_id
        at = 0
        for count in counts:
            end = at + count
            some = None if given is None else given[at:end]
            part = _MessagePart(count, some, first_id, at)
            yield Offsets(self._offsets[at:end], [part])
            at = end

    @classmethod
    def joined(cls, parts: list[Offsets]) -> Offsets:
        """One behind the other."""
        if len(parts) == 1:
            return parts[0]
        offsets = [offset for one in parts for offset in one]
        return cls(offsets, [part for one in parts for part in one._parts])

    def ids(self) -> list[str | None]:
        """The ids of all events."""
        found: list[str | None] = []
        for part in self._parts:
            found += part.ids()
        return found

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...

    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        return self._offsets[index]

    def __repr__(self) -> str:
        return f"Offsets({list(self._offsets)})"

    def id(self, index: int) -> str | None:
        """The id of an event; None if the server made it and did not say."""
        for part in self._parts:
            if index < part.count:
                return part.id(index)
            index -= part.count
        raise IndexError(index)


def _base(id_: str) -> bytes:
    return bytes.fromhex(id_.replace("-", ""))


def _ids(
    message: Published, given: Sequence[str | None] | None
) -> Sequence[str | None] | None:
    """What the events are called that were given an id, or not, where each is told."""
    if given is None or message.ids is None:
        return given or message.ids
    return [one or other for one, other in zip(given, message.ids, strict=True)]


class Inbox:
    """Batches of one channel that wait to be read, and acks that wait to be sent."""

    __slots__ = (
        "acks",
        "batches",
        "channel",
        "ended",
        "on_moved",
        "put_back",
        "topic",
    )

    def __init__(self, topic: str, channel: int) -> None:
        self.topic = topic
        self.channel = channel
        self.batches: list[Events] = []
        self.acks: list[int] = []
        self.put_back: list[int] = []
        """Offsets that were read and not begun."""
        self.ended: str | None = None
        self.on_moved: Callable[[], None] | None = None
        """Called when the subscription was moved: nothing before that counts."""

    def begin_anew(self, channel: int) -> None:
        """The subscription was moved, and goes on at another channel."""
        self.channel = channel
        self.batches.clear()
        self.acks.clear()
        self.put_back.clear()
        if self.on_moved is not None:
            self.on_moved()

    def take(self) -> Events | None:
        """The next batch, if one is there; raises SubscriptionEnded behind the last."""
        if self.batches:
            return self.batches.pop(0)
        if self.ended is not None:
            raise SubscriptionEnded(self.topic, self.ended)
        return None

    def unbegun(self, waiting: Sequence[Delivery]) -> list[int]:
        """Offsets that the consumer has not begun with, also those not read yet."""
        unread = [offset for batch in self.batches for offset in batch.offsets]
        return [*self.put_back, *(one.offset for one in waiting), *unread]


def deliveries(topic: str, batch: Events) -> Iterator[Delivery]:
    """The events of a batch, one by one."""
    count = len(batch.payloads)
    columns = {name: getattr(batch, name) for name in EVENTS_COLUMNS}
    tries = batch.tries or [1] * count
    yield from map(Delivery, events_of(topic, columns, count), tries)
