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
from penstock.log.checkpoint import TopicRecord
from penstock.log.cutting import (
    Erasure,
    erase,
    forget_before,
    forget_behind,
    length_behind,
    partial_frame,
    tidy,
)
from penstock.log.damage import Damage, DamageRegister, RecoveryReport
from penstock.log.flusher import MAX_TOPICS, Flusher
from penstock.log.journal import (
    FIRST_OWNED,
    EntryKind,
    Journal,
    JournalEntry,
    StoredGroup,
)
from penstock.log.journal.group import cut_in, start_in
from penstock.log.layout import Layout
from penstock.log.options import LogOptions, TopicOptions
from penstock.log.owner import Owner, Owners, Record
from penstock.log.rebuild import find_topic
from penstock.log.rows import parts_of
from penstock.log.tail import TailFrame, TailPart
from penstock.log.topic import TopicLog

logger = logging.getLogger(__name__)


class Recovery:
    """Fills a fresh flusher and its owners from a data directory."""

    def __init__(
        self,
        files: FileSystem,
        layout: Layout,
        options: LogOptions,
        journal: Journal,
        flusher: Flusher,
        owners: Owners,
        damages: DamageRegister,
        now_ms: int,
    ) -> None:
        self._files = files
        self._layout = layout
        self._options = options
        self._journal = journal
        self._flusher = flusher
        self._catalog = flusher.catalog
        self._owners = owners
        self._damages = damages
        self._now_ms = now_ms
        self._folders: list[str] = []
        """Those that are there while the journal has everything."""
        self.report = RecoveryReport()
        self.number = 0

    def run(self) -> RecoveryReport:
        start = self._restore()
        replay = self._journal.read(start)
        for found in replay.groups():
            self._replay(found)
        for damage in replay.damages:
            self._note(damage)
        for cut in replay.cuts:
            logger.warning(
                "torn tail: %s", cut, extra={"action": "tail_cut", "file": cut.file}
            )
        self._remove_strangers()
        self.report.cuts = list(replay.cuts)
        self.report.end_position = replay.end
        self._journal.begin()
        return self.report

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
            topic = self._catalog.add(record)
            if topic.segment_count > 1:  # others when they are written to
                self._tidy(topic)
        self._catalog.next_id = checkpoint.next_topic_id
        for kind, snapshot in checkpoint.snapshots.items():
            self._owner(kind).restore(snapshot)
        self.number = checkpoint.number
        self.report.checkpoint_position = checkpoint.position
        return checkpoint.position

    def _remove_leftovers(self) -> None:
        """Temporary files of replacements that a crash ended."""
        folder = self._layout.checkpoints
        for name in self._files.list(folder):
            if name.endswith(".tmp"):
                self._files.remove(os.path.join(folder, name))

    def _check_older(self, newest: int) -> None:
        """The checkpoint in reserve has to be good too, or be known not to be."""
        for position in checkpoints.positions(self._files, self._layout):
            if position < newest:
                damage = checkpoints.check(self._files, self._layout, position)
                if damage is not None:
                    self._note(damage)

    def _restore_without(self) -> int:
        """No checkpoint: a whole journal has everything, otherwise look at segments."""
        folders = [
            os.path.join(self._layout.topics, name)
            for name in self._files.list(self._layout.topics)
        ]
        start = self._journal.first
        if start == 0 or not folders:
            self._folders = folders
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

    def _remove_strangers(self) -> None:
        """Folders that belong to no topic; what others hold goes before they grow."""
        known = {topic.directory for topic in self._catalog} if self._folders else ()
        for folder in self._folders:
            if folder not in known and self._files.exists(folder):
                self._files.remove_tree(folder)

    def _tidy(self, topic: TopicLog) -> None:
        tidy(self._files, topic)
        topic.looked = True

    def _replay(self, found: StoredGroup) -> None:
        for entry in found.entries():
            if entry.kind >= FIRST_OWNED:
                self._replay_record(entry, found)
            else:
                self._apply(entry)
        self.number = max(self.number, found.number)
        self.report.groups += 1
        self.report.journal_bytes += found.size
        # As much as publishers may fill memory with: a start should not wait for files.
        if (
            self._flusher.unwritten_bytes > 2 * self._options.write_out_bytes
            and self._flusher.error is None
        ):
            self._write_out()

    def _replay_record(self, entry: JournalEntry, found: StoredGroup) -> None:
        record = Record(
            kind=entry.kind,
            data=bytes(entry.data),
            group=found.number,
            time_ms=found.time_ms,
        )
        self._owner(entry.kind).replay(record)
        self.report.records += 1

    def _apply(self, entry: JournalEntry) -> None:
        """What one entry of the log itself does to the topics."""
        if entry.kind == EntryKind.TOPIC:
            self._add_topic(msgspec.json.decode(entry.data, type=TopicRecord))
            return
        if entry.kind == EntryKind.ROWS:
            for topic_id, part in parts_of(entry.data):
                self._append(self._topic(topic_id), part)
            return
        topic, segment_cache = self._topic(entry.topic), self._catalog.segment_cache
        match entry.kind:
            case EntryKind.EVENTS:
                # A copy: the block it lies in is larger than what the tail may hold.
                self._append(topic, TailFrame.of(bytes(entry.data)))
            case EntryKind.START:
                gone = forget_before(topic, start_in(entry))
                self._flusher.let_go(gone)
                erase(self._files, segment_cache, topic, gone)
            case EntryKind.TRUNCATE:
                self._truncate(topic, *cut_in(entry))
            case EntryKind.DELETE:
                self._flusher.forget(topic)
                self._catalog.remove(topic)
                self._flusher.let_go(topic.segments)
                Erasure(topic.directory).run(self._files)
            case _:
                # Of a later version of the log; to pass over it would lose something.
                raise UnownedRecords(entry.kind)

    def _truncate(self, topic: TopicLog, cut: int, end: int) -> None:
        # What is written out on the way may be gathered in other frames than it was
        # then: one that the cut goes through is cut in front, and its beginning kept.
        kept, at = partial_frame(topic, cut)
        self._flusher.cut(topic, at)
        length = length_behind(topic, at)
        segment_cache = self._catalog.segment_cache
        behind = end if kept is None else at
        gone = forget_behind(topic, segment_cache, at, behind, length)
        self._flusher.let_go(gone)
        erase(self._files, segment_cache, topic, gone)
        topic.next_offset = topic.end_offset
        if kept is not None:
            self._append(topic, TailFrame.of(kept))
            # Compaction may have left a gap between the beginning and the end.
            topic.next_offset = topic.end_offset = max(topic.end_offset, end)

    def _add_topic(self, record: TopicRecord) -> None:
        known = self._catalog.by_id(record.id)
        if known is None:
            self._catalog.adopt(record)
        else:
            self._catalog.set_options(known, record.options)

    def _append(self, topic: TopicLog, part: TailPart) -> None:
        if part.end_offset <= topic.end_offset:
            return  # found in a segment already
        if part.base_offset > topic.end_offset:
            self._note_gap(topic, part.base_offset)
        self._flusher.confirm([(topic, part)])
        topic.next_offset = topic.end_offset

    def _note_gap(self, topic: TopicLog, to: int) -> None:
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

    def _topic(self, topic_id: int) -> TopicLog:
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
        work = self._flusher.begin_write_out(self._now_ms, most=MAX_TOPICS)
        work.run()
        self._flusher.finish(work)
