"""What retention has to know of segments and memory does not, read from their files.

After a restart it is not known when a segment was begun and how young its youngest
event is. To find out takes a read of each file, or of all of it if its index is gone:
work for another thread than the owner's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from penstock.errors import CorruptRecord, WriteFailed
from penstock.files import FileSystem
from penstock.log.core import LogCore
from penstock.log.index import Index
from penstock.log.segment import build_index, ignore_damage, read_header
from penstock.log.topic import Segment, TopicLog


@dataclass(slots=True)
class _Finding:
    """What is asked of one segment, as it was when that was planned."""

    topic: TopicLog
    segment: Segment
    length: int
    active: bool
    begun: bool
    """Whether it is asked when it was begun."""
    youngest: bool
    """Whether it is asked how young its youngest event is."""
    created_ms: int | None = None
    index: Index | None = None


class Survey:
    """Planned and noted by the owner of the log, run in any thread."""

    def __init__(self, files: FileSystem, findings: list[_Finding]) -> None:
        self.error: WriteFailed | None = None
        self._files = files
        self._findings = findings

    @classmethod
    def planned(cls, log: LogCore) -> Self | None:
        """What is to be found out for the topics' options; None if all is known."""
        findings = [
            finding for topic in log.catalog.kept_up for finding in _unknown_of(topic)
        ]
        return cls(log.files, findings) if findings else None

    def run(self) -> None:
        for finding in self._findings:
            try:
                self._find(finding)
            except (OSError, CorruptRecord):
                continue  # gone by now, or damaged: its reader meets that too
            except Exception as error:
                # A mistake of ours: the thread has other work to do.
                self.error = WriteFailed(finding.segment.path, "reading", repr(error))
                return

    def note(self) -> None:
        """Let the segments know what was found."""
        for found in self._findings:
            segment = found.segment
            if segment.created_ms is None:
                segment.created_ms = found.created_ms
            if found.index is None or segment.length != found.length:
                continue  # not known, or it has grown meanwhile
            if segment is not found.topic.active:
                segment.max_timestamp_ms = found.index.max_timestamp_ms
            elif segment.index is None:
                segment.index = found.index

    def _find(self, finding: _Finding) -> None:
        path = finding.segment.path
        if finding.begun:
            header = read_header(self._files, path, path)
            finding.created_ms = header.created_ms
        if finding.youngest and not finding.active:
            finding.index = finding.topic.stored_index(finding.segment)
        if finding.youngest and finding.index is None:
            finding.index = self._built_index(finding)

    def _built_index(self, finding: _Finding) -> Index:
        handle = self._files.open(finding.segment.path)
        try:
            return build_index(
                self._files,
                handle,
                start=finding.topic.header_length,
                base_offset=finding.segment.base_offset,
                end=finding.length,
                on_damage=ignore_damage,
            )
        finally:
            self._files.close(handle)


def _unknown_of(topic: TopicLog) -> list[_Finding]:
    options, active = topic.options, topic.active
    aged = options.retention_age_s is not None
    found = []
    for segment in topic.segments if aged else topic.segments[-1:]:
        last = segment is active
        begun = last and options.segment_age_s is not None and not segment.created_ms
        known = segment.index is not None or segment.max_timestamp_ms is not None
        if begun or (aged and not known):
            found.append(
                _Finding(
                    topic,
                    segment,
                    segment.length,
                    active=last,
                    begun=begun,
                    youngest=aged and not known,
                )
            )
    return found
