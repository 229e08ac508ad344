"""Documents in PostgreSQL: a table for each collection, a row for each document.

    CREATE TABLE tweets (id text PRIMARY KEY, version bigint NOT NULL,
                         doc jsonb NOT NULL);
    ALTER TABLE tweets REPLICA IDENTITY FULL;  -- changes tell what was there before

A chunk is copied in binary form into a temporary table, and goes from there into the
collection in one statement and one transaction. Its rows are sorted by key, and come
out of the temporary table in the order they were copied: writers on the same keys
wait for each other instead of deadlocking. If they deadlock all the same (a transaction
of another program may be among them), it is tried again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import psycopg
from psycopg import sql

from penstock.errors import BadDocument, InvalidStore, StoreRefused
from penstock.store.documents import Documents, documents_of
from penstock.store.pgcopy import encoded
from penstock.store.retry import Away, retried
from penstock.store.store import RETRY_S, checked_name, place_of

if TYPE_CHECKING:
    from penstock.store.store import DocumentRows

    PgConnection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")

# Large enough to be quick, small enough not to keep other writers waiting.
CHUNK_ROWS = 5_000
CHUNK_BYTES = 16 << 20
CONNECT_S = 10
READ_ROWS = 1_000

# Worth another try: connection, serialization, deadlock, resources, shutting down.
AGAIN = re.compile(r"08...|40001|40P01|53...|55P03|57P0.")
# Why a connection may be refused for a while; other FATAL ones are for good.
FOR_A_WHILE = re.compile(
    r"starting up|shutting down|recovery mode|not yet accepting|too many (clients|conn)"
    r"|connection slots|terminating connection"
)
# What is wrong with a document, and where in the chunk.
BAD_VALUE = re.compile(r"22...|54...")
LINE = re.compile(r"COPY \S+ \S+ (\d+)")

INCOMING = b"""\
CREATE TEMPORARY TABLE penstock_incoming
(id text, version bigint, doc jsonb) ON COMMIT DELETE ROWS;
ALTER TABLE pg_temp.penstock_incoming ALTER doc SET STORAGE EXTERNAL
"""
COPY = b"COPY pg_temp.penstock_incoming FROM STDIN (FORMAT binary)"
UPSERT = """\
INSERT INTO {table} AS kept (id, version, doc)
SELECT id, version, doc FROM pg_temp.penstock_incoming
ON CONFLICT (id) DO UPDATE SET version = excluded.version, doc = excluded.doc
WHERE excluded.version > kept.version
"""
CREATE = """\
CREATE TABLE IF NOT EXISTS {table}
(id text PRIMARY KEY, version bigint NOT NULL, doc jsonb NOT NULL)
"""
# What one of two gets who create a table at the same time: its name is in three
# catalogs, and it depends on where they meet.
ALREADY = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
)
IDENTITY = "SELECT relreplident::text FROM pg_class WHERE oid = to_regclass({name})"
READ = "SELECT id, version, doc FROM {table} ORDER BY id LIMIT {limit}"
COLLECTIONS = b"""\
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid)
  AND c.relpersistence <> 't' AND (a.attname, a.atttypid) IN
  (('id', 'text'::regtype), ('version', 'bigint'::regtype), ('doc', 'jsonb'::regtype))
GROUP BY c.relname HAVING count(*) = 3 ORDER BY c.relname
"""


class PostgresStore:
    """A Store; connects when it is used, and again when it must."""

    def __init__(self, url: str, *, retry_s: float = RETRY_S) -> None:
        self.place = place_of(url)
        self._url = checked_url(url)
        self._retry_s = retry_s
        self._connection: PgConnection | None = None
        self._prepared: set[str] = set()
        self._receives: PgConnection | None = None
        """The connection that has the temporary table, of those there were."""

    def prepare(self, collections: Sequence[str]) -> None:
        """Create what is missing; changes tell the whole row that was there before."""
        for collection in collections:
            table = _table(collection)
            self._tried(partial(_have_table, table=table))
            self._prepared.add(collection)

    def upsert(self, collection: str, rows: DocumentRows) -> int:
        documents = documents_of(collection, rows)
        if collection not in self._prepared:
            self.prepare([collection])
        changed = 0
        for chunk in documents.chunks(CHUNK_ROWS, CHUNK_BYTES):
            changed += self._tried(
                partial(self._write, collection=collection, chunk=chunk)
            )
        return changed

    def count(self, collection: str) -> int:
        table = _table(collection)
        return self._tried(lambda connection: _count(connection, table))

    def read(
        self, collection: str, *, limit: int | None = None
    ) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Key, version and document of all, by key, as they are at one moment."""
        query = sql.SQL(READ).format(table=_table(collection), limit=sql.Literal(limit))
        # Not the one that writes: a reader may stop half-way, and write in between.
        reading = retried(lambda: connected(self._url), self.place, self._retry_s)
        try:
            with reading, reading.transaction():
                if not _is_there(reading, _table(collection)):
                    return
                with reading.cursor("penstock_read") as cursor:
                    cursor.itersize = READ_ROWS
                    yield from cursor.execute(query)
        except psycopg.Error as error:
            raise StoreRefused(self.place, _said(error)) from error

    def collections(self) -> list[str]:
        return self._tried(
            lambda connection: [name for (name,) in connection.execute(COLLECTIONS)]
        )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _tried(self, work: Callable[[PgConnection], T]) -> T:
        return retried(lambda: self._once(work), self.place, self._retry_s)

    def _write(
        self, connection: PgConnection, collection: str, chunk: Documents
    ) -> int:
        if self._receives is not connection:
            connection.execute(INCOMING)
            self._receives = connection
        return _write(connection, collection, chunk)

    def _once(self, work: Callable[[PgConnection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = connected(self._url)
            return work(self._connection)
        except psycopg.Error as error:
            lost = self._connection is None or self._connection.closed
            if lost:
                self._connection = None
            if lost or AGAIN.fullmatch(error.sqlstate or ""):
                raise Away(_said(error)) from error
            raise StoreRefused(self.place, _said(error)) from error


def connected(url: str) -> PgConnection:
    """A connection that commits by itself; raises Away, StoreRefused, InvalidStore."""
    try:
        return psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_S,
            application_name="penstock",
        )
    except psycopg.ProgrammingError as error:
        raise InvalidStore(place_of(url), "the URL cannot be read") from error
    except psycopg.OperationalError as error:
        said = _said(error)
        if "FATAL" in said and not FOR_A_WHILE.search(said):
            raise StoreRefused(place_of(url), said) from error
        raise Away(said) from error


def checked_url(url: str) -> str:
    """The URL, if libpq can read it; raises InvalidStore."""
    try:
        ports = str(psycopg.conninfo.conninfo_to_dict(url).get("port") or "")
        any(map(int, filter(None, ports.split(","))))
    except (psycopg.ProgrammingError, ValueError):
        # Not chained: what libpq says may quote the password.
        raise InvalidStore(place_of(url), "the URL cannot be read") from None
    return url


def _table(collection: str) -> sql.Identifier:
    return sql.Identifier(checked_name(collection))


def _is_there(connection: PgConnection, table: sql.Identifier) -> bool:
    return _identity(connection, table) is not None


def _identity(connection: PgConnection, table: sql.Identifier) -> str | None:
    name = sql.Literal(table.as_string(connection))
    found = connection.execute(sql.SQL(IDENTITY).format(name=name)).fetchone()
    return None if found is None else found[0]


def _have_table(connection: PgConnection, table: sql.Identifier) -> None:
    identity = _identity(connection, table)
    if identity is None:
        try:
            connection.execute(sql.SQL(CREATE).format(table=table))
        except ALREADY as error:
            raise Away("another program creates the same table") from error
    if identity != "f":
        # It locks the table: only if it is not so already.
        connection.execute(
            sql.SQL("ALTER TABLE {table} REPLICA IDENTITY FULL").format(table=table)
        )


def _write(connection: PgConnection, collection: str, chunk: Documents) -> int:
    """One transaction; returns how many rows changed."""
    with connection.transaction(), connection.cursor() as cursor:
        try:
            with cursor.copy(COPY) as copy:
                for buffer in encoded(chunk):
                    copy.write(buffer)
        except psycopg.Error as error:
            if BAD_VALUE.fullmatch(error.sqlstate or ""):
                raise _bad_document(collection, chunk, error) from error
            raise
        cursor.execute(sql.SQL(UPSERT).format(table=_table(collection)))
        return cursor.rowcount


def _bad_document(
    collection: str, chunk: Documents, error: psycopg.Error
) -> BadDocument:
    line = LINE.search(error.diag.context or "")
    key = chunk.key_at(int(line[1]) - 1) if line else ""
    detail = error.diag.message_detail
    said = error.diag.message_primary or "refused"
    return BadDocument(collection, key, f"{said}: {detail}" if detail else said)


def _count(connection: PgConnection, table: sql.Identifier) -> int:
    if not _is_there(connection, table):
        return 0
    query = sql.SQL("SELECT count(*) FROM {table}").format(table=table)
    found = connection.execute(query).fetchone()
    assert found is not None, "an aggregate has one row"
    return int(found[0])


def _said(error: psycopg.Error) -> str:
    """What the server says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
