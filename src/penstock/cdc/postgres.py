"""Changes of PostgreSQL tables, by logical replication (``pgoutput``).

Which changes are stored is known by place.py; what PostgreSQL itself believes to be
stored may fall back when it is killed: what comes again is dropped here. As long as the
slot exists PostgreSQL keeps what was not stored yet: a capture that will not run again
should be dropped (``penstock cdc drop``), or the disk fills up.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import psycopg

from penstock.cdc.change import (
    NOTHING,
    TAKE_BYTES,
    Change,
    ChangePayload,
    ChangeSource,
    Op,
)
from penstock.cdc.pgoutput import (
    Begin,
    CommitMessage,
    Delete,
    Insert,
    PgMessage,
    Relation,
    Truncate,
    Tuple,
    Update,
    decode,
    lsn_text,
)
from penstock.cdc.place import CapturePosition, CaptureProgress, place_of
from penstock.cdc.replication import (
    DATA,
    HEAD_BYTES,
    KEEPALIVE,
    Replication,
    position_of,
)
from penstock.cdc.rows import Table, filled
from penstock.cdc.slot import (
    SlotConnection,
    check,
    connected,
    drop_slot,
    end_of_log,
    have_publication,
    have_slot,
    judged,
    key_of,
    slot_name,
    table_name,
)
from penstock.store.postgres import checked_url

logger = logging.getLogger(__name__)

# How often PostgreSQL is told what is stored, and asked how far it is.
STATUS_S = 1.0
# First bytes of the messages that are changes: I, U, D, T.
_CHANGES = frozenset(b"IUDT")


class PostgresCapture:
    """``tables`` are names, with a schema in front if it is not ``public``."""

    def __init__(
        self, url: str, name: str, tables: Sequence[str], *, document: str | None = None
    ) -> None:
        """Raises InvalidStore, StoreRefused for a name that cannot be one of a slot."""
        self.lag: int | None = None
        self._url = checked_url(url)
        self._name = slot_name(name, url)
        self._tables = list(dict.fromkeys(table_name(table) for table in tables))
        self._document = document
        self._stream: Replication | None = None
        self._side: SlotConnection | None = None
        self._relations: dict[int, Table] = {}
        self._keys: dict[tuple[str, str], tuple[str, ...]] = {}
        self._database = ""
        self._progress = CaptureProgress(CapturePosition("0/0"))
        self._at_ms: int | None = None  # of the transaction that is under way
        self._position = self._id = ""
        self._stored = 0
        self._received = 0
        self._told_s = 0.0
        self._until: int | None = None
        self._wanted: Callable[[Table, str | None], bool] | None = None
        self.arrived = False

    def begin(
        self,
        place: str,
        *,
        until: int | None = None,
        wanted: Callable[[Table, str | None], bool] | None = None,
    ) -> None:
        """With ``until`` it has ``arrived`` when all that was committed in front of
        that position was taken; ``wanted``: which changes are, by table and key."""
        self.close()
        self._until, self._wanted, self.arrived = until, wanted, False
        try:
            self._side = side = connected(self._url)
            self._database = side.info.dbname
            check(side, self._url, self._tables, self._document)
            have_publication(side, self._name, self._tables)
            self._keys = {table: key_of(side, table) for table in self._tables}
            kept = place_of(place) if place else None
            start = have_slot(side, self._url, self._name, kept)
            self._progress = CaptureProgress(start)
            self._stored = self._received = self._progress.end
            self._stream = Replication(self._url, self._name, self._stored)
        except psycopg.Error as error:
            self.close()
            raise judged(error, self._url) from error
        except BaseException:
            self.close()
            raise

    def forget(self) -> None:
        self.close()
        with connected(self._url) as connection:
            try:
                drop_slot(connection, self._name)
            except psycopg.Error as error:
                raise judged(error, self._url) from error

    def take(self, most: int, wait_s: float) -> list[Change]:
        assert self._stream is not None, "begin comes first"
        stream = self._stream
        changes: list[Change] = []
        size = 0
        limit_s = time.monotonic() + wait_s
        try:
            self._tell(stream)
            while len(changes) < most and size < TAKE_BYTES and not self.arrived:
                data = stream.next()
                if data is not None:
                    size += self._note(data, changes)
                    continue
                left_s = limit_s - time.monotonic()
                if changes or left_s <= 0:
                    break
                stream.wait(min(left_s, STATUS_S))
                self._tell(stream)
        except psycopg.Error as error:
            self.close()
            raise judged(error, self._url) from error
        return changes

    def place(self) -> str:
        return self._progress.place()

    def stored(self) -> None:
        self._stored = max(self._stored, self._progress.end)

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        side, self._side = self._side, None
        if side is not None:
            with suppress(psycopg.Error):
                side.close()
        self._relations.clear()

    def _note(self, data: bytes, changes: list[Change]) -> int:
        """Look at a message; how large it is, if there is something new in it."""
        position = position_of(data)
        if position > self._received:
            self._received = position
        if data[0] == DATA:
            # What is stored already is counted, not read.
            if data[HEAD_BYTES] in _CHANGES and not self._progress.is_new():
                return 0
            message = decode(data[HEAD_BYTES:])
            if message is not None:
                before = len(changes)
                self._message(message, changes)
                return len(data) if len(changes) > before else 0
        elif data[0] == KEEPALIVE:
            self._progress.passed(position)
            self._has_arrived(self._progress.end)
        return 0

    def _message(self, message: PgMessage, changes: list[Change]) -> None:
        match message:
            case Insert():
                table = self._relations[message.relation]
                key = table.key(message.new)
                self._add(changes, table, "insert", key, None, message.new)
            case Update():
                self._update(message, changes)
            case Delete():
                table = self._relations[message.relation]
                old = message.old if message.whole else None
                self._add(changes, table, "delete", table.key(message.old), old, None)
            case Truncate():
                for number, relation in enumerate(message.relations):
                    table = self._relations[relation]
                    self._add(changes, table, "truncate", None, None, None, number)
            case Begin() if self._has_arrived(message.commit_lsn):
                pass  # this one comes later, by another stream
            case Begin():
                self._progress.begun(message.commit_lsn)
                self._at_ms = message.at_ms
                self._position = f"{lsn_text(message.commit_lsn)}#"
                self._id = f"{self._name}-{message.commit_lsn:X}-"
            case CommitMessage():
                self._progress.committed(message.end_lsn)
                self._has_arrived(self._progress.end)
            case Relation():
                self._relations[message.id] = self._table(message)

    def _has_arrived(self, position: int) -> bool:
        self.arrived = self._until is not None and position >= self._until
        return self.arrived

    def _update(self, message: Update, changes: list[Change]) -> None:
        """One change; two if the row has another key now."""
        table = self._relations[message.relation]
        old = message.old if message.whole else None
        new = filled(message.new, old)
        key = table.key(new)
        was = None if message.old is None else table.key(message.old)
        if was is None or was == key:
            self._add(changes, table, "update", key, old, new)
        else:
            self._add(changes, table, "delete", was, old, None)
            self._add(changes, table, "insert", key, None, new, 1)

    def _table(self, relation: Relation) -> Table:
        """The table as it is from here on; it may have been altered meanwhile."""
        name = (relation.namespace, relation.name)
        key = self._keys.get(name, ())
        names = {column.name for column in relation.columns}
        if name not in self._keys or not set(key) <= names:
            assert self._side is not None, "begin comes first"
            key = self._keys[name] = key_of(self._side, name)
        return Table(relation, key, self._document)

    def _add(
        self,
        changes: list[Change],
        table: Table,
        op: Op,
        key: str | None,
        old: Tuple | None,
        new: Tuple | None,
        number: int = 0,
    ) -> None:
        """``number``: of the changes that one message tells of."""
        if self._wanted is not None and not self._wanted(table, key):
            return
        count = self._progress.number
        at = f"{count}.{number}" if number else str(count)
        position = self._position + at
        source = ChangeSource(
            "postgresql", self._database, table.name, position, self._at_ms
        )
        before = NOTHING if old is None else table.document(old)
        after = NOTHING if new is None else table.document(new)
        body = ChangePayload(op, key, before, after, source)
        changes.append(Change(self._id + at, body))

    def _tell(self, stream: Replication) -> None:
        """Say what is stored, and ask how far the server is, now and then."""
        now_s = time.monotonic()
        if now_s - self._told_s < STATUS_S:
            return
        self._told_s = now_s
        stream.tell(self._stored)
        assert self._side is not None, "begin comes first"
        self.lag = max(end_of_log(self._side) - self._received, 0)
