"""Concurrent calls that publish share messages, and each learns what became of it.

Calls for one topic that come before what was said so far leaves are units of one
``Publish``, in the order of the calls: each is stored, or refused, by itself. It is
made when it leaves, so what was cancelled before is not in it. A message has its place
among all that is said: nothing joins it once something else was said behind it.

A call costs a future. Turns of the loop, writes and answers are shared, and so is the
only timer: it waits for the message that has waited longest.

A server of before knows no units, and refuses a message as a whole: then the calls are
made again, each by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.client.outgoing import Outgoing
from penstock.errors import (
    Backlogged,
    ConnectionLost,
    InvalidBatch,
    InvalidPayload,
    LimitReached,
    PenstockError,
    RemoteProtocolError,
)
from penstock.model.remote_errors import remote_error
from penstock.wire.native import Published, RefusedUnit, RequestRefused

if TYPE_CHECKING:
    from penstock.client.session import NativeSession

# A message that has as much is not joined any more: many share it by then.
SHARED_BYTES = 1 << 18
SHARED_EVENTS = 4096
# A server that has too much to write is asked again after this.
RETRY_S = 0.01
# What a server of before may refuse all calls for, and is the fault of some.
_OF_SOME = (InvalidPayload, InvalidBatch, LimitReached)

PublishCall = TypeVar("PublishCall")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Manner(Generic[PublishCall, Result]):
    """What calls of one kind are made of, and what they return.

    pack: their events, one behind the other.
    results: of each, by the topic, the calls, how many events each has, and the answer.
    """

    pack: Callable[[list[PublishCall]], Outgoing]
    results: Callable[[str, list[PublishCall], list[int], Published], Iterable[Result]]


class SharedPublish(Generic[PublishCall, Result]):
    """Some calls that publish to one topic."""

    __slots__ = (
        "busy",
        "calls",
        "counts",
        "deadline_s",
        "events",
        "manner",
        "size",
        "topic",
        "waiters",
    )

    def __init__(
        self, manner: Manner[PublishCall, Result], topic: str, deadline_s: float
    ) -> None:
        self.manner = manner
        self.topic = topic
        self.deadline_s = deadline_s
        self.calls: list[PublishCall] = []
        self.counts: list[int] = []
        """How many events each call has."""
        self.waiters: list[asyncio.Future[Result]] = []
        self.events = 0
        self.size = 0
        self.busy: Backlogged | None = None
        """What the server said when it was asked before."""

    def has_room(self, count: int, size: int) -> bool:
        return self.events + count <= SHARED_EVENTS and self.size + size <= SHARED_BYTES

    def leave_out_ended(self) -> None:
        here = [not waiter.done() for waiter in self.waiters]
        if not all(here):
            self._keep(here)

    def _keep(self, wanted: Iterable[bool]) -> None:
        kept = list(wanted)
        self.calls = list(compress(self.calls, kept))
        self.counts = list(compress(self.counts, kept))
        self.waiters = list(compress(self.waiters, kept))

    def without(self, places: Container[int]) -> SharedPublish[PublishCall, Result]:
        """The calls but some."""
        rest = self.part(0, len(self.calls))
        rest._keep(at not in places for at in range(len(self.calls)))
        return rest

    def part(self, lo: int, hi: int) -> SharedPublish[PublishCall, Result]:
        """Some of the calls, in a message of their own."""
        part = SharedPublish(self.manner, self.topic, self.deadline_s)
        part.calls, part.counts = self.calls[lo:hi], self.counts[lo:hi]
        part.waiters = self.waiters[lo:hi]
        return part

    def stored(self, answer: Published) -> None:
        try:
            results = list(
                self.manner.results(self.topic, self.calls, self.counts, answer)
            )
            pairs = list(zip(self.waiters, results, strict=True))
        except (ValueError, RemoteProtocolError):
            text = f"Published does not say where {sum(self.counts)} events are"
            self.failed(lambda: RemoteProtocolError("native", text))
            return
        for waiter, result in pairs:
            if not waiter.done():
                waiter.set_result(result)

    def failed(self, error: Callable[[], Exception]) -> None:
        """``error`` makes one for each, as each is raised elsewhere."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_exception(error())


class Sharing:
    """What calls of one connection share.

    ``flush_soon`` has sent, at the end of the turn, what the session has.
    """

    def __init__(
        self,
        session: NativeSession,
        flush_soon: Callable[[], None],
        where: str,
        timeout_s: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = session
        self._flush_soon = flush_soon
        self._where = where
        self._timeout_s = timeout_s
        # Any: calls of each manner, as the manner is a part of the key.
        self._open: dict[tuple[Any, ...], SharedPublish[Any, Any]] = {}
        self._said = -1
        """How much had been said when those were begun."""
        self._sent: dict[int, SharedPublish[Any, Any]] = {}
        self._waiting: dict[SharedPublish[Any, Any], None] = {}
        """All that have no answer yet, the oldest first."""
        self._timer: asyncio.TimerHandle | None = None

    def publish(
        self,
        manner: Manner[PublishCall, Result],
        topic: str,
        call: PublishCall,
        count: int,
        size: int,
        *,
        once: bool,
    ) -> asyncio.Future[Result]:
        """What a call of so many events and bytes waits for.

        ``once``: it has dedup ids, of which the answer tells less.
        """
        if self._said != self._session.said:
            self._open.clear()
        shared = self._open.get((manner, topic, once))
        if shared is None or not shared.has_room(count, size):
            shared = SharedPublish(manner, topic, self._loop.time() + self._timeout_s)
            self._put(shared)
            self._open[manner, topic, once] = shared
            self._said = self._session.said
        waiter: asyncio.Future[Result] = self._loop.create_future()
        shared.calls.append(call)
        shared.counts.append(count)
        shared.waiters.append(waiter)
        shared.events += count
        shared.size += size
        return waiter

    def answered(self, seq: int) -> bool:
        """Tell the calls that an answer is for; False if it is for none."""
        shared = self._sent.pop(seq, None)
        if shared is None:
            return False
        self._waiting.pop(shared, None)
        answer = self._session.take(seq)
        if isinstance(answer, RequestRefused):
            self._refused(shared, answer)
        else:
            assert isinstance(answer, Published), "what Publish is answered by"
            self._stored(shared, answer)
        return True

    def end(self, error: PenstockError) -> None:
        """The connection has ended: nothing is answered any more."""
        waiting = list(self._waiting)
        self._waiting.clear()
        self._open.clear()
        self._sent.clear()
        if self._timer is not None:
            self._timer.cancel()
        for shared in waiting:
            shared.failed(partial(_same, error))

    # On its way out

    def _put(self, shared: SharedPublish[Any, Any]) -> None:
        self._flush_soon()
        self._session.put_later(lambda: self._message(shared))
        self._wait_for(shared)

    def _message(self, shared: SharedPublish[Any, Any]) -> bytes:
        """The bytes of it, now that it leaves."""
        self._waiting.pop(shared, None)
        shared.leave_out_ended()
        if not shared.calls:
            return b""
        units = shared.counts if len(shared.calls) > 1 else None
        try:
            events = shared.manner.pack(shared.calls)
            seq, data = self._session.publish_message(shared.topic, events, units)
        except Exception as error:  # of what a call has given: it is raised there
            if units is None:
                shared.failed(partial(_same, error))
                return b""
        else:
            if units is None or len(data) <= self._session.max_frame_bytes:
                self._sent[seq] = shared
                self._wait_for(shared)
                return data
        count = len(shared.calls)
        halves = shared.part(0, count // 2), shared.part(count // 2, count)
        return b"".join(map(self._message, halves))

    def _again(self, shared: SharedPublish[Any, Any]) -> None:
        if shared in self._waiting:  # it was not given up meanwhile
            self._put(shared)

    # Answers

    def _stored(self, shared: SharedPublish[Any, Any], answer: Published) -> None:
        if not answer.refused:
            shared.stored(answer)
            return
        refused = {one.unit: one for one in answer.refused}
        shared.without(refused).stored(answer)
        for one in answer.refused:
            self._refused(shared.part(one.unit, one.unit + 1), one)

    def _refused(
        self, shared: SharedPublish[Any, Any], said: RequestRefused | RefusedUnit
    ) -> None:
        error = _error(said)
        if isinstance(error, Backlogged):
            shared.busy = error
            self._wait_for(shared)
            self._loop.call_later(RETRY_S, self._again, shared)
        elif len(shared.calls) > 1 and isinstance(error, _OF_SOME):
            for at in range(len(shared.calls)):
                self._put(shared.part(at, at + 1))
        else:
            shared.failed(lambda: _error(said))

    # Waiting

    def _wait_for(self, shared: SharedPublish[Any, Any]) -> None:
        self._waiting[shared] = None
        if self._timer is None:
            self._timer = self._loop.call_at(shared.deadline_s, self._late)

    def _late(self) -> None:
        """Give up what has waited for too long."""
        self._timer = None
        now_s = self._loop.time()
        late = [one for one in self._waiting if one.deadline_s <= now_s]
        for shared in late:
            del self._waiting[shared]
            self._give_up(shared)
        if self._waiting:
            first = min(one.deadline_s for one in self._waiting)
            self._timer = self._loop.call_at(first, self._late)

    def _give_up(self, shared: SharedPublish[Any, Any]) -> None:
        reason = f"no answer within {self._timeout_s:g} s"
        shared.failed(lambda: shared.busy or ConnectionLost(self._where, reason))


def _same(error: Exception) -> Exception:
    return error


def _error(said: RequestRefused | RefusedUnit) -> PenstockError:
    return remote_error(said.error, said.text, said.hint, said.fields)
