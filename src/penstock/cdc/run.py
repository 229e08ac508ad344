"""From a source of changes to topics: in batches, each stored with its place."""

from __future__ import annotations

import json
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from penstock.cdc.capture import Capture
from penstock.cdc.change import Change, events_of
from penstock.cdc.shown import Shown
from penstock.cdc.snapshot import Snapshot
from penstock.client.feed import Feed
from penstock.errors import StoreUnreachable

logger = logging.getLogger(__name__)

# Changes that are stored at once; of large ones it is fewer.
BATCH = 5000
WAIT_S = 0.5
# A source that is silent: its place is stored now and then all the same, so that it
# need not keep what happened since.
IDLE_S = 10.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
# How soon a pause ends when it is time to stop.
NAP_S = 0.1


class Pump:
    """Moves changes until it is told to stop.

    The note of the feed is JSON: the place, and what was counted so far. While a
    snapshot is under way it has its frontier as well: a place is worth nothing without.
    ``anew``: a feed that is new begins with a snapshot. ``shown``: what people see of
    the changes of a collection.
    """

    def __init__(
        self,
        capture: Capture,
        feed: Feed,
        *,
        prefix: str = "",
        from_now: bool = False,
        snapshot: Callable[[], Snapshot] | None = None,
        anew: bool = False,
        shown: Mapping[str, Shown] | None = None,
    ) -> None:
        self.errors = 0
        self.events = 0
        self.inserts: Counter[str] = Counter()
        self._capture = capture
        self._feed = feed
        self._prefix = prefix
        self._place = ""
        self._stored_s = 0.0
        self._from_now = from_now
        self._open_snapshot = snapshot
        self._anew = anew
        self._shown = shown
        self._frontier: str | None = None
        self._snapshot: Snapshot | None = None
        self._read(feed.note)

    @property
    def lag(self) -> int | None:
        """Not known while a snapshot is under way."""
        return None if self.reads else self._capture.lag

    @property
    def reads(self) -> bool:
        """Whether a snapshot is under way."""
        return self._snapshot is not None

    def begin(self) -> None:
        """Go on where the feed is; a new one begins now, and is so for ever.

        Raises CaptureLost, StoreError, ClientError.
        """
        if self._from_now:
            self._capture.forget()
            self._place, self._frontier = "", None
        if self._frontier is None and self._anew and not self._place:
            self._frontier = ""
        if self._frontier is not None:
            self._begin_snapshot(self._frontier)
            return
        self._capture.begin(self._place)
        self._from_now = False
        if not self._place:
            self._put([])

    def _begin_snapshot(self, frontier: str) -> None:
        assert self._open_snapshot is not None, "asked for with a way to make one"
        if self._snapshot is None:
            self._snapshot = self._open_snapshot()
        self._snapshot.begin(self._place, frontier)
        self._from_now = False
        if not self._place:
            self._put([])

    def close(self) -> None:
        self._capture.close()
        if self._snapshot is not None:
            self._snapshot.close()

    def begin_patiently(
        self, stopping: Callable[[], bool], tell: Callable[[], None] = lambda: None
    ) -> bool:
        """Begin; a source that is away is waited for until ``stopping``.

        Whether it has begun. Raises what ``begin`` does.
        """
        pause_s = FIRST_PAUSE_S
        while not stopping():
            try:
                self.begin()
                return True
            except StoreUnreachable as error:
                tell()
                self._pause(error, pause_s, stopping)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        return False

    def run(
        self, stopping: Callable[[], bool], tell: Callable[[], None] = lambda: None
    ) -> None:
        """Until ``stopping``. A source that is away is waited for.

        Raises CaptureLost, StoreRefused, FeedMoved, ClientError.
        """
        while not stopping():
            try:
                self.step()
            except StoreUnreachable as error:
                self._pause(error, FIRST_PAUSE_S, stopping)
                self.begin_patiently(stopping, tell)
            tell()

    def step(self) -> int:
        """Move what has come, and say how much that was."""
        if self._snapshot is not None:
            return self._step_of(self._snapshot)
        changes = self._capture.take(BATCH, WAIT_S)
        idle = time.monotonic() - self._stored_s >= IDLE_S
        if changes or (idle and self._capture.place() != self._place):
            self._put(changes)
        return len(changes)

    def _step_of(self, snapshot: Snapshot) -> int:
        """The same for a snapshot; behind its last step changes follow."""
        changes = snapshot.take(BATCH, WAIT_S)
        done = snapshot.is_done
        self._put(changes, done=done)
        if done:
            snapshot.close()
            self._snapshot = None
            self._capture.begin(self._place)
        return len(changes)

    def _pause(
        self, error: StoreUnreachable, pause_s: float, stopping: Callable[[], bool]
    ) -> None:
        """Wait until it is worth another try."""
        self.errors += 1
        logger.warning(
            "%s; trying again in %.1f s",
            *(error, pause_s),
            extra={"action": "capture_away"},
        )
        until_s = time.monotonic() + pause_s * random.uniform(0.5, 1.0)
        while not stopping() and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, NAP_S))

    def _put(self, changes: list[Change], *, done: bool = False) -> None:
        snapshot = self._snapshot
        place = (snapshot or self._capture).place()
        frontier = None if snapshot is None or done else snapshot.frontier()
        inserts = self.inserts + Counter(
            one.collection for one in changes if one.body.op == "insert"
        )
        events = self.events + len(changes)
        note_fields = {"place": place, "events": events, "inserts": inserts}
        more = {} if frontier is None else {"frontier": frontier}
        note = json.dumps({**note_fields, **more})
        if note != self._feed.note:
            batches = events_of(changes, self._prefix, self._shown)
            self._feed.put(batches, note=note)
        self._place, self.events, self.inserts = place, events, inserts
        self._frontier = frontier
        self._stored_s = time.monotonic()
        if snapshot is None:
            self._capture.stored()

    def _read(self, note: str) -> None:
        if note:
            kept: dict[str, Any] = json.loads(note)
            self._place = kept["place"]
            self._frontier = kept.get("frontier")
            self.events = kept["events"]
            self.inserts = Counter(kept["inserts"])
