"""Which changes of PostgreSQL are stored, told by where they are in its log.

A transaction is known by the position of its commit, a change by that and its number in
the transaction. A place names the end of the last transaction that was taken whole, and
of one that was taken in part how much of it. PostgreSQL sends transactions in the order
of their commits, and one that was not taken whole from its beginning.
"""

from __future__ import annotations

import msgspec

from penstock.cdc.pgoutput import lsn_of, lsn_text


class CapturePosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """``end``: up to where everything is stored; ``done`` changes behind it of the
    transaction that commits at ``part``."""

    end: str
    part: str = ""
    done: int = 0


_decode = msgspec.json.Decoder(CapturePosition).decode


def place_of(text: str) -> CapturePosition:
    return _decode(text)


class CaptureProgress:
    """Tells what is new from what comes again; never goes back."""

    def __init__(self, place: CapturePosition) -> None:
        self.end = lsn_of(place.end)
        """Up to where everything was taken."""
        self.commit_lsn = 0
        """Of the transaction that is under way, 0 between two of them."""
        self.number = 0
        """Changes of it so far, new or not."""
        self._part = lsn_of(place.part) if place.part else 0
        self._done = place.done

    def begun(self, commit_lsn: int) -> None:
        """A transaction begins."""
        self.commit_lsn = commit_lsn
        self.number = 0

    def is_new(self) -> bool:
        """A change comes: whether it was not taken yet. If so, it is now."""
        self.number += 1
        if self.commit_lsn < self.end:
            return False
        if self.commit_lsn == self._part and self.number <= self._done:
            return False
        self._part, self._done = self.commit_lsn, self.number
        return True

    def committed(self, end_lsn: int) -> None:
        """The transaction is over."""
        self.end = max(self.end, end_lsn)
        self.commit_lsn = self.number = 0

    def passed(self, lsn: int) -> None:
        """All that there was in front of ``lsn`` has come."""
        if not self.commit_lsn:
            self.end = max(self.end, lsn)

    def place(self) -> str:
        """As JSON."""
        part = self._part if self._part >= self.end else 0
        place = CapturePosition(lsn_text(self.end), lsn_text(part), self._done)
        if not part or not self._done:
            place = CapturePosition(lsn_text(self.end))
        return msgspec.json.encode(place).decode()
