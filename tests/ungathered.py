"""Write-outs that gather nothing: segments get frames as versions before wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.log.gather import GATHERED_BYTES, P
from penstock.log.tail import TailFrame


def as_they_came(
    topic: str, parts: Iterable[P], max_bytes: int = GATHERED_BYTES
) -> Iterator[tuple[TailFrame, list[P]]]:
    """In place of ``penstock.log.store.gathered``: a frame is what a commit brought."""
    for part in parts:
        yield part.frame(), [part]
