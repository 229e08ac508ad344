"""A line connection's share in one topic: what it was sent, by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.broker.broker import Broker
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.model.event import MESSAGE_FIELD, TIMES
from penstock.wire.line import render_events, replies

# Events that a push asks for at once; the window and the bytes limit it first.
_MANY = 1 << 20
# A page of which single events were wanted this often is rendered as a whole.
_SINGLES = 4
# Who got this much at once may have been stopped by the bytes, and is asked again.
_MUCH_BYTES = 1 << 16
_FORMAT = "line"


class LineShare:
    __slots__ = (
        "_broker",
        "_delivered",
        "_ready",
        "asked",
        "blocked",
        "consumer",
        "ended",
        "session_start",
        "topic",
    )

    def __init__(
        self,
        broker: Broker,
        consumer: Consumer,
        session_start: int,
        ready: dict[Consumer, None],
    ) -> None:
        """``ready``: the connection's consumers that may have something to take."""
        self._broker = broker
        self._ready = consumer.ready = ready
        ready[consumer] = None
        self.consumer = consumer
        self.topic = consumer.subscription.topic
        self.session_start = session_start
        """Events in front of it are from the logs, others from this session."""
        self.blocked = 0
        """Answers that have to go before the next event."""
        self.asked = False
        """Whether an ack waits for an event or ``no available message``."""
        self.ended = False
        self._delivered: dict[str, int | list[int]] = {}

    def ack(self, id_: str) -> bytes | None:
        """Settle the event of that id that was delivered first; the answer, if any."""
        found = self._delivered.pop(id_, None)
        offsets = [found] if isinstance(found, int) else found or []
        for place, offset in enumerate(offsets, 1):
            # One may be in flight no more, because the subscription was moved.
            if self.consumer.holds(offset):
                if not self.consumer.short_of_events:
                    self._ready[self.consumer] = None
                self.consumer.subscription.settle(offset)
                if place < len(offsets):
                    self._delivered[id_] = offsets[place:]
                if offset < self.session_start:
                    return replies.acknowledged_from_logs(id_)
                return replies.ACKNOWLEDGED
        return None

    def ack_run(self, ids: list[str]) -> bool:
        """Settle neighbours of this session that came in this order; False if not.

        Then nothing was done, and each id has to be looked at.
        """
        delivered = self._delivered
        first = delivered.get(ids[0])
        if not isinstance(first, int) or first < self.session_start:
            return False
        end = first + len(ids)
        if [delivered.get(id_) for id_ in ids] != list(range(first, end)):
            return False
        short = self.consumer.short_of_events
        if not self.consumer.settle_run(first, end):
            return False
        if not short:
            self._ready[self.consumer] = None
        if len(ids) == len(delivered):
            delivered.clear()
        else:
            for id_ in ids:
                del delivered[id_]
        return True

    def next(self, now_s: float) -> list[bytes]:
        """What follows an ack: events, or nothing while some are still on their way.

        Empty only if there is nothing at all, which is what the ack is told.
        """
        sent = self.push(now_s) if self.consumer in self._ready else []
        if sent or not self.consumer.subscription.drained:
            return sent or [b""]
        return []

    def push(self, now_s: float) -> list[bytes]:
        """The lines of events that may be sent now."""
        self._ready.pop(self.consumer, None)
        portions = self._broker.take(self.consumer, now_s, _MANY)
        sent = [self._lines(portion) for portion in portions]
        if sum(map(len, sent)) >= _MUCH_BYTES:
            self._ready[self.consumer] = None
        return sent

    def _lines(self, portion: Portion) -> bytes:
        page, lo, hi = portion.page, portion.lo, portion.hi
        self._note(page, lo, hi)
        if hi - lo == 1:
            return _single(page, lo)
        return b"".join(_rendered(page)[lo:hi])

    def _note(self, page: Page, lo: int, hi: int) -> None:
        ids = page.ids[lo:hi]
        if page.dense:
            offsets: Sequence[int] = range(page.base + lo, page.base + hi)
        else:
            offsets = page.batch.offsets()[lo:hi]
        new = dict(zip(ids, offsets, strict=True))
        delivered = self._delivered
        if len(new) == hi - lo and delivered.keys().isdisjoint(new):
            delivered.update(new)
            return
        for id_, offset in zip(ids, offsets, strict=True):
            known = delivered.get(id_)
            if known is None:
                delivered[id_] = offset
            elif isinstance(known, list):
                known.append(offset)
            else:
                delivered[id_] = [known, offset]


def _single(page: Page, index: int) -> bytes:
    known = page.rendered.get(_FORMAT)
    if known is None:
        page.singles += 1
        if page.singles <= _SINGLES and len(page) > 1:
            return _render(page, index, index + 1)[0]
        known = _rendered(page)
    return known[index]


def _rendered(page: Page) -> list[bytes]:
    known = page.rendered.get(_FORMAT)
    if known is None:
        known = page.rendered[_FORMAT] = _render(page, 0, len(page))
    return known


def _render(page: Page, lo: int, hi: int) -> list[bytes]:
    headers = page.headers[lo:hi] if page.has_headers else []
    times = {one.name: getattr(page, one.column) for one in TIMES}
    return render_events(
        page.topic,
        page.priorities[lo:hi],
        page.payloads[lo:hi],
        page.ids[lo:hi],
        _values(headers, "fields"),
        _values(headers, MESSAGE_FIELD),
        {name: column[lo:hi] for name, column in times.items() if column is not None},
    )


def _values(headers: Sequence[Mapping[str, str]], name: str) -> list[str | None] | None:
    """What a header says of each event; None if it says nothing of any."""
    found = [one.get(name) for one in headers]
    return found if any(found) else None
