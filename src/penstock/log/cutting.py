"""Making a topic's files shorter: from the front, from the back, or altogether.

Each is called when the journal entry that orders it is synced, or when recovery
replays that entry; to do it again, or to find it done already, changes nothing.
"""

from __future__ import annotations

from penstock.files import FileSystem, remove_if_there
from penstock.log.layout import SEGMENT_SUFFIX, index_file, numbered, segment_file
from penstock.log.shelf import Shelf
from penstock.log.topic import Segment, Topic


def tidy(files: FileSystem, topic: Topic) -> None:
    """Cut what a topic's folder holds behind the end its checkpoint knows."""
    if not files.exists(topic.directory):
        return
    known = {segment.base_offset for segment in topic.segments}
    for base in numbered(files.list(topic.directory), SEGMENT_SUFFIX):
        if base not in known:
            _remove(files, topic.directory, base)
    if topic.active is not None:
        _shorten(files, topic.active)


def drop_before(files: FileSystem, shelf: Shelf, topic: Topic, offset: int) -> int:
    """Forget events in front of ``offset``; bytes of segments that went."""
    topic.start_offset = max(topic.start_offset, offset)
    gone = [s for s in topic.segments[:-1] if s.end_offset <= topic.start_offset]
    topic.segments = topic.segments[len(gone) :]
    for segment in gone:
        shelf.drop(segment.path)
        _remove(files, topic.directory, segment.base_offset)
    return sum(segment.length for segment in gone)


def cut_behind(files: FileSystem, shelf: Shelf, topic: Topic, offset: int) -> None:
    """Forget events from ``offset`` on, which is where a frame begins.

    What the topic has in memory is written out or forgotten before.
    """
    while topic.segments and topic.segments[-1].base_offset >= offset:
        segment = topic.segments.pop()
        shelf.drop(segment.path)
        _remove(files, topic.directory, segment.base_offset)
    active = topic.active
    if active is not None:
        _cut_segment(files, shelf, topic, active, offset)
    topic.end_offset = offset


def _cut_segment(
    files: FileSystem, shelf: Shelf, topic: Topic, segment: Segment, offset: int
) -> None:
    segment.index = None
    shelf.drop(segment.path)
    for found in topic.frames_of(segment):
        if found.header.base_offset >= offset:
            segment.length = found.position
            break
    segment.end_offset = min(segment.end_offset, offset)
    segment.max_timestamp_ms = None
    shelf.drop(segment.path)
    remove_if_there(files, index_file(topic.directory, segment.base_offset))
    _shorten(files, segment)


def _shorten(files: FileSystem, segment: Segment) -> None:
    if not files.exists(segment.path):
        return
    handle = files.open(segment.path, write=True)
    try:
        if files.size(handle) > segment.length:
            files.truncate(handle, segment.length)
    finally:
        files.close(handle)


def _remove(files: FileSystem, directory: str, base_offset: int) -> None:
    remove_if_there(files, index_file(directory, base_offset))
    remove_if_there(files, segment_file(directory, base_offset))
