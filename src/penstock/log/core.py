"""The machinery of the log: open group, commits, write-outs, checkpoints.

What happens to an append::

    append ──> open group ──begin_commit──> Commit.run ──end_commit──> readable
                                            journal + fdatasync            │
               segments <──WriteOut.run── begin_store / end_store <────────┘
               checkpoint <──TakeCheckpoint.run──┘

``begin_…`` and ``end_…`` belong to the thread that owns the log; ``run`` may happen
in another one, so that the next group collects while this one syncs. ``commit``,
``sync`` and ``checkpoint`` do all three steps at once for everybody else.

A group is *written* when the operating system has it and *synced* when the disk has
it; its number is what callers hold on to, ``outcome`` tells what became of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.clock import Clock
from penstock.errors import Backlogged, LogClosed, WriteFailed
from penstock.files import FileSystem
from penstock.log.catalog import Catalog
from penstock.log.checkpoint import KEPT
from penstock.log.commit import Commit, OpenGroup
from penstock.log.damage import DamageRegister, RecoveryReport
from penstock.log.intake import Intake, Outcome
from penstock.log.journal import Journal
from penstock.log.keeper import Keeper
from penstock.log.layout import Layout
from penstock.log.lock import DirectoryLock
from penstock.log.options import LogOptions
from penstock.log.owner import Owners
from penstock.log.position import PositionFile
from penstock.log.recovery import Recovery
from penstock.log.scrub import Scrub
from penstock.log.store import TakeCheckpoint, WriteOut

logger = logging.getLogger(__name__)

StoreWork = WriteOut | TakeCheckpoint


class LogCore:
    def __init__(
        self,
        layout: Layout,
        options: LogOptions,
        *,
        files: FileSystem,
        clock: Clock,
        entropy: Callable[[int], bytes],
        owners: Owners,
        lock: DirectoryLock | None,
    ) -> None:
        self._layout = layout
        self.options = options
        self.files = files
        self._clock = clock
        self._owners = owners
        self._lock = lock
        self._closed = False
        self._staged: dict[int, bytes] | None = None
        self._due: TakeCheckpoint | None = None
        self._ended: list[TakeCheckpoint] = []
        self.failure: WriteFailed | None = None
        """Why the last commit that failed did, also of those inside ``append``."""
        self.on_commit: Callable[[Commit], None] = _ignore
        """Told of every commit that has ended, also of those inside ``append``."""
        self.on_close: Callable[[OpenGroup], None] = _ignore_group
        """Told of every group that closes, before the owners are asked for records."""
        self.damages = DamageRegister(files, layout)
        self.catalog = Catalog(files, layout, self.damages.add)
        self.keeper = Keeper(files, layout, options, self.catalog)
        self.intake, self.report = self._recover(entropy)
        self._checkpoint_position = self.report.checkpoint_position
        self._scrub = Scrub(self.catalog)
        self._scrub.step(options.start_check_bytes)

    def _recover(
        self, entropy: Callable[[int], bytes]
    ) -> tuple[Intake, RecoveryReport]:
        recovery = Recovery(
            self.files,
            self._layout,
            self.options,
            self.keeper,
            self._owners,
            self.damages,
            self.now_ms(),
        )
        report = recovery.run()
        journal = Journal(
            self.files,
            self._layout,
            position=report.end_position,
            file_bytes=self.options.journal_file_bytes,
            entropy=entropy,
            starts=recovery.journal_starts(),
        )
        position_file = PositionFile(self.files, self._layout.position)
        position_file.publish(report.end_position)
        intake = Intake(journal, position_file, entropy, number=recovery.number)
        return intake, report

    @property
    def directory(self) -> str:
        return self._layout.directory

    @property
    def written(self) -> int:
        """The last group the operating system has."""
        return self.intake.written

    @property
    def synced(self) -> int:
        """The last group the disk has."""
        return self.intake.synced

    @property
    def syncs(self) -> int:
        """How often the journal was synced."""
        return self.intake.journal.syncs

    @property
    def pending_bytes(self) -> int:
        """What waits in the open group."""
        return self.intake.group.size

    @property
    def open_group(self) -> int:
        """The number of the group that collects now."""
        return self.intake.group.number

    def now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)

    def close(self) -> None:
        """Commit, checkpoint and let go; a failure is raised after letting go.

        Raises Backlogged and lets nothing go while a commit or other work runs.
        """
        if self._closed:
            return
        self.require_idle()
        try:
            self.checkpoint()
        finally:
            self._let_go(clean=True)

    def abandon(self) -> None:
        """Let go of everything at once, as a crash would."""
        if not self._closed:
            self._let_go(clean=False)

    def _let_go(self, *, clean: bool) -> None:
        self._closed = True
        try:
            self.intake.close(clean=clean)
        finally:
            self.keeper.close()
            self.catalog.close()
            if self._lock is not None:
                self._lock.release()

    def begin_commit(self, *, sync: bool | None = None) -> Commit | None:
        """Close the open group; None if there is nothing to do, or one is running.

        ``sync`` None: as the durability of what is in the group demands.
        """
        self.check_open()
        self._tell_journal()
        if self.intake.idle:
            self.on_close(self.intake.group)
            self._collect()
        commit = self.intake.begin_commit(self.now_ms(), sync=sync)
        if commit is not None and self._checkpoint_due() and self.keeper.idle:
            # Snapshots are of this moment: all records up to this group, none behind.
            self._staged = self._snapshots()
        return commit

    def end_commit(self, commit: Commit) -> WriteFailed | None:
        """Make a committed group readable, or take it back if it failed."""
        self.intake.end_commit(commit)
        staged, self._staged = self._staged, None
        if commit.error is not None:
            self.failure = commit.error
            for owner in self._owners.values():
                owner.taken_back()
            self.on_commit(commit)
            return commit.error
        for step in commit.group.then:
            step()
        for topic, frame in commit.frames:
            self.keeper.confirm(topic, frame)
        if staged is not None:
            self._due = self._begin_checkpoint(staged, KEPT)
        self.on_commit(commit)
        return None

    def outcome(self, group: int) -> Outcome:
        """What became of a group."""
        return self.intake.outcome(group)

    def commit(self, *, sync: bool | None = None) -> int:
        """Commit the open group here and now; the number of the last written group.

        Raises WriteFailed (DiskFull): then nothing of the group is stored.
        """
        if not self.intake.idle:
            raise Backlogged(self.intake.group.size, 0)
        commit = self.begin_commit(sync=sync)
        if commit is not None:
            commit.run()
            if (error := self.end_commit(commit)) is not None:
                raise error
        self.store()
        return self.written

    def sync(self) -> int:
        """Commit, and have everything on disk; the number of the last synced group."""
        self.commit(sync=True)
        return self.synced

    def begin_store(self) -> StoreWork | None:
        """Work that is due on the segments, or None; hand it to ``end_store``."""
        if self._due is not None:
            due, self._due = self._due, None
            return due
        if not self.keeper.idle or self._staged is not None:
            return None
        if self.keeper.unwritten_bytes > self.options.write_out_bytes:
            return self.keeper.begin_write_out(self.now_ms())
        return None

    def store(self) -> None:
        """Do the work that is due on the segments here and now."""
        if (work := self.begin_store()) is not None:
            work.run()
            self.end_store(work)

    def end_store(self, work: StoreWork) -> None:
        """Take note of finished work; failures are reported and tried again."""
        self.keeper.finish(work)
        if isinstance(work, TakeCheckpoint):
            self._ended.append(work)
            if work.error is None:
                self._checkpoint_position = work.checkpoint.position
            self._tell_journal()

    def _tell_journal(self) -> None:
        """Let the journal know of ended checkpoints, while no commit is using it."""
        while self._ended and self.intake.idle:
            work = self._ended.pop(0)
            self.intake.journal.doubt(work.doubtful)
            if work.error is None:
                self._retire(work.oldest_kept)

    def _retire(self, position: int) -> None:
        try:
            self.intake.journal.retire(position)
        except OSError as error:
            # A file too many costs room, and nothing else.
            logger.warning(
                "journal file not retired: %s",
                error,
                extra={"action": "retire_failed"},
            )

    def checkpoint(self, *, keep: int = KEPT) -> None:
        """Commit and checkpoint here and now; raises WriteFailed."""
        self.sync()
        self.require_idle()
        if not self.keeper.finish_erasures():
            raise WriteFailed(self._layout.topics, "erasing in", "see the log records")
        work = self._begin_checkpoint(self._snapshots(), keep)
        work.run()
        self.end_store(work)
        if work.error is not None:
            raise work.error

    def _collect(self) -> None:
        """Have the owners put what they saved up into the group that closes."""
        for kind, owner in self._owners.items():
            for data, sync in owner.collect():
                self.intake.enter(kind, 0, data, sync=sync)

    def _snapshots(self) -> dict[int, bytes]:
        return {kind: owner.snapshot() for kind, owner in self._owners.items()}

    def _checkpoint_due(self) -> bool:
        behind = self.intake.journal.position - self._checkpoint_position
        due = behind >= self.options.checkpoint_bytes
        return due and self.keeper.finish_erasures()

    def _begin_checkpoint(
        self, snapshots: dict[int, bytes], keep: int
    ) -> TakeCheckpoint:
        journal = self.intake.journal
        return self.keeper.begin_checkpoint(
            journal.position,
            self.written,
            snapshots,
            self.now_ms(),
            journal_files=journal.unsynced_files(),
            keep=keep,
        )

    def require_idle(self) -> None:
        """Raises Backlogged while a commit or other work is under way."""
        self.check_open()
        if self._due is not None and self.intake.idle:
            self.store()  # planned by the last commit, and nobody has begun with it
        if not self.intake.idle or not self.keeper.idle:
            raise Backlogged(self.intake.group.size, 0)

    def check_open(self) -> None:
        if self._closed:
            raise LogClosed(self.directory)

    def scrub(self, max_bytes: int) -> bool:
        """Verify a part of the segments; True when all of them have been."""
        return self._scrub.step(max_bytes)


def _ignore_group(group: OpenGroup) -> None:
    """Nobody has anything to add."""


def _ignore(commit: Commit) -> None:
    """Nobody wants to know."""
