"""The journal: a port, and its first backend, files of the data directory."""

from __future__ import annotations

from penstock.log.journal.files import FileJournal
from penstock.log.journal.group import FIRST_OWNED, LAST_OWNED, EntryKind, JournalEntry
from penstock.log.journal.port import Journal, Replay, Securing, StoredGroup
from penstock.log.journal.scan import end_of_groups

__all__ = [
    "FIRST_OWNED",
    "LAST_OWNED",
    "JournalEntry",
    "FileJournal",
    "Journal",
    "EntryKind",
    "Replay",
    "Securing",
    "StoredGroup",
    "end_of_groups",
]
