"""The index of chains on disk: a SQLite file that may be lost at any time.

Tables (docs/formats/chains.md)::

    runs     run, topic, next, last, rows, settled, start
    ids      key, run, offset          events with an id given by their publisher
    parents  key, run, offset          events with a parent, by the parent's key
    batches  key, run, offset, span    batches, by the key of their generated ids

A *run* is one indexing of one topic from its start on. What an index says is only
where to look: a reader that follows a row reads the event and compares.

Crash promise: rebuilt. Nothing is synced while it is filled, which SQLite survives when
the process dies, but not when the machine does. So the file names the boot it is
used in, and one that was left open in another boot is thrown away.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import DiskFull, WriteFailed
from penstock.files import (
    FileSystem,
    make_directories,
    make_file,
    remove_if_there,
    write_error,
)
from penstock.log import Layout

logger = logging.getLogger(__name__)

MEMORY = ":memory:"
# "PNSC", so that a file of another program is told from an old one of ours.
APPLICATION_ID = 0x504E5343
VERSION = 1
# The index never takes the last room on a disk: that is for events.
RESERVE_BYTES = 64 << 20
CACHE_KIB = 16 << 10

_SCHEMA = """
CREATE TABLE mark (boot TEXT NOT NULL);
CREATE TABLE runs (
    run INTEGER PRIMARY KEY AUTOINCREMENT, topic INTEGER NOT NULL UNIQUE,
    next INTEGER NOT NULL, last BLOB NOT NULL,
    rows INTEGER NOT NULL, settled INTEGER, start INTEGER NOT NULL);
CREATE TABLE ids (
    key INTEGER, run INTEGER, offset INTEGER,
    PRIMARY KEY (key, run, offset)) WITHOUT ROWID;
CREATE TABLE parents (
    key INTEGER, run INTEGER, offset INTEGER,
    PRIMARY KEY (key, run, offset)) WITHOUT ROWID;
CREATE TABLE batches (
    key INTEGER, run INTEGER, offset INTEGER, span INTEGER,
    PRIMARY KEY (key, run, offset)) WITHOUT ROWID
"""
_INSERTS = {
    "ids": "INSERT OR IGNORE INTO ids VALUES (?, ?, ?)",
    "parents": "INSERT OR IGNORE INTO parents VALUES (?, ?, ?)",
    "batches": "INSERT OR IGNORE INTO batches VALUES (?, ?, ?, ?)",
}
TABLES = tuple(_INSERTS)
# Behind what a row stands for, by table.
_ENDS = {"ids": "offset + 1", "parents": "offset + 1", "batches": "offset + span"}
_LOWEST = (-(1 << 63), 0, 0)

# Result codes that mean a file which is not ours or not whole: error in the schema,
# corrupt, type mismatch, format, not a database.
_BROKEN = frozenset({1, 11, 20, 24, 26})
_FULL = 13
_SHORT_READ = 522

IndexKey = tuple[int, int, int]
IndexRow = tuple[int, ...]


class Unusable(Exception):
    """The file is not a whole index; it never leaves this room."""


@dataclass(slots=True)
class IndexedTopic:
    """How far a topic is indexed: all in front of ``next``.

    ``last`` is the generated id of the offset before ``next``, to recognise it by.
    ``rows`` were added, ``settled`` of them when the end was first reached.
    """

    number: int
    topic: int
    next: int
    last: bytes
    rows: int
    settled: int | None
    start: int


@dataclass(slots=True)
class IndexRows:
    """What is to be added, by table."""

    ids: list[IndexRow] = field(default_factory=list)
    parents: list[IndexRow] = field(default_factory=list)
    batches: list[IndexRow] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids) + len(self.parents) + len(self.batches)


class ChainIndex:
    """One open index. Raises WriteFailed (DiskFull) and Unusable from any method."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._places: dict[str, IndexKey] = dict.fromkeys(TABLES, _LOWEST)
        with _as_own_error(path):
            # Used by the owner of the log, in whatever thread; no lock is waited for.
            self._db = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
        weakref.finalize(self, self._db.close)
        try:
            with _as_own_error(path):
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Let go of the file, whole and synced if that can be."""
        with suppress(sqlite3.Error):
            # All that was written has to be there before the word that it is.
            self._mark(boot_id())
            self._mark("")
        self._db.close()

    def abandon(self) -> None:
        """Let go of the file as it is."""
        self._db.close()

    # Filling

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done inside, or nothing."""
        self._check_room()
        with _as_own_error(self._path):
            self._db.execute("BEGIN")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk may have ended it
                    self._db.execute("ROLLBACK")
                raise

    def runs(self) -> list[IndexedTopic]:
        with _as_own_error(self._path):
            rows = self._db.execute(
                "SELECT run, topic, next, last, rows, settled, start FROM runs"
            ).fetchall()
        return [IndexedTopic(*row) for row in rows]

    def begin_run(self, topic: int, start: int) -> IndexedTopic:
        """Index a topic from its start; what was indexed of it before is dead."""
        self._db.execute("DELETE FROM runs WHERE topic = ?", (topic,))
        made = self._db.execute(
            "INSERT INTO runs (topic, next, last, rows, start) VALUES (?, ?, ?, 0, ?)",
            (topic, start, b"", start),
        )
        assert made.lastrowid is not None
        return IndexedTopic(made.lastrowid, topic, start, b"", 0, None, start)

    def end_run(self, run: IndexedTopic) -> None:
        self._db.execute("DELETE FROM runs WHERE run = ?", (run.number,))

    def keep(self, run: IndexedTopic) -> None:
        """Store how far a run is."""
        self._db.execute(
            "UPDATE runs SET next = ?, last = ?, rows = ?, settled = ?, start = ?"
            " WHERE run = ?",
            (run.next, run.last, run.rows, run.settled, run.start, run.number),
        )

    def add(self, rows: IndexRows) -> None:
        for table, insert in _INSERTS.items():
            found: list[IndexRow] = getattr(rows, table)
            if found:
                found.sort()  # neighbours share a page
                self._db.executemany(insert, found)

    def sweep(self, table: str, count: int) -> int:
        """Remove what is dead of the next rows; how many there were, fewer at the end.

        Dead are rows of runs that are no more, and of events in front of ``start``.
        """
        place, seen = self._places[table], count
        behind = self._db.execute(
            f"SELECT key, run, offset FROM {table}"
            " WHERE (key, run, offset) > (?, ?, ?)"
            " ORDER BY key, run, offset LIMIT 1 OFFSET ?",
            (*place, count - 1),
        ).fetchone()
        if behind is None:
            (seen,) = self._db.execute(
                f"SELECT count(*) FROM {table} WHERE (key, run, offset) > (?, ?, ?)",
                place,
            ).fetchone()
        limit = "" if behind is None else " AND (key, run, offset) <= (?, ?, ?)"
        self._db.execute(
            f"DELETE FROM {table} WHERE (key, run, offset) > (?, ?, ?){limit}"
            " AND NOT EXISTS (SELECT 1 FROM runs"
            f" WHERE runs.run = {table}.run AND {_ENDS[table]} > runs.start)",
            place if behind is None else (*place, *behind),
        )
        self._places[table] = _LOWEST if behind is None else behind
        return int(seen)

    # Finding

    def find(
        self, table: str, key: int, after: tuple[int, int], limit: int
    ) -> list[tuple[int, int]]:
        """Run and offset of rows with this key, in order, behind ``after``."""
        with _as_own_error(self._path):
            return self._db.execute(
                f"SELECT run, offset FROM {table}"
                " WHERE key = ? AND (run, offset) > (?, ?)"
                " ORDER BY run, offset LIMIT ?",
                (key, *after, limit),
            ).fetchall()

    def count(self, table: str) -> int:
        with _as_own_error(self._path):
            found = self._db.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(found[0])

    def _prepare(self) -> None:
        self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        application = self._number("application_id")
        version = self._number("user_version")
        boot = boot_id()
        if (application, version) == (0, 0) and self._is_empty():
            self._check_room()
            self._db.execute("PRAGMA journal_mode = WAL")
            self._create(boot)
        elif application != APPLICATION_ID:
            raise Unusable("it is not an index of chains")
        elif version != VERSION:
            raise Unusable(f"it has version {version}, not {VERSION}")
        else:
            self._take_over(boot)
        # The index is not worth a sync: see the crash promise.
        self._db.execute("PRAGMA synchronous = OFF")

    def _create(self, boot: str) -> None:
        self._db.execute("BEGIN")
        for table in _SCHEMA.split(";"):
            self._db.execute(table)
        self._db.execute("INSERT INTO mark VALUES (?)", (boot,))
        self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("COMMIT")

    def _take_over(self, boot: str) -> None:
        (said,) = self._db.execute("SELECT boot FROM mark").fetchone() or ("none",)
        if said == boot:
            return
        if said:
            raise Unusable("it was in use when the machine stopped")
        self._mark(boot)

    def _mark(self, boot: str) -> None:
        """Say so, and have that and everything before it on disk, in the file."""
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("UPDATE mark SET boot = ?", (boot,))
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _is_empty(self) -> bool:
        found = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return not found[0]

    def _number(self, pragma: str) -> int:
        return int(self._db.execute(f"PRAGMA {pragma}").fetchone()[0])

    def _check_room(self) -> None:
        if self._path == MEMORY:
            return
        try:
            room = os.statvfs(Path(self._path).parent)
        except OSError as error:
            raise write_error(self._path, "indexing in", error) from error
        free = room.f_bavail * room.f_frsize
        if free < RESERVE_BYTES:
            reason = f"{free >> 20} MiB are free, {RESERVE_BYTES >> 20} stay free"
            raise DiskFull(Path(self._path).name, "indexing in", reason)


def open_store(layout: Layout, files: FileSystem) -> ChainIndex:
    """The index of a data directory, made anew if it is not whole.

    Raises WriteFailed if it cannot be: then there is none for now.
    """
    path = layout.chains
    try:
        return _made(path, files)
    except Unusable as error:
        put_aside(layout, files, str(error))
    try:
        return _made(path, files)
    except Unusable as error:
        raise WriteFailed(path, "creating", str(error)) from error


def _made(path: str, files: FileSystem) -> ChainIndex:
    """The index at ``path``, in a file of ours: SQLite would leave it to the umask."""
    try:
        make_file(files, path)
    except OSError as error:
        raise write_error(Path(path).name, "creating", error) from error
    return ChainIndex(path)


def put_aside(layout: Layout, files: FileSystem, reason: str) -> None:
    """Move an index that is of no use into the quarantine, over the one before."""
    path = layout.chains
    logger.warning(
        "the index of chains is made anew: %s",
        reason,
        extra={"action": "chains_rebuilt", "file": layout.relative(path)},
    )
    try:
        for suffix in ("-wal", "-shm", "-journal"):
            remove_if_there(files, path + suffix)
        if files.exists(path):
            make_directories(files, layout.quarantine)
            files.rename(path, str(Path(layout.quarantine) / Path(path).name))
    except OSError as error:
        raise write_error(path, "putting aside", error) from error


def boot_id() -> str:
    """What tells this run of the machine from others; made up where none is said."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"process {os.getpid()}"


@contextmanager
def _as_own_error(path: str) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in _BROKEN or code == _SHORT_READ:
            raise Unusable(str(error)) from error
        name = Path(path).name
        if code & 0xFF == _FULL:
            raise DiskFull(name, "indexing in", str(error)) from error
        raise WriteFailed(name, "indexing in", str(error)) from error
