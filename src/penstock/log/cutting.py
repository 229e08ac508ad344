"""Making a topic shorter: from the front or from the back, in memory and on disk.

The files are touched when the journal entry that orders it is synced, or when
recovery replays that entry; to do it again, or to find it done, changes nothing. What
was touched is noted as dirty: the next checkpoint syncs it before it relies on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from penstock.files import FileSystem, remove_if_there
from penstock.log.layout import SEGMENT_SUFFIX, index_file, numbered, segment_file
from penstock.log.shelf import Shelf
from penstock.log.store import Dirty
from penstock.log.topic import Segment, Topic


def tidy(files: FileSystem, topic: Topic, dirty: Dirty) -> None:
    """Cut what a topic's folder holds behind the end that is known for it."""
    if not files.exists(topic.directory):
        return
    known = {segment.base_offset for segment in topic.segments}
    names = files.list(topic.directory)
    for name in names:
        if name.endswith(".tmp"):
            files.remove(os.path.join(topic.directory, name))
    for base in numbered(names, SEGMENT_SUFFIX):
        if base not in known:
            _remove(files, topic.directory, base)
            dirty.directories.add(topic.directory)
    if topic.active is not None:
        _shorten(files, topic.active, dirty)


def forget_before(topic: Topic, offset: int) -> list[Segment]:
    """Let the topic start at ``offset``; the segments it no longer has."""
    topic.start_offset = max(topic.start_offset, offset)
    gone = [s for s in topic.segments[:-1] if s.end_offset <= topic.start_offset]
    topic.segments = topic.segments[len(gone) :]
    return gone


def forget_behind(topic: Topic, shelf: Shelf, cut: int, end: int) -> list[Segment]:
    """Drop frames that begin at ``cut`` or behind and let the topic end at ``end``.

    Returns the segments the topic no longer has.
    """
    gone = [s for s in topic.segments if s.base_offset >= cut]
    topic.segments = [s for s in topic.segments if s.base_offset < cut]
    active = topic.active
    if active is not None:
        shelf.drop(active.path)
        active.length = topic.cut_position(active, cut)
        active.end_offset = end
        active.index = active.max_timestamp_ms = None
    topic.end_offset = end
    return gone


def erase(
    files: FileSystem,
    shelf: Shelf,
    topic: Topic,
    gone: Iterable[Segment],
    dirty: Dirty,
) -> None:
    """Remove segments that went and cut the active one."""
    for segment in gone:
        shelf.drop(segment.path)
        _remove(files, topic.directory, segment.base_offset)
        dirty.directories.add(topic.directory)
    if topic.active is not None:
        shelf.drop(topic.active.path)
        stale = index_file(topic.directory, topic.active.base_offset)
        remove_if_there(files, stale)
        _shorten(files, topic.active, dirty)


def _shorten(files: FileSystem, segment: Segment, dirty: Dirty) -> None:
    if not files.exists(segment.path):
        return
    handle = files.open(segment.path, write=True)
    try:
        if files.size(handle) > segment.length:
            files.truncate(handle, segment.length)
            # Sealed before that is on disk, it would come back with its old end.
            dirty.segments.setdefault(segment.path, segment.length)
    finally:
        files.close(handle)


def _remove(files: FileSystem, directory: str, base_offset: int) -> None:
    remove_if_there(files, index_file(directory, base_offset))
    remove_if_there(files, segment_file(directory, base_offset))
