"""Checkpoints that were begun before there was one query over the firehose.

There were four queries, each with a directory of its own beside the others. They stand
at different places of the firehose, and their states mean something else: a query that
went on from one of them would lose tweets or count some twice, so none does.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from penstock.errors import OldCheckpoint

# The query that there is now, and the directory of its checkpoint.
QUERY = "firehose"
EARLIER = ("tweets", "running", "hashtags", "statistics")
# What Spark writes first: the id of the query.
_METADATA = "metadata"


def check(directory: str) -> None:
    """Raises OldCheckpoint if others have begun there, and this query has not.

    ``directory`` may be a URL. Earlier versions kept checkpoints on this machine only.
    """
    place = urlsplit(directory)
    here = Path(place.path if place.scheme == "file" else directory)
    begun = tuple(name for name in EARLIER if _has_begun(here / name))
    if begun and not _has_begun(here / QUERY):
        raise OldCheckpoint(directory, begun)


def _has_begun(checkpoint: Path) -> bool:
    return (checkpoint / _METADATA).exists()
