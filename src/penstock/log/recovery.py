"""Opening a data directory: last checkpoint, then the journal since.

Segments are first cut to the lengths the checkpoint knows, because only those bytes
were synced; the journal then gives back everything behind them. What was promised is
in one of the two; what was not may be there or not, but never with a gap.
"""

from __future__ import annotations

import logging
import os

import msgspec

from penstock.errors import UnownedRecords
from penstock.files import FileSystem
from penstock.log import checkpoint as checkpoints
from penstock.log import frame, group, journal
from penstock.log.checkpoint import TopicRecord
from penstock.log.cutting import (
    erase,
    forget_before,
    forget_behind,
    length_behind,
    remove_folder,
    tidy,
)
from penstock.log.damage import Damage, DamageRegister, RecoveryReport
from penstock.log.group import Entry, Kind, cut_in, start_in
from penstock.log.keeper import Keeper
from penstock.log.layout import JOURNAL_SUFFIX, SPARE_SUFFIX, Layout, numbered
from penstock.log.options import LogOptions, TopicOptions
from penstock.log.owner import Owner, Owners, Record
from penstock.log.position import read_position
from penstock.log.rebuild import find_topic
from penstock.log.scan import Found, JournalScan, first_position
from penstock.log.tail import TailFrame
from penstock.log.topic import Topic

logger = logging.getLogger(__name__)


class Recovery:
    """Fills a fresh keeper and its owners from a data directory."""

    def __init__(
        self,
        files: FileSystem,
        layout: Layout,
        options: LogOptions,
        keeper: Keeper,
        owners: Owners,
        damages: DamageRegister,
        now_ms: int,
    ) -> None:
        self._files = files
        self._layout = layout
        self._options = options
        self._keeper = keeper
        self._catalog = keeper.catalog
        self._owners = owners
        self._damages = damages
        self._now_ms = now_ms
        self.report = RecoveryReport()
        self.number = 0

    def run(self) -> RecoveryReport:
        start = self._restore()
        attested = read_position(self._files, self._layout.position) or 0
        scan = JournalScan(self._files, self._layout, start, attested=attested)
        for found in scan.groups():
            self._replay(found)
        for damage in scan.damages:
            self._note(damage)
        for cut in scan.cuts:
            logger.warning(
                "torn tail: %s", cut, extra={"action": "tail_cut", "file": cut.file}
            )
        self.report.cuts = scan.cuts
        self.report.end_position = scan.end
        self._end_journal(scan)
        return self.report

    def journal_starts(self) -> list[int]:
        """Starts of the journal files that hold something."""
        starts = numbered(self._files.list(self._layout.journal), JOURNAL_SUFFIX)
        return [start for start in starts if start < self.report.end_position]

    def _restore(self) -> int:
        """The state of the last checkpoint; where the journal goes on from there."""
        checkpoint, damages = checkpoints.load_newest(self._files, self._layout)
        self._remove_leftovers()
        for damage in damages:
            self._note(damage)
            self._files.remove(os.path.join(self._layout.directory, damage.file))
        if checkpoint is None:
            return self._restore_without()
        self._check_older(checkpoint.position)
        for record in checkpoint.topics:
            self._tidy(self._catalog.add(record))
        self._catalog.next_id = checkpoint.next_topic_id
        for kind, snapshot in checkpoint.snapshots.items():
            self._owner(kind).restore(snapshot)
        self.number = checkpoint.number
        self.report.checkpoint_position = checkpoint.position
        return checkpoint.position

    def _remove_leftovers(self) -> None:
        """Temporary files of replacements that a crash ended, and spare journals."""
        for folder in (self._layout.checkpoints, self._layout.journal):
            for name in self._files.list(folder):
                if name.endswith((".tmp", SPARE_SUFFIX)):
                    self._files.remove(os.path.join(folder, name))

    def _check_older(self, newest: int) -> None:
        """The checkpoint in reserve has to be good too, or be known not to be."""
        for position in checkpoints.positions(self._files, self._layout):
            if position < newest:
                _, damage = checkpoints.load(self._files, self._layout, position)
                if damage is not None:
                    self._note(damage)

    def _restore_without(self) -> int:
        """No checkpoint: a whole journal has everything, otherwise look at segments."""
        folders = [
            os.path.join(self._layout.topics, name)
            for name in self._files.list(self._layout.topics)
        ]
        start = first_position(self._files, self._layout)
        if start == 0 or not folders:
            for folder in folders:
                self._files.remove_tree(folder)
            return start or 0
        self._note(
            Damage(
                file=self._layout.relative(self._layout.checkpoints),
                position=0,
                length=0,
                reason="no checkpoint is left: topics were found from their segments, "
                "topic settings and owners' snapshots are lost",
            )
        )
        for folder in folders:
            record = find_topic(self._files, self._layout, folder, self._note)
            if record is not None:
                self._tidy(self._catalog.adopt(record))
        return start or 0

    def _tidy(self, topic: Topic) -> None:
        tidy(self._files, topic)

    def _replay(self, found: Found) -> None:
        for entry in found.entries():
            if entry.kind >= group.FIRST_OWNED:
                self._replay_record(entry, found)
            else:
                self._apply(entry)
        self.number = max(self.number, found.header.number)
        self.report.groups += 1
        self.report.journal_bytes += found.header.length
        if (
            self._keeper.unwritten_bytes > self._options.write_out_bytes
            and self._keeper.error is None
        ):
            self._write_out()

    def _replay_record(self, entry: Entry, found: Found) -> None:
        record = Record(
            kind=entry.kind,
            data=bytes(entry.data),
            group=found.header.number,
            time_ms=found.header.time_ms,
        )
        self._owner(entry.kind).replay(record)
        self.report.records += 1

    def _apply(self, entry: Entry) -> None:
        """What one entry of the log itself does to the topics."""
        if entry.kind == Kind.TOPIC:
            self._add_topic(msgspec.json.decode(entry.data, type=TopicRecord))
            return
        topic, shelf = self._topic(entry.topic), self._catalog.shelf
        match entry.kind:
            case Kind.EVENTS:
                self._append(topic, entry)
            case Kind.START:
                gone = forget_before(topic, start_in(entry))
                self._keeper.let_go(gone)
                erase(self._files, shelf, topic, gone)
            case Kind.TRUNCATE:
                cut, end = cut_in(entry)
                self._keeper.cut(topic, cut)
                length = length_behind(topic, cut)
                gone = forget_behind(topic, shelf, cut, end, length)
                self._keeper.let_go(gone)
                erase(self._files, shelf, topic, gone)
                topic.next_offset = topic.end_offset
            case Kind.DELETE:
                self._keeper.forget(topic)
                self._catalog.remove(topic)
                self._keeper.let_go(topic.segments)
                remove_folder(self._files, topic)
            case _:
                # Of a later version of the log; to pass over it would lose something.
                raise UnownedRecords(entry.kind)

    def _add_topic(self, record: TopicRecord) -> None:
        known = self._catalog.by_id(record.id)
        if known is None:
            self._tidy(self._catalog.adopt(record))
        else:
            known.options = record.options

    def _append(self, topic: Topic, entry: Entry) -> None:
        header = frame.peek(entry.data, 0)
        assert header is not None, "an intact group holds good frames"
        if header.end_offset <= topic.end_offset:
            return  # found in a segment already
        if header.base_offset > topic.end_offset:
            self._note_gap(topic, header.base_offset)
        # A copy: the block it lies in is larger than what the tail may hold on to.
        body = memoryview(bytes(entry.data[frame.HEADER_BYTES :]))
        self._keeper.confirm(topic, TailFrame(header, body))
        topic.next_offset = topic.end_offset

    def _note_gap(self, topic: Topic, to: int) -> None:
        self._note(
            Damage(
                file=self._layout.relative(self._layout.journal),
                position=topic.end_offset,
                length=0,
                reason="events were lost with a damaged part of the journal",
                topic=topic.name,
                first_offset=topic.end_offset,
                end_offset=to,
            )
        )

    def _topic(self, topic_id: int) -> Topic:
        """The topic of that id, made up if its creation was lost."""
        topic = self._catalog.by_id(topic_id)
        if topic is not None:
            return topic
        name = f"recovered-{topic_id}"
        record = TopicRecord(id=topic_id, name=name, options=TopicOptions())
        return self._catalog.add(record)

    def _owner(self, kind: int) -> Owner:
        owner = self._owners.get(kind)
        if owner is None:
            raise UnownedRecords(kind)
        return owner

    def _note(self, damage: Damage) -> None:
        if self._damages.add(damage):
            self.report.damages.append(damage)

    def _write_out(self) -> None:
        work = self._keeper.begin_write_out(self._now_ms)
        work.run()
        self._keeper.finish(work)

    def _end_journal(self, scan: JournalScan) -> None:
        """Make sure of all that was found good, and cut the rest off."""
        for name in scan.files:
            handle = self._files.open(
                os.path.join(self._layout.directory, name), write=True
            )
            try:
                if scan.last_file is not None and name == scan.last_file[0]:
                    length = scan.last_file[1]
                    if self._files.size(handle) > length:
                        self._files.truncate(handle, length)
                self._files.sync(handle)
            finally:
                self._files.close(handle)
        self._remove_void_files(scan.end)
        self._cut_voided(scan.end)

    def _remove_void_files(self, end: int) -> None:
        """Files behind a cut hold nothing that was confirmed, and must not count."""
        starts = numbered(self._files.list(self._layout.journal), JOURNAL_SUFFIX)
        void = [start for start in starts if start > end]
        for start in void:
            self._files.remove(self._layout.journal_file(start))
        if void:
            self._files.sync_directory(self._layout.journal)

    def _cut_voided(self, end: int) -> None:
        """Cut off what only a file without groups hides in the one before it.

        A file that starts at the end is made anew: while it is not there, a group that
        was not found now would come back.
        """
        starts = numbered(self._files.list(self._layout.journal), JOURNAL_SUFFIX)
        if end not in starts[1:]:
            return
        before = starts[starts.index(end) - 1]
        handle = self._files.open(self._layout.journal_file(before), write=True)
        try:
            length = journal.HEADER_BYTES + end - before
            if self._files.size(handle) > length:
                self._files.truncate(handle, length)
            self._files.sync(handle)
        finally:
            self._files.close(handle)
