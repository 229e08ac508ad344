"""Checking a whole data directory: every byte that counts, and that it adds up.

Nothing is changed and no lock is taken. On a directory that a process writes, only
what is synced counts, and what looks damaged is looked at again: the writer recycles,
compacts and removes files under a reader's feet, but never the same ones twice.
"""

from __future__ import annotations

import os
from dataclasses import replace

import msgspec

from penstock.errors import Moved
from penstock.files import Files, FileSystem, read_file
from penstock.log import checkpoint as checkpoints
from penstock.log import frame
from penstock.log.damage import Damage
from penstock.log.journal.group import EntryKind, JournalEntry
from penstock.log.journal.position import read_position
from penstock.log.journal.scan import FoundGroup, JournalScan
from penstock.log.layout import JOURNAL_SUFFIX, Layout, numbered
from penstock.log.lock import is_held
from penstock.log.reader import Reader
from penstock.log.tally import OnBytes, Tally, VerifyResult, place_of
from penstock.log.topic import TopicLog
from penstock.log.verify_segment import SegmentCheck

# Looks that a busy writer may spoil before its doing so is an error.
_TRIES = 10


def verify(
    directory: str | os.PathLike[str],
    progress: OnBytes | None = None,
    *,
    files: FileSystem | None = None,
) -> VerifyResult:
    """Check a data directory; ``progress`` hears of bytes as they are done.

    Raises NotADataDirectory.
    """
    disk = files or Files()
    layout = Layout(os.path.abspath(directory))
    first = _settled_look(disk, layout, progress or _ignore)
    if not first.damages or not is_held(layout.lock):
        return first
    again = _settled_look(disk, layout, _ignore)
    places = {place_of(damage) for damage in first.damages}
    confirmed = [damage for damage in again.damages if place_of(damage) in places]
    return replace(again, damages=confirmed)


def bytes_to_verify(directory: str | os.PathLike[str]) -> int:
    """About how many bytes ``verify`` will look at."""
    layout = Layout(os.path.abspath(directory))
    return sum(
        _size(os.path.join(folder, name))
        for top in (layout.checkpoints, layout.journal, layout.topics)
        for folder, _, names in os.walk(top)
        for name in names
    )


def quarantined(files: FileSystem, layout: Layout) -> list[Damage]:
    """Damage that was found before and put aside, as its reports tell it."""
    if not files.exists(layout.quarantine):
        return []
    names = [name for name in files.list(layout.quarantine) if name.endswith(".json")]
    return [_report(files, layout, name) for name in names]


def _report(files: FileSystem, layout: Layout, name: str) -> Damage:
    path = os.path.join(layout.quarantine, name)
    data = read_file(files, path)
    try:
        return msgspec.json.decode(data, type=Damage)
    except msgspec.DecodeError:
        reason = "quarantine report is not readable"
        return Damage(
            file=layout.relative(path), position=0, length=len(data), reason=reason
        )


def _settled_look(files: FileSystem, layout: Layout, progress: OnBytes) -> VerifyResult:
    """A look that no file went missing under, which only a writer may cause."""
    for _ in range(_TRIES):
        try:
            return _look(files, layout, progress)
        except (Moved, FileNotFoundError):
            if not is_held(layout.lock):
                raise
    return _look(files, layout, progress)


def _look(files: FileSystem, layout: Layout, progress: OnBytes) -> VerifyResult:
    """One look at everything."""
    tally = Tally(progress)
    # First of all, so that what is not a data directory is refused.
    with Reader.open(layout.directory, files=files) as reader:
        for damage in quarantined(files, layout):
            tally.note(damage)
        _look_at_checkpoints(files, layout, tally)
        _look_at_journal(files, layout, tally)
        for damage in reader.damages:
            tally.note(damage)
        for name in reader.topics():
            _look_at_segments(files, layout, reader.topic(name), tally)
            _look_at_tail(layout, reader, reader.topic(name), tally)
    return tally.result()


def _look_at_checkpoints(files: FileSystem, layout: Layout, tally: Tally) -> None:
    for position in checkpoints.positions(files, layout):
        path = layout.checkpoint_file(position)
        name = layout.relative(path)
        try:
            data = read_file(files, path)
        except FileNotFoundError:
            continue  # a newer one has taken its place
        if not checkpoints.is_whole(data, name):
            reason = "checkpoint fails its checksum"
            tally.note(Damage(file=name, position=0, length=len(data), reason=reason))
        tally.looked_at(name, len(data))


def _look_at_journal(files: FileSystem, layout: Layout, tally: Tally) -> None:
    """All groups since the oldest checkpoint, up to what is synced."""
    position = read_position(files, layout.position) or 0
    limit = position if is_held(layout.lock) else None
    start = _journal_start(files, layout)
    scan = JournalScan(files, layout, start, attested=position, limit=limit)
    for found in scan.groups():
        _look_at_group(found, tally)
    for damage in scan.damages:
        tally.note(damage)
    for cut in scan.cuts:
        reason = f"{cut.reason}: never confirmed, the next start will cut it off"
        tally.note(
            Damage(
                file=cut.file, position=cut.position, length=cut.length, reason=reason
            )
        )


def _journal_start(files: FileSystem, layout: Layout) -> int:
    kept = checkpoints.positions(files, layout)
    starts = kept or numbered(files.list(layout.journal), JOURNAL_SUFFIX)
    return starts[0] if starts else 0


def _look_at_group(found: FoundGroup, tally: Tally) -> None:
    for entry, at in found.placed_entries():
        if entry.kind == EntryKind.EVENTS and not _holds_frame(entry):
            tally.note(
                Damage(
                    file=found.file,
                    position=found.file_position + at,
                    length=len(entry.data),
                    reason="frame in a journal group fails its checksum",
                )
            )
    tally.looked_at(found.file, found.header.length)


def _holds_frame(entry: JournalEntry) -> bool:
    header = frame.peek(entry.data, 0)
    return header is not None and frame.intact(memoryview(entry.data), 0, header)


def _look_at_segments(
    files: FileSystem, layout: Layout, topic: TopicLog, tally: Tally
) -> None:
    expected = topic.start_offset
    for segment in topic.segments:
        name = layout.relative(segment.path)
        tally.note_hole(topic, name, expected, segment.base_offset)
        SegmentCheck(files, layout, topic, segment, tally).run()
        expected = segment.end_offset


def _look_at_tail(
    layout: Layout, reader: Reader, topic: TopicLog, tally: Tally
) -> None:
    """What a topic has in the journal: its bytes were looked at there."""
    journal = layout.relative(layout.journal)
    expected, start = topic.written_offset, topic.start_offset
    for one in topic.tail.unwritten():
        tally.note_hole(topic, journal, expected, one.base_offset)
        expected = one.end_offset
        if one.base_offset >= start:
            tally.count(one.events)
        elif expected > start:
            tally.count(sum(map(len, reader.read(topic.name, start, 1))))


def _ignore(_: int) -> None: ...


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
