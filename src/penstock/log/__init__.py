"""The durable log: journal, topic segments, recovery, and a reader for others."""

from __future__ import annotations

from penstock.log.batch import Batch
from penstock.log.columns import Columns
from penstock.log.damage import Cut, Damage, RecoveryReport
from penstock.log.intake import Appended
from penstock.log.log import Log
from penstock.log.options import LogOptions, TopicOptions
from penstock.log.owner import Owner, Record
from penstock.log.reader import Reader

__all__ = [
    "Appended",
    "Batch",
    "Columns",
    "Cut",
    "Damage",
    "Log",
    "LogOptions",
    "Owner",
    "Reader",
    "Record",
    "RecoveryReport",
    "TopicOptions",
]
