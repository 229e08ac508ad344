"""What the driver tells topics of every batch, each of them once.

All of it goes through a feed, in one step with a note that says how far it is: a batch
whose number is there has been told. Dead letters go before, in parts; with each part
the note says up to which offset they are told. The note holds the windows of the
statistics that are open, too. A feed belongs to the checkpoint of its query: without
that, numbers begin again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.client.feed import Feed, FeedEvents
from penstock.errors import ClientError
from penstock.pipeline.letters import Letter, parts
from penstock.pipeline.statistics import Windows


class FeedNote(msgspec.Struct, frozen=True):
    """What the note of a feed says."""

    batch: int = -1
    """The last one that is told, or is being told."""
    letters_to: int | None = None
    """None: the batch is told. Else its letters are, up to this offset."""
    windows: Windows = msgspec.field(default_factory=Windows)
    samples: int = 0
    """How far samples were read."""

    @classmethod
    def of(cls, note: str) -> FeedNote:
        return _decode(note) if note else cls()

    def __str__(self) -> str:
        return _encode(self).decode()


@dataclass(slots=True)
class QueryFeed:
    """The feed of one query. Threads take turns."""

    open_feed: Callable[[str], Feed]
    turn: threading.RLock = field(default_factory=threading.RLock, init=False)
    _feed: Feed | None = field(default=None, init=False)

    def last_note(self, query: str | None = None) -> FeedNote | None:
        """How far it is; None if nothing is known and no query is given."""
        with self.turn:
            if self._feed is None:
                if query is None:
                    return None
                self._feed = self.open_feed(feed_name(query))
            return FeedNote.of(self._feed.note)

    def put_letters(
        self, note: FeedNote, batch: int, letters: Iterable[Letter]
    ) -> None:
        """Tell letters of a batch, but for those that are; their offsets ascend."""
        begun = note.letters_to if note.batch == batch else None
        left = (one for one in letters if begun is None or one.offset > begun)
        for part in parts(left):
            note = msgspec.structs.replace(
                note, batch=batch, letters_to=part[-1].offset
            )
            self.put([], note, [(one.reason, one.raw) for one in part])

    def put(
        self,
        events: Sequence[FeedEvents],
        note: FeedNote,
        letters: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        assert self._feed is not None, "a client has asked how far it is"
        try:
            self._feed.put(events, note=str(note), letters=letters)
        except ClientError:
            # It may be stored, or not: a query that goes on asks again how far it is.
            self.close()
            raise

    def close(self) -> None:
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()


def feed_name(query: str) -> str:
    return f"pipeline:{query}"


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(FeedNote).decode
