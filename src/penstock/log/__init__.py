"""The durable log: journal, topic segments, recovery, and a reader for others.

What this package exports is its door: other rooms import nothing below it. ``Log`` and
``Reader`` are for those who open a data directory; who is handed a log has a
``BrokerLog``. What makes Arrow of batches is loaded when it is asked for.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from penstock.log.batch import Batch
from penstock.log.columns import frame_of
from penstock.log.damage import Cut, Damage, RecoveryReport
from penstock.log.frame import Column, FrameHeader
from penstock.log.interface import (
    Appended,
    AppendedRows,
    BrokerLog,
    CommittedFrame,
    GroupCommit,
    GroupOutcome,
    LonePart,
    SharedRows,
    StoredTopic,
    StoreWork,
)
from penstock.log.journal import Journal, JournalEntry, end_of_groups
from penstock.log.layout import INDEX_SUFFIX, JOURNAL_SUFFIX, SEGMENT_SUFFIX, Layout
from penstock.log.lock import DirectoryLock, holder_pid, is_held, is_locked, lock_holder
from penstock.log.log import Log
from penstock.log.options import MAX_GROUP_BYTES, Durability, LogOptions, TopicOptions
from penstock.log.owner import OpenLog, Owner, Record
from penstock.log.reader import Reader
from penstock.log.stat import Stat, TopicStat, stat_of
from penstock.log.tally import VerifyResult
from penstock.log.verification import bytes_to_verify, verify
from penstock.model.columns import Columns

if TYPE_CHECKING:
    from penstock.log.arrow import (
        ArrowPieces,
        record_batch,
        write_arrow,
        write_parquet,
    )

_ARROW = {"ArrowPieces", "record_batch", "write_arrow", "write_parquet"}
# Names of the version before.
_RENAMED = {"Outcome": "GroupOutcome"}

__all__ = [
    "INDEX_SUFFIX",
    "JOURNAL_SUFFIX",
    "MAX_GROUP_BYTES",
    "SEGMENT_SUFFIX",
    "Appended",
    "AppendedRows",
    "ArrowPieces",
    "Batch",
    "BrokerLog",
    "CommittedFrame",
    "Column",
    "Columns",
    "Cut",
    "Damage",
    "DirectoryLock",
    "Durability",
    "FrameHeader",
    "GroupCommit",
    "Journal",
    "JournalEntry",
    "Layout",
    "Log",
    "LogOptions",
    "OpenLog",
    "GroupOutcome",
    "Owner",
    "Reader",
    "Record",
    "RecoveryReport",
    "LonePart",
    "SharedRows",
    "Stat",
    "StoreWork",
    "StoredTopic",
    "TopicOptions",
    "TopicStat",
    "VerifyResult",
    "bytes_to_verify",
    "end_of_groups",
    "frame_of",
    "holder_pid",
    "is_held",
    "is_locked",
    "lock_holder",
    "record_batch",
    "stat_of",
    "verify",
    "write_arrow",
    "write_parquet",
]


def __getattr__(name: str) -> object:
    if name in _ARROW:
        found: object = getattr(import_module("penstock.log.arrow"), name)
        return found
    if name in _RENAMED:
        text = f"penstock.log.{name} is called {_RENAMED[name]} now"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        renamed: object = globals()[_RENAMED[name]]
        return renamed
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
