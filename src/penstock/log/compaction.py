"""Compaction: sealed segments rewritten with the last event of each key only.

Offsets stay as they are, so a compacted topic has gaps. Events without a key have
nothing that could supersede them and stay. A rewritten segment takes the place of the
old one by a rename: after a crash one or the other is there, and both are right.

Precondition: every kept checkpoint knows these segments as sealed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence

from penstock.files import Buffer, FileSystem, remove_if_there
from penstock.log.batch import Batch
from penstock.log.frame import FrameHeader, pack, peek
from penstock.log.layout import index_file
from penstock.log.segment import encode_header
from penstock.log.shelf import Shelf
from penstock.log.topic import Segment, Topic

# Keys held in memory at a time; more are done in several rounds.
MAX_KEYS = 1_000_000


class Compaction:
    def __init__(
        self, files: FileSystem, shelf: Shelf, topic: Topic, max_keys: int = MAX_KEYS
    ) -> None:
        self._files = files
        self._shelf = shelf
        self._topic = topic
        self._max_keys = max_keys

    def run(self, sealed: Sequence[Segment]) -> int:
        """Compact ``sealed``; bytes set free. Raises OSError, then nothing is lost."""
        freed = 0
        start: int | None = 0
        while start is not None:
            last, following = self._last_offsets(sealed, start)
            stop = sealed[-1].end_offset if following is None else following
            for segment in sealed:
                if segment.base_offset < stop:
                    freed += self._compact_segment(segment, last)
            start = following
        return freed

    def _last_offsets(
        self, sealed: Sequence[Segment], start: int
    ) -> tuple[dict[bytes, int], int | None]:
        """Last offset of each key from ``start`` on; where the next round begins."""
        last: dict[bytes, int] = {}
        for batch in self._batches(sealed):
            if batch.header.end_offset <= start:
                continue
            part = batch.since(start)
            for offset, key in zip(part.offsets(), part.keys(), strict=True):
                if key is not None:
                    if key not in last and len(last) >= self._max_keys:
                        return last, offset
                    last[key] = offset
        return last, None

    def _batches(self, segments: Sequence[Segment]) -> Iterator[Batch]:
        for segment in segments:
            for found in self._topic.frames_of(segment, read_bytes=1 << 20):
                header = found.header
                yield Batch.whole(self._topic.name, header, found.body)

    def _compact_segment(self, segment: Segment, last: dict[bytes, int]) -> int:
        frames = self._frames_if_whole(segment)
        if frames is None:
            return 0  # what cannot be read now may be readable another time
        if not any(self._superseded(batch, last) for batch in self._batches([segment])):
            return 0
        topic, before = self._topic, segment.length
        created = segment.created_ms or 0
        head = encode_header(segment.base_offset, topic.id, created, topic.name)
        temporary = segment.path + ".tmp"
        handle = self._files.open(temporary, write=True, create=True)
        try:
            self._files.truncate(handle, 0)
            self._files.write(handle, [head], 0)
            position = len(head)
            for buffers, header in self._kept(segment, last, frames):
                self._files.write(handle, buffers, position)
                position += header.length
            self._files.sync(handle)
        finally:
            self._files.close(handle)
        remove_if_there(self._files, index_file(topic.directory, segment.base_offset))
        self._shelf.drop(segment.path)
        self._files.rename(temporary, segment.path)
        segment.length = position
        segment.max_timestamp_ms = None
        segment.index = None
        self._files.sync_directory(os.path.dirname(segment.path))
        return before - position

    def _frames_if_whole(self, segment: Segment) -> int | None:
        """How many frames a segment has; None if any of it is damaged."""
        end, count = self._topic.header_length, 0
        for found in self._topic.frames_of(segment, read_bytes=1 << 20):
            if found.position != end:
                return None
            end += found.header.length
            count += 1
        return count if end == segment.length else None

    def _superseded(self, batch: Batch, last: dict[bytes, int]) -> bool:
        return len(_survivors(batch, last)) < len(batch)

    def _kept(
        self, segment: Segment, last: dict[bytes, int], frames: int
    ) -> Iterator[tuple[list[Buffer], FrameHeader]]:
        for batch in self._batches([segment]):
            frames -= 1
            indexes = _survivors(batch, last)
            if len(indexes) == len(batch):
                yield [pack(batch.header), batch.body], batch.header
            elif indexes:
                header = batch.header
                frame = batch.take(indexes).encode(header.base_offset, header.id_base)
                sealed = peek(frame, 0)
                assert sealed is not None
                yield [frame], sealed
        if frames:
            raise OSError(errno.EIO, f"{segment.path} could be read only in part")


def _survivors(batch: Batch, last: dict[bytes, int]) -> list[int]:
    """Indexes of the events no later one in ``last`` supersedes."""
    return [
        index
        for index, (offset, key) in enumerate(
            zip(batch.offsets(), batch.keys(), strict=True)
        )
        if key is None or last.get(key, offset) <= offset
    ]
