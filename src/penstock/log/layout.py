"""Names of all files in a data directory, in one place.

::

    DIR/
      lock                          who writes here
      position                      what is synced, for readers of other processes
      checkpoints/<position>.ckp    the two newest checkpoints
      journal/<position>.jnl        journal files, named by their first position
      journal/<position>.spare      retired ones that will be used again
      topics/<name>-<id>/           one folder a topic
        <base offset>.seg           segments, named by their first offset
        <base offset>.idx           index of a sealed segment, rebuildable
      quarantine/                   copies of damaged bytes, each with a report
      chains.sqlite                 the broker's index of chains, rebuildable
"""

from __future__ import annotations

import os
import re

JOURNAL_SUFFIX = ".jnl"
SPARE_SUFFIX = ".spare"
CHECKPOINT_SUFFIX = ".ckp"
SEGMENT_SUFFIX = ".seg"
INDEX_SUFFIX = ".idx"
# SQLite makes the latter two beside the first, with its mode.
CHAINS_FILES = ("chains.sqlite", "chains.sqlite-wal", "chains.sqlite-shm")
# Readable part of a topic's folder name; the id behind it makes it unique.
_LABEL_LENGTH = 40


class Layout:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.lock = os.path.join(directory, "lock")
        self.position = os.path.join(directory, "position")
        self.checkpoints = os.path.join(directory, "checkpoints")
        self.journal = os.path.join(directory, "journal")
        self.topics = os.path.join(directory, "topics")
        self.quarantine = os.path.join(directory, "quarantine")
        self.chains = os.path.join(directory, "chains.sqlite")

    @property
    def names(self) -> list[str]:
        """What the log and the broker keep in the directory."""
        folders = (self.checkpoints, self.journal, self.topics, self.quarantine)
        files = (self.lock, self.position)
        return [*map(os.path.basename, (*folders, *files)), *CHAINS_FILES]

    def journal_file(self, position: int) -> str:
        return os.path.join(self.journal, f"{position:020}{JOURNAL_SUFFIX}")

    def checkpoint_file(self, position: int) -> str:
        return os.path.join(self.checkpoints, f"{position:020}{CHECKPOINT_SUFFIX}")

    def topic_directory(self, name: str, topic_id: int) -> str:
        """No traversal, no clash by case or escape: the id alone makes it unique."""
        label = re.sub(r"[^a-z0-9_]+", "-", name.lower())[:_LABEL_LENGTH].strip("-")
        return os.path.join(self.topics, f"{label}-{topic_id}")

    def relative(self, path: str) -> str:
        return os.path.relpath(path, self.directory)


def segment_file(directory: str, base_offset: int) -> str:
    return os.path.join(directory, f"{base_offset:020}{SEGMENT_SUFFIX}")


def index_file(directory: str, base_offset: int) -> str:
    return os.path.join(directory, f"{base_offset:020}{INDEX_SUFFIX}")


def numbered(names: list[str], suffix: str) -> list[int]:
    """The numbers of all file names of the form <20 digits><suffix>, ascending."""
    length = 20 + len(suffix)
    return sorted(
        int(name[:20])
        for name in names
        if len(name) == length and name.endswith(suffix) and name[:20].isdigit()
    )
