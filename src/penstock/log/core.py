"""The machinery of the log: open group, commits, write-outs, checkpoints.

What happens to an append::

    append ──> open group ──begin_commit──> Commit.run ──end_commit──> readable
                                            journal + fdatasync            │
               segments <──WriteOut.run── begin_store / end_store <────────┘
               checkpoint <──TakeCheckpoint.run──┘

Retention and compaction are steps beside that, see penstock.log.housekeeping: what
reads or rewrites sealed segments is done between ``begin_upkeep`` and ``end_upkeep``.

``begin_…`` and ``end_…`` belong to the thread that owns the log; ``run`` may happen
in another one, so that the next group collects while this one syncs. ``commit``,
``sync`` and ``checkpoint`` do all three steps at once for all other callers.

A group is *written* when the operating system has it and *synced* when the disk has
it; its number is what callers hold on to, ``outcome`` tells what became of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator

from penstock.clock import Clock
from penstock.errors import (
    Backlogged,
    Fenced,
    InDoubt,
    LogClosed,
    LogError,
    WriteFailed,
)
from penstock.files import FileSystem
from penstock.log.catalog import Catalog
from penstock.log.checkpoint import KEPT
from penstock.log.commit import Commit
from penstock.log.cutting import Erase
from penstock.log.damage import DamageRegister, RecoveryReport
from penstock.log.flusher import MAX_TOPICS, Flusher
from penstock.log.intake import Intake
from penstock.log.interface import GroupCommit, GroupOutcome, StoreWork
from penstock.log.journal import FileJournal, Journal
from penstock.log.layout import Layout
from penstock.log.lock import DirectoryLock
from penstock.log.options import LogOptions
from penstock.log.owner import Owners
from penstock.log.recovery import Recovery
from penstock.log.scrub import Scrub
from penstock.log.store import TakeCheckpoint, WriteOut
from penstock.log.topic import TopicLog

logger = logging.getLogger(__name__)

UpkeepSteps = Generator[StoreWork | None, None, int]
"""Work for ``begin_upkeep``, or None: to be asked again when others have worked on.
Ends with the bytes that were set free; raises LogError."""


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
        journal: Journal | None = None,
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
        self._erases = False
        """Whether it is the turn of files that are to be erased."""
        self._ended: list[TakeCheckpoint] = []
        self._keep: int | None = None
        """How many checkpoints are to be kept with one that a caller waits for."""
        self.checkpoint_error: WriteFailed | None = None
        """Why the last one that a caller waited for failed, if it did."""
        self._thins_out = False
        """Whether a checkpoint waits for fewer topics that are to be written out."""
        self._steps: UpkeepSteps | None = None
        """The round of retention and compaction that is under way."""
        self._upkeep: StoreWork | None = None
        self.fenced: Fenced | None = None
        """Another writer has taken over: nothing is appended here any more."""
        self.failure: WriteFailed | None = None
        """Why the last commit that failed did, also of those inside ``append``."""
        self.on_commit: Callable[[GroupCommit], None] = _ignore
        """Told of every commit that has ended, also of those inside ``append``."""
        self.on_close: Callable[[], None] = _ignore_close
        """Called when a group closes, before the owners are asked for records."""
        self.damages = DamageRegister(files, layout)
        self.catalog = Catalog(files, layout, self.damages.add)
        self.flusher = Flusher(files, layout, options, self.catalog)
        journal = journal or FileJournal(
            files, layout, file_bytes=options.journal_file_bytes, entropy=entropy
        )
        self.intake, self.report = self._recover(journal, entropy)
        self._checkpoint_position = self.report.checkpoint_position
        self._scrub = Scrub(self.catalog)
        self._scrub.step(options.start_check_bytes)

    def _recover(
        self, journal: Journal, entropy: Callable[[int], bytes]
    ) -> tuple[Intake, RecoveryReport]:
        recovery = Recovery(
            self.files,
            self._layout,
            self.options,
            journal,
            self.flusher,
            self._owners,
            self.damages,
            self.now_ms(),
        )
        report = recovery.run()
        return Intake(journal, entropy, number=recovery.number), report

    @property
    def directory(self) -> str:
        return self._layout.directory

    @property
    def doubt(self) -> InDoubt | None:
        """Why it is not known what became of the commit under way, if that is so."""
        doubted = self.intake.doubted
        return None if doubted is None else doubted.doubt

    @property
    def written(self) -> int:
        """The last group the operating system has."""
        return self.intake.written

    @property
    def synced(self) -> int:
        """The last group the disk has."""
        return self.intake.synced

    @property
    def position(self) -> int:
        """Where the journal ends."""
        return self.intake.journal.position

    @property
    def syncs(self) -> int:
        """How often the journal was synced."""
        return self.intake.journal.syncs

    @property
    def pending_bytes(self) -> int:
        """What waits in the open group."""
        return self.intake.group.size

    @property
    def unwritten_bytes(self) -> int:
        """Confirmed events that are in no segment yet."""
        return self.flusher.unwritten_bytes

    @property
    def open_group(self) -> int:
        """The number of the group that collects now."""
        return self.intake.group.number

    def touched(self) -> Collection[tuple[TopicLog, int]]:
        """Topics that got events in the open group, and where each stood before."""
        return self.intake.group.first_offsets.values()

    def stood_at(self, name: str) -> int | None:
        """Where a topic stood before the open group; None if it got nothing in it."""
        found = self.intake.group.first_offsets.get(self.catalog.get(name).id)
        return None if found is None else found[1]

    def now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)

    def close(self) -> None:
        """Commit, checkpoint and let go; a failure is raised after letting go.

        Raises Backlogged and lets nothing go while a commit or other work runs. What is
        in doubt stays so: InDoubt is raised, and the next start finds out.
        """
        if self._closed:
            return
        if (doubted := self.intake.doubted) is not None:
            try:
                self._run(doubted)
            except BaseException:
                self._let_go(clean=False)
                raise
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
            self.flusher.close()
            self.catalog.close()
            if self._lock is not None:
                self._lock.release()

    def begin_commit(self, *, sync: bool | None = None) -> Commit | None:
        """Close the open group; None if there is nothing to do, or one is running.

        One that is in doubt is handed out again. ``sync`` None: as the durability of
        what is in the group demands.
        """
        self.check_open()
        if not self.intake.idle:
            return self.intake.doubted  # the caller that began it has left it
        self._tell_journal()
        self.on_close()
        self._collect()
        commit = self.intake.begin_commit(self.now_ms(), sync=sync)
        waits = commit is not None or self.checkpoint_wanted
        if waits and self.flusher.idle and self._checkpoint_due():
            # Snapshots are of this moment: all records up to this group, none behind.
            snapshots = self._snapshots()
            if commit is not None:
                self._staged = snapshots
            else:  # nothing is to be written before it
                self._due = self._begin_checkpoint(snapshots)
        return commit

    def end_commit(self, commit: GroupCommit) -> WriteFailed | None:
        """Make a committed group readable, or take it back if it failed."""
        assert isinstance(commit, Commit), "one that this log has begun"
        self.intake.end_commit(commit)
        staged, self._staged = self._staged, None
        if commit.error is not None:
            self.failure = commit.error
            if isinstance(commit.error, Fenced):
                self.fenced = commit.error
            for owner in self._owners.values():
                owner.taken_back()
            self.on_commit(commit)
            return commit.error
        for step in commit.group.then:
            step()
        self.flusher.confirm(commit.parts)
        for step in commit.group.last:
            step()
        # Not if this group has ordered files to go: it would forget that.
        if staged is not None and self.flusher.nothing_to_erase():
            self._due = self._begin_checkpoint(staged)
        self.on_commit(commit)
        return None

    def outcome(self, group: int) -> GroupOutcome:
        """What became of a group."""
        return self.intake.outcome(group)

    def commit(self, *, sync: bool | None = None) -> int:
        """Commit the open group here and now; the number of the last written group.

        Raises WriteFailed (DiskFull): then nothing of the group is stored; InDoubt:
        then it may be, and the next commit finds out.
        """
        if (doubted := self.intake.doubted) is not None:
            self._run(doubted)
        if not self.intake.idle:
            raise Backlogged(self.intake.group.size, 0)
        commit = self.begin_commit(sync=sync)
        if commit is not None:
            self._run(commit)
        self.store()
        return self.written

    def _run(self, commit: Commit) -> None:
        """Have a commit end here and now; raises InDoubt if that cannot be."""
        commit.run()
        if commit.doubt is not None:
            raise commit.doubt
        if (error := self.end_commit(commit)) is not None:
            raise error

    def sync(self) -> int:
        """Commit, and have everything on disk; the number of the last synced group."""
        self.commit(sync=True)
        return self.synced

    def begin_store(self) -> StoreWork | None:
        """Work that is due on the segments, or None; hand it to ``end_store``."""
        if self._due is not None:
            due, self._due = self._due, None
            return due
        if not self.flusher.idle or self._staged is not None:
            return None
        flusher = self.flusher
        writes = (
            flusher.unwritten_bytes > self.options.write_out_bytes
            or flusher.rolling
            or (
                self._thins_out
                and flusher.crowded
                and flusher.error is None
                and not self._is_overdue
            )
        )
        if not writes and not flusher.erasing:
            return None
        # In turns, however much there is to write: a full disk has room again when
        # files are erased, and no checkpoint comes before they are.
        self._erases = not (writes and self._erases)
        if self._erases and (work := flusher.begin_erasing(self.now_ms())) is not None:
            return work
        if not writes:
            return None
        return flusher.begin_write_out(self.now_ms(), most=MAX_TOPICS)

    def store(self) -> None:
        """Do the work that is due on the segments here and now."""
        if (work := self.begin_store()) is not None:
            work.run()
            self.end_store(work)

    def end_store(self, work: StoreWork) -> None:
        """Take note of finished work; failures are reported and tried again."""
        assert isinstance(work, WriteOut | TakeCheckpoint | Erase), "begun by this log"
        self.flusher.finish(work)
        if isinstance(work, TakeCheckpoint):
            self._ended.append(work)
            if work.keep == self._keep:
                self._keep, self.checkpoint_error = None, work.error
            if work.error is None:
                self._checkpoint_position = work.checkpoint.position
            self._tell_journal()

    def _tell_journal(self) -> None:
        """Let the journal know of ended checkpoints, while no commit is using it."""
        while self._ended and self.intake.idle:
            work = self._ended.pop(0)
            self.intake.journal.secured(work.securing)
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

    # Upkeep: a round is begun now and then, and goes on a step at a time

    def go_through(self, steps: UpkeepSteps) -> None:
        """Have the steps of a round done, unless another one is under way."""
        self.check_open()
        if self._steps is None:
            self._steps = steps

    def begin_upkeep(self) -> StoreWork | None:
        """The next step of a round, or None; hand it to ``end_upkeep``.

        It reads and rewrites what does not change, so that commits and work on the
        segments go on beside it.
        """
        if self._steps is None or self._upkeep is not None or self._closed:
            return None
        try:
            self._upkeep = next(self._steps)
        except StopIteration:
            self._steps = None
        except (LogError, OSError) as error:
            self._steps = None
            logger.error(
                "retention and compaction failed: %s",
                error,
                extra={"action": "maintain_failed"},
            )
        return self._upkeep

    def end_upkeep(self, work: StoreWork) -> None:
        """Take note of a finished step; the round looks at it when it goes on."""
        assert work is self._upkeep, "one step at a time"
        self._upkeep = None

    @property
    def checkpoint_wanted(self) -> bool:
        """Whether a caller waits for a checkpoint, which comes with a commit."""
        return self._keep is not None

    def checkpoint_soon(self, keep: int) -> None:
        """Have a checkpoint with the next commit, and keep so many of them."""
        self._keep = keep

    def call_checkpoint_off(self) -> None:
        """No caller waits for one any more."""
        self._keep = None

    def checkpoint(self, *, keep: int = KEPT) -> None:
        """Commit and checkpoint here and now; raises WriteFailed."""
        self.sync()
        self.require_idle()
        if not self.flusher.finish_erasures():
            raise WriteFailed(self._layout.topics, "erasing in", "see the log records")
        self._keep = keep
        work = self._begin_checkpoint(self._snapshots())
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
        """Whether one comes now: it writes out and syncs all topics that wait, so
        there should be few, unless it is overdue."""
        due = self._behind >= self.options.checkpoint_bytes
        self._thins_out = due and not (self._is_overdue or self.checkpoint_wanted)
        if self._thins_out and self.flusher.busy:
            return False
        due = due or self.checkpoint_wanted
        return due and self.flusher.nothing_to_erase()

    @property
    def _behind(self) -> int:
        """How much of the journal a start would have to replay."""
        return self.intake.journal.position - self._checkpoint_position

    @property
    def _is_overdue(self) -> bool:
        return self._behind >= 2 * self.options.checkpoint_bytes

    def _begin_checkpoint(self, snapshots: dict[int, bytes]) -> TakeCheckpoint:
        journal, keep = self.intake.journal, self._keep
        return self.flusher.begin_checkpoint(
            journal.position,
            self.written,
            snapshots,
            self.now_ms(),
            securing=journal.secure(),
            keep=KEPT if keep is None else keep,
        )

    def require_idle(self) -> None:
        """Raises Backlogged while a commit or other work is under way."""
        self.check_open()
        if self._due is not None and self.intake.idle:
            self.store()  # planned by the last commit, and not begun yet
        busy = self._upkeep is not None
        if busy or not self.intake.idle or not self.flusher.idle:
            raise Backlogged(self.intake.group.size, 0)

    def check_open(self) -> None:
        if self._closed:
            raise LogClosed(self.directory)

    def check_writer(self) -> None:
        """Raises LogClosed, or Fenced once another writer has taken over."""
        self.check_open()
        if self.fenced is not None:
            raise self.fenced

    def scrub(self, max_bytes: int) -> bool:
        """Verify a part of the segments; True when all of them have been."""
        return self._scrub.step(max_bytes)


def _ignore_close() -> None:
    """No listener has anything to add."""


def _ignore(commit: GroupCommit) -> None:
    """No listener wants to know."""
