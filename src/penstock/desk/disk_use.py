"""What a log takes on disk, and what is left; looked at now and then."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.desk.views.figures import DiskRow
from penstock.files import Files
from penstock.log import BrokerLog, Layout

# Between two looks: every topic has to be asked, and the file system.
LOOK_MS = 5_000


class DiskUse:
    def __init__(self, log: BrokerLog) -> None:
        self._log = log
        self._row: DiskRow | None = None
        self._looked_ms = 0

    def row(self) -> DiskRow:
        """How it was some seconds ago at most."""
        now_ms = self._log.now_ms()
        if self._row is None or not 0 <= now_ms - self._looked_ms < LOOK_MS:
            self._looked_ms = now_ms
            self._row = self._look()
        return self._row

    def _look(self) -> DiskRow:
        used = sum(topic.bytes for topic in self._log.each_topic())
        if not isinstance(self._log.files, Files):
            return DiskRow(used_bytes=used, free_bytes=None)
        journal = Layout(self._log.directory).journal
        try:
            used += sum(file.stat().st_size for file in Path(journal).iterdir())
            room = os.statvfs(self._log.directory)
        except OSError:  # a file that was just retired, or a disk that is gone
            return self._row or DiskRow(used_bytes=used, free_bytes=None)
        return DiskRow(used_bytes=used, free_bytes=room.f_bavail * room.f_frsize)
