"""Reading the journal back, group by group, and telling a torn tail from damage.

Bytes that do not verify are **damage** if anything says they were synced once: the
*synced* field of a later group or journal file, or the position file. Then the
scan goes on at the next good group. Otherwise they are the **torn tail** of a crash,
and the journal ends in front of them, whatever may follow: what follows was not
confirmed either, and keeping it would leave a gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.files import FileSystem
from penstock.log.damage import Cut, Damage
from penstock.log.journal import group
from penstock.log.journal.header import HEADER_BYTES, FileHeader, decode_header
from penstock.log.layout import JOURNAL_SUFFIX, Layout, numbered

CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    """One good group and where it lies; ``block`` holds it from ``at`` on."""

    header: group.GroupHeader
    block: memoryview
    at: int
    file: str
    file_position: int

    @property
    def number(self) -> int:
        return self.header.number

    @property
    def time_ms(self) -> int:
        return self.header.time_ms

    @property
    def size(self) -> int:
        return self.header.length

    def entries(self) -> Iterator[group.JournalEntry]:
        return (entry for entry, _ in self.placed_entries())

    def placed_entries(self) -> Iterator[tuple[group.JournalEntry, int]]:
        """Entries, and how far behind the group's beginning their data lies."""
        return group.entries_of(self.block, self.at, self.header)


def first_position(files: FileSystem, layout: Layout) -> int | None:
    """Where a journal begins of which no checkpoint tells; None if it is empty."""
    starts = numbered(files.list(layout.journal), JOURNAL_SUFFIX)
    return starts[0] if starts else None


def end_of_groups(data: bytes) -> int:
    """Where the groups of a journal file end, by what they say of themselves."""
    at = HEADER_BYTES
    while (header := group.peek(data, at)) is not None:
        at += header.length
    return at


class JournalScan:
    """All good groups from ``start`` on; ``end``, cuts and damages when it is done.

    Args:
        attested: everything before this position is known to have been synced.
        limit: look no further than this position (a reader of a living log).
    """

    def __init__(
        self,
        files: FileSystem,
        layout: Layout,
        start: int,
        *,
        attested: int = 0,
        limit: int | None = None,
    ) -> None:
        self._files = files
        self._layout = layout
        self._attested = attested
        self._limit = limit
        self.end = start
        self.cuts: list[Cut] = []
        self.damages: list[Damage] = []
        self.last_file: tuple[str, int] | None = None
        self.files: list[str] = []
        self._later: list[int] = []

    def groups(self) -> Iterator[FoundGroup]:
        self._later = starts = self._starts()
        while starts:
            start = starts.pop(0)
            stop = starts[0] if starts else None
            if stop is not None and stop <= self.end:
                continue
            if start > self.end:
                self._lost(start)
            yield from self._file(start, stop)
            if stop is None or self.end < stop:
                break
        if self._limit is None and self.end < self._attested:
            self._lost(self._attested)

    def _starts(self) -> list[int]:
        """Starts of the files that matter; those never finished are left out.

        Files that end before the scan begins are retired: they may be half-way
        through being recycled, and nothing about them counts.
        """
        starts = numbered(self._files.list(self._layout.journal), JOURNAL_SUFFIX)
        first = bisect_right(starts, self.end) - 1
        wanted = starts[max(first, 0) :]
        return [start for start in wanted if self._header(start) is not None]

    def _header(self, start: int) -> FileHeader | None:
        path = self._layout.journal_file(start)
        try:
            handle = self._files.open(path)
        except FileNotFoundError:
            return None
        try:
            length = HEADER_BYTES + group.HEADER_BYTES
            data = self._files.read(handle, length, 0)
        finally:
            self._files.close(handle)
        header = decode_header(data, path)
        if header is None:
            return self._header_from_group(start, data)
        return header if header.start == start else None

    def _header_from_group(self, start: int, data: bytes) -> FileHeader | None:
        """A damaged file header made up from the first group, which says the same."""
        first = group.peek(data, HEADER_BYTES)
        if first is None or first.position != start:
            return None
        name = self._layout.relative(self._layout.journal_file(start))
        damage = Damage(
            file=name,
            position=0,
            length=HEADER_BYTES,
            reason="journal file header fails its checksum",
        )
        if damage not in self.damages:
            self.damages.append(damage)
        return FileHeader(
            start=start,
            stamp=first.stamp,
            longer=True,
            zeros=False,
            synced=first.synced,
        )

    def _lost(self, start: int) -> None:
        """A file that was there is gone: everything up to ``start`` with it."""
        name = self._layout.relative(self._layout.journal_file(self.end))
        reason = f"journal positions {self.end} to {start} are missing"
        self.damages.append(
            Damage(file=name, position=0, length=start - self.end, reason=reason)
        )
        self.end = start

    def _file(self, start: int, stop: int | None) -> Iterator[FoundGroup]:
        path = self._layout.journal_file(start)
        header = self._header(start)
        if header is None:
            # Recycled by a living writer since the names were listed.
            raise FileNotFoundError(path)
        handle = self._files.open(path)
        try:
            window = _Window(self._files, handle, self._layout.relative(path), header)
            if stop is not None:
                window.size = min(window.size, window.offset_of(stop))
            # Even if nothing follows: a cut that was made here is to be synced.
            self.last_file = (window.file, window.offset_of(self.end))
            self.files.append(window.file)
            yield from self._walk(window, stop)
        finally:
            self._files.close(handle)

    def _walk(self, window: _Window, stop: int | None) -> Iterator[FoundGroup]:
        while not self._at_limit() and window.offset_of(self.end) < window.size:
            found = window.group_at(self.end)
            if found is None:
                found = self._bad(window, stop)
                if found is None:
                    return
            self.end = found.header.end
            self.last_file = (found.file, found.file_position + found.header.length)
            yield found
        if stop is not None and self.end < stop and not self._at_limit():
            if self._witness() > self.end:
                self._damaged(window, stop)
            else:
                self._torn(window, None)

    def _at_limit(self) -> bool:
        return self._limit is not None and self.end >= self._limit

    def _bad(self, window: _Window, stop: int | None) -> FoundGroup | None:
        """Past bytes that do not verify to the next good group, if it counts."""
        following = window.next_group(self.end + 8)
        witness = following.header.synced if following else 0
        if max(witness, self._witness()) <= self.end:
            self._torn(window, following)
            return None
        if following is not None:
            self._damaged(window, following.header.position)
            return following
        self._damaged(window, self._damage_end(window) if stop is None else stop)
        return None

    def _damage_end(self, window: _Window) -> int:
        """Where damage ends behind which no group is."""
        end = window.position_of(window.size)
        if not window.zeros:
            return end
        filled = self.end + window.filled(self.end)
        return min(max(filled, self._attested), end)

    def _witness(self) -> int:
        """Up to where anything later says that bytes were synced once."""
        witness = self._attested
        for start in self._later:
            header = self._header(start)
            if header is None:
                continue
            witness = max(witness, header.synced)
            handle = self._files.open(self._layout.journal_file(start))
            try:
                window = _Window(self._files, handle, "", header)
                found = window.next_group(start)
                while found is not None:
                    witness = max(witness, found.header.synced)
                    found = window.next_group(found.header.end)
            finally:
                self._files.close(handle)
        return witness

    def _damaged(self, window: _Window, to: int) -> None:
        self.damages.append(
            Damage(
                file=window.file,
                position=window.offset_of(self.end),
                length=to - self.end,
                reason="journal group fails its checksum",
            )
        )
        # Damaged bytes stay: without them the file would seem to end early.
        self.last_file = (window.file, window.offset_of(to))
        self.end = to

    def _torn(self, window: _Window, following: FoundGroup | None) -> None:
        at = window.offset_of(self.end)
        self.last_file = (window.file, at)
        length = window.size - at
        if window.zeros:
            length = window.filled(self.end)
        elif window.longer:
            claimed = window.claimed_length(self.end)
            if not claimed and following is None:
                length = 0  # old content
            length = min(length, claimed or length)
        if not length:
            return  # behind the last group is what was there before: nothing was torn
        self.cuts.append(
            Cut(file=window.file, position=at, length=length, reason="torn tail")
        )


class _Window:
    """A journal file seen through one moving block."""

    def __init__(
        self, files: FileSystem, handle: int, file: str, header: FileHeader
    ) -> None:
        self._files = files
        self._handle = handle
        self._start = header.start
        self._stamp = header.stamp
        self._block = memoryview(b"")
        self._base = 0
        self.file = file
        self.longer = header.longer
        self.zeros = header.zeros
        self.size = files.size(handle)

    def offset_of(self, position: int) -> int:
        return HEADER_BYTES + position - self._start

    def position_of(self, offset: int) -> int:
        return self._start + offset - HEADER_BYTES

    def group_at(self, position: int) -> FoundGroup | None:
        """The group at ``position`` if it is whole, ours and intact."""
        offset = self.offset_of(position)
        header = self._peek(offset)
        if header is None or offset + header.length > self.size:
            return None
        at = self._load(offset, header.length)
        if not group.intact(self._block, at, header):
            return None
        return FoundGroup(
            header=header,
            block=self._block,
            at=at,
            file=self.file,
            file_position=offset,
        )

    def claimed_length(self, position: int) -> int:
        """What a group that begins there says of its length; 0 if none begins."""
        header = self._peek(self.offset_of(position))
        return 0 if header is None else header.length

    def filled(self, position: int) -> int:
        """Bytes from ``position`` on up to the zeros at the end; groups end at 8."""
        offset = self.offset_of(position)
        rest = self._files.read(self._handle, max(self.size - offset, 0), offset)
        length = len(rest.rstrip(b"\0"))
        return min(length + -length % 8, len(rest))

    def next_group(self, position: int) -> FoundGroup | None:
        """The first intact group of this file at or behind ``position``."""
        offset = self.offset_of(position)
        rest = self._files.read(self._handle, max(self.size - offset, 0), offset)
        at = rest.find(group.MAGIC)
        while at >= 0:
            if at % 8 == 0 and (found := self.group_at(position + at)) is not None:
                return found
            at = rest.find(group.MAGIC, at + 1)
        return None

    def _peek(self, offset: int) -> group.GroupHeader | None:
        """The header at ``offset`` if it carries this file's stamp and position."""
        at = self._load(offset, group.HEADER_BYTES)
        header = group.peek(self._block, at)
        if header is None or header.stamp != self._stamp:
            return None
        return header if header.position == self.position_of(offset) else None

    def _load(self, offset: int, length: int) -> int:
        """Have the bytes in the block; where they begin in it."""
        at = offset - self._base
        if at < 0 or at + length > len(self._block):
            wanted = max(length, CHUNK_BYTES)
            self._block = memoryview(self._files.read(self._handle, wanted, offset))
            self._base = offset
            at = 0
        return at
