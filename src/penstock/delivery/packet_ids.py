"""Packet ids of one client: what is in flight under which id, in both directions.

Outwards an id stands for a delivery, which has a state of ``handshake.OUTBOUND``: SENT
until the client answers; with QoS 2 RELEASED from its PUBREC to its PUBCOMP. A delivery
that is released is settled for its subscription: the client has it, and only the id is
still in use. Inwards an id of QoS 2 is *received* from its PUBLISH to its PUBREL.

For the journal every change is an entry of ``trail``, in order, so that a broker that
reads them again has the same ids in use. Ids are 16 bits and never 0.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple, cast

from penstock.delivery.handshake import Reply, next_state
from penstock.delivery.states import OwedState

MAX_ID = 0xFFFF

# How the trail has what was sent: the step, the first id, how many, the number of the
# subscription, the first offset, the QoS; and how it has ids that took another step.
_SENT = struct.Struct("<BHHQQB")
_MOVED = struct.Struct("<BH")

SENT, RELEASED, FREED, RECEIVED, COMPLETED = 0, 1, 2, 3, 4


class InFlight(NamedTuple):
    number: int
    """Of the subscription."""
    offset: int
    qos: int


# In place of the class, which would cost more than all the rest of a delivery.
_in_flight = partial(tuple.__new__, InFlight)
_QOS = itemgetter(2)


class PacketIds:
    __slots__ = ("_next", "noting", "out", "received", "released", "trail")

    def __init__(self, *, noting: bool) -> None:
        self.noting = noting
        """Whether the journal wants to know."""
        self.out: dict[int, InFlight] = {}
        """Deliveries that wait for the first answer, in the order they were sent."""
        self.released: dict[int, None] = {}
        """Ids that wait for PUBCOMP."""
        self.received: set[int] = set()
        """Ids of the client that wait for its PUBREL."""
        self.trail = bytearray()
        self._next = 1

    def __len__(self) -> int:
        """How many ids are in use outwards."""
        return len(self.out) + len(self.released)

    # Outwards

    def send(self, number: int, offsets: Sequence[int], qos: int) -> list[int]:
        """Ids for deliveries that are sent for the first time."""
        ids = self._fresh(len(offsets))
        rows = zip(repeat(number), offsets, repeat(qos), strict=False)
        self.out.update(zip(ids, map(_in_flight, rows), strict=False))
        if self.noting:
            for lo, hi in _stretches(ids, offsets):
                self.trail += _SENT.pack(
                    SENT, ids[lo], hi - lo, number, offsets[lo], qos
                )
        return ids

    def _fresh(self, count: int) -> list[int]:
        """Ids that are not in use, one after the other if that can be."""
        assert count + len(self) <= MAX_ID, "the window is smaller than that"
        first = self._next
        if first + count > MAX_ID + 1:
            first = 1
        ids = list(range(first, first + count))
        out, released = self.out, self.released
        if (out and not out.keys().isdisjoint(ids)) or (
            released and not released.keys().isdisjoint(ids)
        ):
            ids = []
            candidate = self._next
            while len(ids) < count:
                if candidate not in out and candidate not in released:
                    ids.append(candidate)
                candidate = candidate % MAX_ID + 1
            self._next = candidate
            return ids
        self._next = (first + count - 1) % MAX_ID + 1
        return ids

    def answered(self, answer: Reply, ids: Iterable[int]) -> list[InFlight]:
        """Deliveries that the client has now, by PUBACK or PUBREC."""
        out = self.out
        ids = list(ids)
        found = [out.get(id_) for id_ in ids]
        if None not in found and len(found) == len(set(ids)):
            deliveries = cast("list[InFlight]", found)
            states = {
                next_state(qos, OwedState.SENT, answer)
                for qos in set(map(_QOS, deliveries))
            }
            if len(states) == 1 and None not in states:  # as nearly always
                for id_ in ids:
                    del out[id_]
                if OwedState.RELEASED in states:
                    self.released.update(dict.fromkeys(ids))
                self._note(RELEASED if answer is Reply.PUBREC else FREED, ids)
                return deliveries
        return self._answered_singly(answer, ids)

    def _answered_singly(self, answer: Reply, ids: list[int]) -> list[InFlight]:
        out = self.out
        done: list[InFlight] = []
        moved: list[int] = []
        for id_ in ids:
            in_flight = out.get(id_)
            if in_flight is None:
                continue
            state = next_state(in_flight.qos, OwedState.SENT, answer)
            if state is None:
                continue
            del out[id_]
            done.append(in_flight)
            moved.append(id_)
            if state is OwedState.RELEASED:
                self.released[id_] = None
        if moved:
            self._note(RELEASED if answer is Reply.PUBREC else FREED, moved)
        return done

    def out_of_turn(self, answer: Reply, ids: Iterable[int]) -> int | None:
        """The first id in use whose delivery does not stand where this is an answer.

        Ids that are not in use are not looked at: what they stood for may be over.
        """
        for id_ in ids:
            in_flight = self.out.get(id_)
            if in_flight is not None:
                state = next_state(in_flight.qos, OwedState.SENT, answer)
            elif id_ in self.released:
                state = next_state(2, OwedState.RELEASED, answer)
            else:
                continue
            if state is None:
                return id_
        return None

    def refused(self, id_: int) -> InFlight | None:
        """A delivery that the client does not want; its id is free."""
        in_flight = self.out.pop(id_, None)
        if in_flight is not None:
            self._note(FREED, [id_])
        return in_flight

    def abandon(self, ids: Iterable[int]) -> None:
        """Deliveries whose event is gone, so that it cannot be sent again.

        A client that has got one of QoS 2 knows its id until PUBREL: it gets that, or
        would take the next message under this id for the same.
        """
        for id_ in ids:
            in_flight = self.out.pop(id_)
            if in_flight.qos == 2:
                self.released[id_] = None
            self._note(RELEASED if in_flight.qos == 2 else FREED, [id_])

    def of(self, number: int) -> list[int]:
        """The ids of deliveries of a subscription."""
        return [id_ for id_, one in self.out.items() if one.number == number]

    def completed(self, ids: Iterable[int]) -> int:
        """PUBCOMP has come; how many ids are free now."""
        released = self.released
        state = next_state(2, OwedState.RELEASED, Reply.PUBCOMP)
        assert state is OwedState.SETTLED, "as the table has it"
        free = [id_ for id_ in ids if released.pop(id_, id_) is None]
        if free:
            self._note(FREED, free)
        return len(free)

    def drop(self, number: int, qos: int | None = None) -> list[int]:
        """Forget deliveries of a subscription (of one QoS); their offsets."""
        gone = {
            id_: in_flight
            for id_, in_flight in self.out.items()
            if in_flight.number == number and qos in (None, in_flight.qos)
        }
        for id_ in gone:
            del self.out[id_]
        if gone:
            self._note(FREED, list(gone))
        return [in_flight.offset for in_flight in gone.values()]

    # Inwards

    def receive(self, ids: Iterable[int]) -> None:
        """Messages of these ids are stored; they are not stored again."""
        new = list(ids)
        self.received.update(new)
        self._note(RECEIVED, new)

    def complete(self, ids: Iterable[int]) -> list[int]:
        """PUBREL has come: ids that were received, and are free now."""
        known = [id_ for id_ in dict.fromkeys(ids) if id_ in self.received]
        if known:
            self.received.difference_update(known)
            self._note(COMPLETED, known)
        return known

    # The journal

    def _note(self, step: int, ids: Collection[int]) -> None:
        if self.noting:
            self.trail += _moved(step, ids)

    def said(self) -> bytes:
        """The changes since the last time."""
        trail, self.trail = bytes(self.trail), bytearray()
        return trail

    def whole_trail(self) -> bytes:
        """How things stand, for a journal that knows nothing of it."""
        trail = [
            _SENT.pack(SENT, id_, 1, one.number, one.offset, one.qos)
            for id_, one in self.out.items()
        ]
        for step, ids in ((RELEASED, self.released), (RECEIVED, self.received)):
            if ids:
                trail.append(_moved(step, ids))
        return b"".join(trail)

    def follow(self, trail: bytes) -> None:
        """Take up what the journal says, in order."""
        at = 0
        while at < len(trail):
            if trail[at] == SENT:
                _, first, count, number, offset, qos = _SENT.unpack_from(trail, at)
                at += _SENT.size
                for index in range(count):
                    self.out[first + index] = InFlight(number, offset + index, qos)
                self._next = (first + count - 1) % MAX_ID + 1
                continue
            step, count = _MOVED.unpack_from(trail, at)
            at += _MOVED.size
            self._follow_ids(step, array("H", trail[at : at + 2 * count]))
            at += 2 * count

    def _follow_ids(self, step: int, ids: Iterable[int]) -> None:
        if step == RECEIVED:
            self.received.update(ids)
        elif step == COMPLETED:
            self.received.difference_update(ids)
        else:
            for id_ in ids:
                self.out.pop(id_, None)
                if step == RELEASED:
                    self.released[id_] = None
                else:
                    self.released.pop(id_, None)


def _moved(step: int, ids: Collection[int]) -> bytes:
    return _MOVED.pack(step, len(ids)) + array("H", ids).tobytes()


def _stretches(ids: Sequence[int], offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where both rise by one: from, to."""
    end = len(ids)
    if ids[-1] - ids[0] == end - 1 == offsets[-1] - offsets[0]:
        yield 0, end
        return
    lo = 0
    for at in range(1, end + 1):
        if (
            at == end
            or ids[at] != ids[at - 1] + 1
            or offsets[at] != offsets[at - 1] + 1
        ):
            yield lo, at
            lo = at
