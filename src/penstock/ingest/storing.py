"""Batches of a stream into a feed: each once, with the note of how far it is.

What the broker refuses (too large, not of the schema) is looked for by halves, so that
everything else is stored, in its order, and what is refused becomes a dead letter.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from penstock.client.feed import Feed
from penstock.errors import InvalidBatch, InvalidPayload, TooLarge
from penstock.ingest.options import SseOptions
from penstock.ingest.sorting import Sorted, Sorter, StreamNote
from penstock.wire.sse import ServerSentEvent

# Errors of a broker that lie in an event, and not in what surrounds it.
UNFIT = (InvalidBatch, InvalidPayload, TooLarge)
# What remains of an event when even its dead letter is too large.
STUB_BYTES = 256


class Storer:
    """Stores what comes; blocking, for one thread at a time."""

    def __init__(self, feed: Feed, options: SseOptions, source: str) -> None:
        self.note = StreamNote.of(feed.note)
        self._feed = feed
        self._options = options
        self._sorter = Sorter(options, source)

    def store(self, events: Sequence[ServerSentEvent]) -> None:
        """It is on disk when this returns. Raises what ``Feed.put`` does."""
        try:
            self._put(self._sorter.sort(events, self.note))
        except UNFIT as error:
            if len(events) == 1:
                self._bury(events[0], str(error))
                return
            half = len(events) // 2
            self.store(events[:half])
            self.store(events[half:])

    def _bury(self, event: ServerSentEvent, reason: str) -> None:
        try:
            self._put(self._sorter.refused(event, self.note, reason))
        except UNFIT:
            stub = event._replace(data=event.data[:STUB_BYTES])
            self._put(self._sorter.refused(stub, self.note, reason))

    def _put(self, batch: Sorted) -> None:
        at_ms = time.time_ns() // 1_000_000
        self._feed.put(
            batch.batches(self._options, at_ms),
            note=batch.note.text(),
            letters=batch.letters,
        )
        self.note = batch.note
