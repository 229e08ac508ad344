"""How far a snapshot is: collections that were told whole, and one up to a key.

Together with a place in the source's log it says what was told: all that happened up to
the place to documents within the frontier, and nothing of others. So changes of those
beyond it are dropped: they will be read as they are by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec


class Frontier(msgspec.Struct, frozen=True, omit_defaults=True):
    """``done`` are whole, ``collection`` is up to ``key``, that one included.

    ``count``: documents that were read so far.
    """

    done: tuple[str, ...] = ()
    collection: str = ""
    key: str | None = None
    count: int = 0

    @classmethod
    def of(cls, text: str) -> Frontier:
        return _decode(text) if text else cls()

    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    def next_of(self, collections: Iterable[str]) -> str | None:
        """The one to be read now; None if there is none any more."""
        wanted = [name for name in collections if name not in self.done]
        if self.collection in wanted:
            return self.collection
        return wanted[0] if wanted else None

    def moved(self, collection: str, key: str, count: int) -> Frontier:
        """``count`` more were read, up to ``key``."""
        return Frontier(self.done, collection, key, self.count + count)

    def finished(self, collection: str) -> Frontier:
        return Frontier((*self.done, collection), "", None, self.count)

    def holds(self, collection: str, is_up_to: Callable[[str], bool]) -> bool:
        """Whether a document is within it; ``is_up_to`` compares it with a key."""
        if collection in self.done:
            return True
        if collection != self.collection or self.key is None:
            return False
        return is_up_to(self.key)


_decode = msgspec.json.Decoder(Frontier).decode
