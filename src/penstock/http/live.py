"""What changes, once a second, for every client that looks.

A frame is made once for all of them, while there is one, and not at all otherwise. A
client that begins to look gets everything; then only rows of topics that have changed
since the frame before, the most active first. One that is slow and misses frames gets
everything again in place of them, so nothing is kept for any client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from penstock.desk.figures import Figures
from penstock.desk.views.figures import Overview, TopicFigures
from penstock.http.notifier import Notifier

logger = logging.getLogger(__name__)

FRAME_S = 1.0
# The broker begins another second about when we do: wait for it so often, so long.
LATE_S = 0.05
LATE_TIMES = 6

_encode = msgspec.json.Encoder().encode


class LiveView(msgspec.Struct, frozen=True, kw_only=True):
    """What a client looks at besides the numbers of all together."""

    topics: bool = True
    flow: bool = False


class Looker:
    """One who looks; the notifier notifies when there is another frame."""

    def __init__(self, live: Live, wanted: LiveView) -> None:
        self.notifier = Notifier()
        self._live = live
        self._wanted = wanted
        self._seen = 0

    def take(self) -> bytes:
        """Server-sent events since the last time; nothing without another frame."""
        live, seen = self._live, self._seen
        if seen == live.number:
            return b""
        self._seen = live.number
        return live.text(self._wanted, whole=seen == 0 or seen + 1 < live.number)


class Live:
    """Makes frames for a number of lookers."""

    def __init__(self, figures: Figures) -> None:
        self.number = 0
        """Of the frame that was made last."""
        self._figures = figures
        self._lookers: dict[Looker, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._now: Overview | None = None
        self._changed: Overview | None = None
        self._rows: dict[str, TopicFigures] = {}
        self._texts: dict[tuple[str, bool], bytes] = {}
        """Parts of the current frame as they are sent, by what they tell."""

    @contextmanager
    def look(self, wanted: LiveView) -> Iterator[Looker]:
        """Look while the block runs."""
        if self._task is None:
            self._make()
            self._task = asyncio.create_task(self._make_frames())
        looker = Looker(self, wanted)
        self._lookers[looker] = None
        try:
            yield looker
        finally:
            del self._lookers[looker]
            if not self._lookers:
                self._rest()

    def _rest(self) -> None:
        """No client looks any more."""
        assert self._task is not None, "it runs while a page is open"
        self._task.cancel()
        self._task = self._now = self._changed = None
        self._rows = {}
        self._texts.clear()

    async def _make_frames(self) -> None:
        while True:
            ticks = self._figures.ticks
            await asyncio.sleep(FRAME_S)
            for _ in range(LATE_TIMES):
                if self._figures.ticks != ticks:
                    break
                await asyncio.sleep(LATE_S)
            try:
                self._make()
            except Exception:
                # A mistake of ours: every client misses a frame, and none is harmed.
                logger.exception("no figures", extra={"action": "figures_failed"})

    def _make(self) -> None:
        """Make the next frame, and wake every looker for it."""
        before = self._rows
        self._now = now = self._figures.overview()
        self._rows = {row.name: row for row in now.topics}
        changed = [row for row in now.topics if before.get(row.name) != row]
        self._changed = replace(now, topics=changed, whole=False)
        self._texts.clear()
        self.number += 1
        for looker in self._lookers:
            looker.notifier.notify()

    def text(self, wanted: LiveView, *, whole: bool) -> bytes:
        """The current frame for a client."""
        text = self._part("topics" if wanted.topics else "totals", whole=whole)
        return text + self._part("flow", whole=True) if wanted.flow else text

    def _part(self, what: str, *, whole: bool) -> bytes:
        text = self._texts.get((what, whole))
        if text is None:
            text = self._texts[what, whole] = self._rendered(what, whole=whole)
        return text

    def _rendered(self, what: str, *, whole: bool) -> bytes:
        if what == "flow":
            return self._event("flow", self._figures.flow.look())
        payload = self._now if whole else self._changed
        assert payload is not None, "made before anybody is told"
        if what == "totals":
            payload = replace(payload, topics=[])
        return self._event("overview", payload)

    def _event(self, name: str, payload: object) -> bytes:
        # JSON has no line breaks, so one line of data is enough.
        head = f"id: {self.number}\nevent: {name}\ndata: ".encode()
        return head + _encode(payload) + b"\n\n"
