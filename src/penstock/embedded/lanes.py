"""Which of the events at hand may be handled now.

A lane holds the events that have to follow one another: all of one key, or all of
them. The first of a lane is handled; the others wait until it is settled or given up,
also while it waits for its next try. Where order does not matter there are no lanes,
and everything is ready at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Generic, Protocol, TypeVar


class Placed(Protocol):
    """What a lane has to know of an event."""

    offset: int
    tries: int
    lane: Hashable


LaneJob = TypeVar("LaneJob", bound=Placed)


class Lanes(Generic[LaneJob]):
    def __init__(self, *, ordered: bool) -> None:
        self.ready: deque[LaneJob] = deque()
        """Events that may be handled, in their order."""
        self.held = 0
        """Events that wait for one in front of them."""
        self._ordered = ordered
        self._first: dict[Hashable, int] = {}
        """Lane -> the offset that is handled, or waits for its next try."""
        self._behind: dict[Hashable, deque[LaneJob]] = {}
        self._late: list[LaneJob] | None = None
        """What has come while it is paused."""

    @property
    def paused(self) -> bool:
        return self._late is not None

    def pause(self) -> None:
        """Forget everything; what comes from now on waits until ``resume``."""
        self.forget()
        self._late = []

    def resume(self) -> None:
        """Begin with what has come since ``pause``."""
        late, self._late = self._late or [], None
        self.add(late)

    def add(self, jobs: Iterable[LaneJob]) -> None:
        """Take up events that have come."""
        if self._late is not None:
            self._late.extend(jobs)
            return
        if not self._ordered:
            self.ready.extend(jobs)
            return
        for job in jobs:
            first = self._first.setdefault(job.lane, job.offset)
            if first == job.offset:
                self.ready.append(job)
            else:
                self._behind.setdefault(job.lane, deque()).append(job)
                self.held += 1

    def pick(self, batch: int) -> list[LaneJob]:
        """Events for one call: those that failed before are tried alone."""
        ready = self.ready
        first = ready.popleft()
        jobs = [first]
        if batch > 1 and first.tries == 1:
            most = min(batch - 1, len(ready))
            while most and ready[0].tries == 1:
                jobs.append(ready.popleft())
                most -= 1
        return jobs

    def finish(self, job: LaneJob) -> None:
        """The event is settled or given up: the next of its lane may go."""
        if self._ordered:
            self._pass_on(job.lane)

    def blocked(self) -> dict[Hashable, int]:
        """Lanes whose first event is not at hand, with its offset; or it is running."""
        return self._first

    def unblock(self, lane: Hashable) -> None:
        """The event that a lane waits for will not come again."""
        self._pass_on(lane)

    def drain(self) -> list[LaneJob]:
        """Everything that is ready, held or late; nothing of it is left."""
        jobs = [*self.ready, *(job for lane in self._behind.values() for job in lane)]
        if self._late is not None:
            jobs += self._late
            self._late = []
        self.ready.clear()
        self._behind.clear()
        self.held = 0
        return jobs

    def forget(self) -> None:
        """Begin anew: no lane waits for anything."""
        self.drain()
        self._first.clear()
        self._late = None

    def _pass_on(self, lane: Hashable) -> None:
        behind = self._behind.get(lane)
        if not behind:
            self._first.pop(lane, None)
            return
        following = behind.popleft()
        if not behind:
            del self._behind[lane]
        self.held -= 1
        self._first[lane] = following.offset
        self.ready.append(following)
