"""What a capture keeps in PostgreSQL: a publication and a replication slot, one name.

The publication says which tables, the slot how far the capture is: PostgreSQL keeps its
log from there on. The slot is never told more than what is stored together with its
place. So a slot that is further than the place has lost something: another client has
read from it, or has made it anew.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, LiteralString

import psycopg
from psycopg import pq, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import error_from_result

from penstock.cdc.pgoutput import lsn_of
from penstock.cdc.place import CapturePosition
from penstock.cdc.rows import PUBLIC
from penstock.errors import CaptureLost, StoreError, StoreRefused, StoreUnreachable
from penstock.store.postgres import AGAIN, FOR_A_WHILE, checked_url
from penstock.store.store import place_of as shown

SlotConnection = psycopg.Connection[Any]
TableName = tuple[str, str]

CONNECT_S = 10
PREFIX = "penstock_"
_NAME = re.compile(r"[a-z0-9_]{1,63}")
# Another client has the slot: a predecessor whose end PostgreSQL has not noticed yet.
_IN_USE = "55006"
# Values as text, the same for every user and database.
_TEXT = "-c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=1"
# A peer that is gone without a word is noticed in about half a minute.
_ALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_FULL = "f"


def slot_name(name: str, url: str) -> str:
    """What slot and publication of a capture are called; raises StoreRefused.

    Two captures never have one slot: a name is taken as it is, or not at all.
    """
    found = f"{PREFIX}{name}"
    if not _NAME.fullmatch(found):
        reason = f"{name!r} cannot name a slot: a to z, digits and _, at most 54"
        raise StoreRefused(shown(url), reason)
    return found


def table_name(text: str) -> TableName:
    """Schema and name of ``name`` or ``schema.name``."""
    schema, dot, name = text.rpartition(".")
    return (schema, name) if dot else (PUBLIC, text)


def connected(url: str, **more: Any) -> SlotConnection:
    """A connection for capturing; raises StoreRefused, StoreUnreachable, InvalidStore.

    A server that starts, stops or has no room is away; one that does not let us in
    refuses.
    """
    own = conninfo_to_dict(checked_url(url)).get("options") or ""
    try:
        return psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_S,
            application_name="penstock cdc",
            client_encoding="utf8",
            options=f"{_TEXT} -c timezone=UTC {own}",
            **_ALIVE,
            **more,
        )
    except psycopg.OperationalError as error:
        said = said_by(error)
        if "FATAL" in said and not FOR_A_WHILE.search(said):
            raise StoreRefused(shown(url), said) from error
        raise StoreUnreachable(shown(url), 0.0, said) from error


def judged(error: psycopg.Error, url: str) -> StoreError:
    """What an error means: whether the same may go well later."""
    state = error.sqlstate or ""
    lost = not state and isinstance(error, psycopg.OperationalError)
    if lost or state == _IN_USE or AGAIN.fullmatch(state):
        return StoreUnreachable(shown(url), 0.0, said_by(error))
    return StoreRefused(shown(url), said_by(error))


def said_by(error: Exception) -> str:
    """In one line."""
    return " ".join(str(error).split()) or type(error).__name__


def check(
    connection: SlotConnection,
    url: str,
    tables: Sequence[TableName],
    document: str | None,
) -> None:
    """Whether it can work at all; raises StoreRefused."""
    (level,) = _row(connection, "SHOW wal_level")
    if level != "logical":
        raise StoreRefused(shown(url), f"wal_level is {level}, it has to be logical")
    for table in tables if document is not None else ():
        found = _row(connection, _IDENTITY, _quoted(connection, table))
        if found is not None and found[0] != _FULL:
            reason = (
                f"the table {table[1]} has to have REPLICA IDENTITY FULL where a "
                "column is the document: updates may leave it out otherwise"
            )
            raise StoreRefused(shown(url), reason)


def have_publication(
    connection: SlotConnection, name: str, tables: Sequence[TableName]
) -> None:
    """Have a publication of exactly these tables."""
    found = connection.execute(_PUBLISHED, [name]).fetchall()
    (exists,) = _row(
        connection, "SELECT count(*) FROM pg_publication WHERE pubname = %s", name
    )
    if exists and set(found) == set(tables):
        return
    wanted = sql.SQL(", ").join(sql.Identifier(*table) for table in tables)
    verb = sql.SQL(_ALTER if exists else _CREATE)
    connection.execute(verb.format(sql.Identifier(name), wanted))


def have_slot(
    connection: SlotConnection, url: str, name: str, kept: CapturePosition | None
) -> CapturePosition:
    """Where to go on: behind ``kept``; else where the slot is, which is made if need
    be. Raises CaptureLost, StoreRefused."""
    found = _row(connection, _SLOT, name)
    if found is None:
        if kept is not None:
            raise CaptureLost(shown(url), f"slot {name}", kept.end)
        (end,) = _row(connection, _MAKE_SLOT, name)
        return CapturePosition(end)
    end, status, database = found
    if database != connection.info.dbname:
        reason = f"slot {name} is of the database {database}: give another --name"
        raise StoreRefused(shown(url), reason)
    if status == "lost":
        raise CaptureLost(
            shown(url), f"the log for slot {name}", (kept or CapturePosition(end)).end
        )
    if kept is None:
        return CapturePosition(end)
    if lsn_of(end) > lsn_of(kept.end):
        what = f"slot {name} was moved to {end} by another client, what was in front"
        raise CaptureLost(shown(url), what, kept.end)
    return kept


def has_slot(connection: SlotConnection, name: str) -> bool:
    return _row(connection, _SLOT, name) is not None


@contextmanager
def export(url: str, name: str, *, temporary: bool) -> Iterator[tuple[str, str]]:
    """Make a slot; gives its beginning, and a snapshot of all that was in front of it.

    The snapshot can be taken while this lasts. ``temporary``: the slot goes then, and
    is another one than that of the capture. Raises StoreRefused, StoreUnreachable,
    psycopg.Error.
    """
    kind = "TEMPORARY " if temporary else ""
    slot = f"{name[:48]}_{secrets.token_hex(4)}" if temporary else name
    command = f'CREATE_REPLICATION_SLOT "{slot}" {kind}LOGICAL pgoutput EXPORT_SNAPSHOT'
    connection = connected(url, replication="database")
    try:
        result = connection.pgconn.exec_(command.encode())
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise error_from_result(result)
        point, snapshot = result.get_value(0, 1), result.get_value(0, 2)
        assert point is not None and snapshot is not None, "as it was asked for"
        yield point.decode(), snapshot.decode()
    finally:
        with suppress(psycopg.Error):
            connection.close()


def drop_slot(connection: SlotConnection, name: str) -> bool:
    """Whether there was one; raises psycopg.Error if it is in use."""
    return _row(connection, _DROP_SLOT, name) is not None


def drop(url: str, name: str) -> bool:
    """Remove slot and publication of a capture that will not run again.

    Whether there was any. Raises StoreError.
    """
    kept = slot_name(name, url)
    with connected(url) as connection:
        try:
            dropped = drop_slot(connection, kept)
            (published,) = _row(
                connection,
                "SELECT count(*) FROM pg_publication WHERE pubname = %s",
                kept,
            )
            connection.execute(
                sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(kept))
            )
        except psycopg.Error as error:
            raise StoreRefused(shown(url), said_by(error)) from error
    return dropped or bool(published)


def key_of(connection: SlotConnection, table: TableName) -> tuple[str, ...]:
    """The columns of the primary key, in its order."""
    rows = connection.execute(_PRIMARY, [_quoted(connection, table)]).fetchall()
    return tuple(row[0] for row in rows)


def end_of_log(connection: SlotConnection) -> int:
    """Up to where PostgreSQL has written."""
    (end,) = _row(connection, "SELECT pg_current_wal_flush_lsn()::text")
    return lsn_of(end)


_CREATE = """\
CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)
"""
_ALTER = "ALTER PUBLICATION {} SET TABLE {}"
_PUBLISHED = """\
SELECT schemaname::text, tablename::text FROM pg_publication_tables WHERE pubname = %s
"""
_IDENTITY = "SELECT relreplident::text FROM pg_class WHERE oid = to_regclass(%s)"
_SLOT = """\
SELECT confirmed_flush_lsn::text, wal_status, database FROM pg_replication_slots
WHERE slot_name = %s
"""
_MAKE_SLOT = """\
SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')
"""
_DROP_SLOT = """\
SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
WHERE slot_name = %s AND database = current_database()
"""
_PRIMARY = """\
SELECT a.attname FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = to_regclass(%s) AND i.indisprimary
ORDER BY array_position(i.indkey, a.attnum)
"""


def _quoted(connection: SlotConnection, table: TableName) -> str:
    return sql.Identifier(*table).as_string(connection)


def _row(connection: SlotConnection, query: LiteralString, *given: object) -> Any:
    return connection.execute(query, given or None).fetchone()
