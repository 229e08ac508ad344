"""A range of a topic as an Arrow stream, a record batch at a time.

Arrow is an extra: without it the client is told what to install.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

from penstock.log import Batch

if TYPE_CHECKING:
    from penstock.log import ArrowPieces

MEDIA_TYPE = "application/vnd.apache.arrow.stream"


def pieces(topic: str, views: AsyncIterator[Batch]) -> AsyncGenerator[bytes, None]:
    """The views as an Arrow IPC stream; raises MissingExtra at once."""
    # Here, because Arrow is an extra: MissingExtra if it is not installed.
    from penstock.log import ArrowPieces

    return _written(ArrowPieces(topic), views)


async def _written(
    writer: ArrowPieces, views: AsyncIterator[Batch]
) -> AsyncGenerator[bytes, None]:
    async for view in views:
        yield writer.piece(view) if len(view) else b""
    yield writer.end()
