"""Making a topic shorter: from the front or from the back, in memory and on disk.

The files are touched when the journal entry that orders it is synced, or when
recovery replays that entry; to do it again, or to find it done, changes nothing. Cuts
and removals are synced at once: if the power undid them later, a segment that has
been sealed meanwhile would come back with its old end, or one that is gone would.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import WriteFailed
from penstock.files import FileSystem, remove_if_there, write_error
from penstock.log.columns import frame_of
from penstock.log.layout import SEGMENT_SUFFIX, index_file, numbered, segment_file
from penstock.log.segment_cache import SegmentCache
from penstock.log.topic import Segment, TopicLog

# Files erased in one piece of work, so that others have their turn between two.
ERASED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Erasure:
    """Files that go by the journal's word; done in any thread, and again if need be."""

    directory: str
    bases: tuple[int, ...] = ()
    """Of the segments; none: the folder with all that is left in it."""

    def run(self, files: FileSystem) -> None:
        if self.bases:
            _remove(files, self.directory, self.bases)
        elif files.exists(self.directory):
            files.remove_tree(self.directory)
            files.sync_directory(os.path.dirname(self.directory))


class Erase:
    """Work that erases some files; see penstock.log.store for what work is."""

    def __init__(self, files: FileSystem, erasure: Erasure) -> None:
        self.error: WriteFailed | None = None
        self._files = files
        self._erasure = erasure

    def run(self) -> None:
        try:
            self._erasure.run(self._files)
        except OSError as error:
            where = self._erasure.directory
            self.error = write_error(where, "erasing events of", error)


def erasures(topic: TopicLog, segments: Sequence[Segment]) -> Iterator[Erasure]:
    """What erases these segments, some at a time."""
    bases = [segment.base_offset for segment in segments]
    for first in range(0, len(bases), ERASED_AT_ONCE):
        some = tuple(bases[first : first + ERASED_AT_ONCE])
        yield Erasure(topic.directory, some)


def tidy(files: FileSystem, topic: TopicLog) -> None:
    """Cut what a topic's folder holds behind the end that is known for it."""
    if not files.exists(topic.directory):
        return
    known = {segment.base_offset for segment in topic.segments}
    names = files.list(topic.directory)
    for name in names:
        if name.endswith(".tmp"):
            files.remove(os.path.join(topic.directory, name))
    stale = [base for base in numbered(names, SEGMENT_SUFFIX) if base not in known]
    _remove(files, topic.directory, stale)
    if topic.active is not None:
        _shorten(files, topic.active)


def forget_before(topic: TopicLog, offset: int) -> list[Segment]:
    """Let the topic start at ``offset``; the segments it no longer has."""
    topic.start_offset = max(topic.start_offset, offset)
    gone = [s for s in topic.segments[:-1] if s.end_offset <= topic.start_offset]
    topic.segments = topic.segments[len(gone) :]
    return gone


def length_behind(topic: TopicLog, cut: int) -> int | None:
    """What is left of the last segment that begins in front of ``cut``.

    Raises OSError if it cannot be read.
    """
    left = [s for s in topic.segments if s.base_offset < cut]
    return topic.cut_position(left[-1], cut) if left else None


def partial_frame(topic: TopicLog, offset: int) -> tuple[bytearray | None, int]:
    """Where to cut frames off for ``offset``, and what to put back of the first."""
    if offset == topic.end_offset:
        return None, offset
    whole = topic.written_frame(offset)
    if whole is None:
        return None, offset
    base = whole.header.base_offset
    kept = whole.before(offset)
    if not len(kept):
        return None, min(base, offset)
    columns = kept.take(list(range(len(kept))))
    columns.span = offset - base
    return frame_of(columns, base, whole.header.id_base), base


def forget_behind(
    topic: TopicLog, segment_cache: SegmentCache, cut: int, end: int, length: int | None
) -> list[Segment]:
    """Drop frames that begin at ``cut`` or behind and let the topic end at ``end``.

    ``length`` is that of ``length_behind``. Returns the segments that are gone.
    """
    gone = [s for s in topic.segments if s.base_offset >= cut]
    topic.segments = [s for s in topic.segments if s.base_offset < cut]
    active = topic.active
    if active is not None and length is not None:
        segment_cache.drop(active.path)
        active.length = length
        if active.end_offset > cut:
            active.end_offset = end
        active.index = active.max_timestamp_ms = None
    topic.end_offset = end
    return gone


def erase(
    files: FileSystem,
    segment_cache: SegmentCache,
    topic: TopicLog,
    gone: Iterable[Segment],
) -> None:
    """Remove segments that went and cut the active one.

    Not those whose place has been taken by a new segment meanwhile.
    """
    live = {segment.base_offset for segment in topic.segments}
    bases = []
    for segment in gone:
        if segment.base_offset not in live:
            segment_cache.drop(segment.path)
            bases.append(segment.base_offset)
    if topic.active is not None:
        segment_cache.drop(topic.active.path)
        stale = index_file(topic.directory, topic.active.base_offset)
        remove_if_there(files, stale)
        _shorten(files, topic.active)
    _remove(files, topic.directory, bases)


def _shorten(files: FileSystem, segment: Segment) -> None:
    if not files.exists(segment.path):
        return
    handle = files.open(segment.path, write=True)
    try:
        if files.size(handle) > segment.length:
            files.truncate(handle, segment.length)
            files.sync(handle)
    finally:
        files.close(handle)


def _remove(files: FileSystem, directory: str, bases: Sequence[int]) -> None:
    for base in bases:
        remove_if_there(files, index_file(directory, base))
        remove_if_there(files, segment_file(directory, base))
    if bases and files.exists(directory):
        files.sync_directory(directory)
