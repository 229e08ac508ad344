"""Rows of PostgreSQL that are there already, by the snapshot that a slot exports.

The slot is made together with a snapshot of the database: what was committed in front
of the slot's beginning is in the snapshot, and nothing else is. So rows are read from
it, by key, and changes from the slot's beginning on follow: none is missing, and none
comes twice.

A snapshot ends with its connection. A run that was cut off makes another one, by a slot
that goes with its session, and goes on behind the last key; in front of that come the
changes of the time between the two, of rows that were told. See frontier.py.

Keys are compared as bytes of their texts (collation C), here and by PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
import psycopg
from psycopg import pq, sql
from psycopg.errors import error_from_result

from penstock.cdc.change import NOTHING, TAKE_BYTES, Change, ChangePayload, ChangeSource
from penstock.cdc.frontier import Frontier
from penstock.cdc.pgoutput import Relation, RelationColumn, Tuple, lsn_of, lsn_text
from penstock.cdc.place import CapturePosition
from penstock.cdc.postgres import PostgresCapture
from penstock.cdc.rows import Table
from penstock.cdc.slot import (
    SlotConnection,
    TableName,
    check,
    connected,
    export,
    has_slot,
    have_publication,
    judged,
    key_of,
    slot_name,
    table_name,
)
from penstock.errors import CaptureLost, StoreRefused
from penstock.store.postgres import checked_url
from penstock.store.store import place_of as shown

# Rows that are fetched at once: at first, and at most if they are small.
FIRST_ROWS = 50
MOST_ROWS = 2_000


class PostgresSnapshot:
    """``tables`` as of PostgresCapture; each has to have a primary key."""

    def __init__(
        self, url: str, name: str, tables: Sequence[str], *, document: str | None = None
    ) -> None:
        """Raises InvalidStore, StoreRefused."""
        self.is_done = False
        self._url = checked_url(url)
        self._name = slot_name(name, url)
        self._tables = list(dict.fromkeys(table_name(table) for table in tables))
        self._document = document
        self._capture = PostgresCapture(url, name, tables, document=document)
        self._reading: SlotConnection | None = None
        self._known: dict[str, tuple[TableName, Table]] = {}
        self._rows: Iterator[list[Tuple]] | None = None
        self._frontier = Frontier()
        self._point = 0
        self._catching_up = False

    def begin(self, place: str, frontier: str) -> None:
        self.close()
        self._frontier = Frontier.of(frontier)
        try:
            with connected(self._url) as side:
                check(side, self._url, self._tables, self._document)
                have_publication(side, self._name, self._tables)
                self._known = {
                    table.name: (name, table)
                    for name in self._tables
                    for table in [self._described(side, name)]
                }
                exists = has_slot(side, self._name)
            if place and not exists:
                raise CaptureLost(shown(self._url), f"slot {self._name}", place)
            self._read_from_now(temporary=exists)
            self._catching_up = exists
            if exists:
                self._capture.begin(place, until=self._point, wanted=self._holds)
        except psycopg.Error as error:
            self.close()
            raise judged(error, self._url) from error
        except BaseException:
            self.close()
            raise

    def take(self, most: int, wait_s: float) -> list[Change]:
        if self._catching_up:
            changes = self._capture.take(most, wait_s)
            if self._capture.arrived:
                self._catching_up = False
                self._capture.close()
            return changes
        try:
            return self._read()
        except psycopg.Error as error:
            self.close()
            raise judged(error, self._url) from error

    def place(self) -> str:
        if self._catching_up:
            return self._capture.place()
        return msgspec.json.encode(CapturePosition(lsn_text(self._point))).decode()

    def frontier(self) -> str:
        return self._frontier.text()

    def close(self) -> None:
        self._capture.close()
        self._rows = None
        reading, self._reading = self._reading, None
        if reading is not None:
            with suppress(psycopg.Error):
                reading.close()

    def _read_from_now(self, *, temporary: bool) -> None:
        """Have a connection that sees the database as of ``_point``."""
        with export(self._url, self._name, temporary=temporary) as (point, snapshot):
            self._point = lsn_of(point)
            self._reading = connected(self._url)
            self._reading.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self._reading.execute(
                sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot))
            )

    def _holds(self, table: Table, key: str | None) -> bool:
        """Whether a change is of a row that was told, or of a table that was begun."""
        if key is None:
            begun = self._frontier.holds(table.name, lambda _: True)
            return begun or table.name == self._frontier.collection
        return self._frontier.holds(
            table.name, lambda last: table.order(key) <= table.order(last)
        )

    def _read(self) -> list[Change]:
        """Rows of one table; if there are no more of it, it is done."""
        name = self._frontier.next_of(self._known)
        if name is None:
            self.is_done = True
            return []
        _, table = self._known[name]
        if self._rows is None:
            self._rows = self._fetched(name)
        rows = next(self._rows, [])
        if not rows:
            self._rows = None
            self._frontier = self._frontier.finished(name)
            return []
        changes = [
            self._change(table, row, self._frontier.count + number)
            for number, row in enumerate(rows, 1)
        ]
        last = changes[-1].body.key
        assert last is not None, "a primary key is never null"
        self._frontier = self._frontier.moved(name, last, len(rows))
        return changes

    def _fetched(self, name: str) -> Iterator[list[Tuple]]:
        """The rows of a table behind the frontier, by key, in parts."""
        assert self._reading is not None, "begin comes first"
        table_name, table = self._known[name]
        self._reading.execute("CLOSE ALL")
        self._reading.execute(self._query(table_name, table))
        link, count = self._reading.pgconn, FIRST_ROWS
        while True:
            result = link.exec_(b"FETCH %d FROM penstock_rows" % count)
            if result.status != pq.ExecStatus.TUPLES_OK:
                raise error_from_result(result)
            columns = range(result.nfields)
            rows = [
                tuple(result.get_value(row, column) for column in columns)
                for row in range(result.ntuples)
            ]
            if not rows:
                return
            size = sum(len(value or b"") for row in rows for value in row)
            count = max(min(TAKE_BYTES * len(rows) // (size + 1), MOST_ROWS), 1)
            yield rows

    def _query(self, name: TableName, table: Table) -> sql.Composed:
        keys = sql.SQL(", ").join(
            sql.SQL('concat({}) COLLATE "C"').format(sql.Identifier(key))
            for key in table.key_names
        )
        where = sql.Composed([])
        if self._frontier.collection == table.name and self._frontier.key is not None:
            last = [text.decode() for text in table.order(self._frontier.key)]
            values = sql.SQL(", ").join(map(sql.Literal, last))
            where = sql.SQL("WHERE ({}) > ({})").format(keys, values)
        columns = sql.SQL(", ").join(map(sql.Identifier, table.column_names))
        return sql.SQL(
            "DECLARE penstock_rows NO SCROLL CURSOR FOR "
            "SELECT {} FROM {} {} ORDER BY {}"
        ).format(columns, sql.Identifier(*name), where, keys)

    def _change(self, table: Table, row: Tuple, number: int) -> Change:
        assert self._reading is not None, "begin comes first"
        position = f"{lsn_text(self._point)}#read-{number}"
        database = self._reading.info.dbname
        source = ChangeSource("postgresql", database, table.name, position, None)
        body = ChangePayload(
            "read", table.key(row), NOTHING, table.document(row), source
        )
        return Change(f"{self._name}-{self._point:X}-read-{number}", body)

    def _described(self, connection: SlotConnection, name: TableName) -> Table:
        """A table as pgoutput describes it; raises StoreRefused."""
        quoted = sql.Identifier(*name).as_string(connection)
        found = connection.execute(_COLUMNS, [quoted]).fetchall()
        identity = found[0][3] if found else "d"
        columns = tuple(
            RelationColumn(name, kind, keyed) for name, kind, keyed, _ in found
        )
        relation = Relation(0, *name, identity, columns)
        table = Table(relation, key_of(connection, name), self._document)
        if not table.key_names:
            reason = f"the table {table.name} has no primary key to be read by"
            raise StoreRefused(shown(self._url), reason)
        return table


# What is published of a table: no column that is computed from others.
_COLUMNS = """\
SELECT a.attname, a.atttypid::int8, coalesce(a.attnum = ANY (i.indkey), false),
       c.relreplident::text
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisreplident
WHERE c.oid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attgenerated = ''
ORDER BY a.attnum
"""
