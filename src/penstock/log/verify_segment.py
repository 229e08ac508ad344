"""Checking one segment: header, frames, offsets, and its index.

A sealed segment that has an index file was not rewritten since, so its frames follow
one another without a hole up to the next segment. Compaction removes the index file,
and may leave holes.
"""

from __future__ import annotations

from penstock.errors import CorruptRecord
from penstock.files import FileSystem, read_file
from penstock.log import frame
from penstock.log.batch import Batch
from penstock.log.damage import Damage
from penstock.log.index import Index
from penstock.log.layout import Layout, index_file
from penstock.log.segment import FoundFrame, frames, read_header
from penstock.log.tally import Tally
from penstock.log.topic import Segment, TopicLog


class SegmentCheck:
    """One segment: header, frames, offsets, and its index."""

    def __init__(
        self,
        files: FileSystem,
        layout: Layout,
        topic: TopicLog,
        segment: Segment,
        tally: Tally,
    ) -> None:
        self._files = files
        self._layout = layout
        self._topic = topic
        self._segment = segment
        self._tally = tally
        self._file = layout.relative(segment.path)
        self._expected = segment.base_offset
        self._intact = True
        self._built = Index(length=topic.header_length, end_offset=segment.base_offset)

    def run(self) -> None:
        try:
            self._check_header()
            stored = self._stored_index()
            # Truncating a compacted topic may leave a hole for good.
            whole = stored is not None and not self._topic.options.compact
            self._check_frames(whole=whole)
        except FileNotFoundError:
            self._damaged(0, self._segment.length, "the file is missing", -1)
            return
        self._built.length = self._segment.length
        if stored is not None and self._intact and stored != self._built:
            self._note_index("index does not fit its segment", 0)

    def _check_header(self) -> None:
        segment, topic = self._segment, self._topic
        self._tally.looked_at(self._file, topic.header_length)
        try:
            header = read_header(self._files, segment.path, self._file)
        except CorruptRecord as error:
            self._note(error.position, error.length, error.reason)
            return
        if (header.topic_id, header.base_offset) != (topic.id, segment.base_offset):
            reason = (
                f"segment header is of topic {header.topic_id}, "
                f"base offset {header.base_offset}"
            )
            self._note(0, header.length, reason)

    def _stored_index(self) -> Index | None:
        """The index file of a sealed segment, if it is there and whole."""
        if self._segment is self._topic.active:
            return None
        path = index_file(self._topic.directory, self._segment.base_offset)
        if not self._files.exists(path):
            return None
        data = read_file(self._files, path)
        self._tally.looked_at(self._layout.relative(path), len(data))
        index = Index.decode(data)
        if index is None:
            self._note_index("index fails its checksum", len(data))
        return index

    def _check_frames(self, *, whole: bool) -> None:
        """All frames; ``whole``: none may be missing between or behind them."""
        handle = self._files.open(self._segment.path)
        try:
            for found in frames(
                self._files,
                handle,
                position=self._topic.header_length,
                end=self._segment.length,
                on_damage=self._damaged,
            ):
                self._check_frame(found, whole=whole)
        finally:
            self._files.close(handle)
        if whole:
            self._hole_up_to(self._segment.end_offset)

    def _check_frame(self, found: FoundFrame, *, whole: bool) -> None:
        header = found.header
        if header.base_offset < self._expected:
            reason = f"frame goes back to offset {header.base_offset}"
            self._note(found.position, header.length, reason)
        elif whole:
            self._hole_up_to(header.base_offset)
        if not _counts_well(found):
            reason = "offsets of a frame do not fit its span"
            self._note(found.position, header.length, reason)
        self._expected = max(self._expected, header.end_offset)
        self._built.add(found.position, header)
        self._tally.looked_at(self._file, header.length)
        self._tally.count(self._events_of(found))

    def _events_of(self, found: FoundFrame) -> int:
        start, header = self._topic.start_offset, found.header
        if header.base_offset >= start:
            return header.events
        return len(Batch.whole(self._topic.name, found.header, found.body).since(start))

    def _hole_up_to(self, offset: int) -> None:
        self._tally.note_hole(self._topic, self._file, self._expected, offset)

    def _damaged(self, at: int, length: int, reason: str, behind: int) -> None:
        end = self._segment.end_offset if behind < 0 else behind
        self._note(at, length, reason, end)
        self._expected = max(self._expected, end)

    def _note(
        self, position: int, length: int, reason: str, end_offset: int | None = None
    ) -> None:
        self._intact = False
        self._tally.note(
            Damage(
                file=self._file,
                position=position,
                length=length,
                reason=reason,
                topic=self._topic.name,
                first_offset=self._expected,
                end_offset=end_offset,
            )
        )

    def _note_index(self, reason: str, length: int) -> None:
        path = index_file(self._topic.directory, self._segment.base_offset)
        name = self._layout.relative(path)
        self._tally.note(Damage(file=name, position=0, length=length, reason=reason))


def _counts_well(found: FoundFrame) -> bool:
    header = found.header
    if not header.flags & frame.FrameFlag.GAPS:
        return header.span == header.events
    offsets = Batch.whole("", found.header, found.body).offsets()
    ascending = all(a < b for a, b in zip(offsets, offsets[1:], strict=False))
    return ascending and offsets[-1] < header.end_offset
