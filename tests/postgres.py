"""A real PostgreSQL for tests, owned by Penstock; missing, it is a skipped component.

    def test_something(postgres_url: str) -> None: ...   # the server of this run
    def test_another(postgres_database: str) -> None: ...  # an empty database of it

``tests/conftest.py`` has the fixtures. A test that kills its server makes one of its
own with ``own_postgres``.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import MissingExtra
from penstock.store.own import OwnPostgres


@contextlib.contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A server over a temporary directory; skips if the wheel is not installed."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
    server = OwnPostgres(directory)
    try:
        server.start()
        yield server
    except MissingExtra as error:
        pytest.skip(f"component: PostgreSQL ({error.package} is not installed)")
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def database_of(url: str) -> Iterator[str]:
    """The URL of a fresh database; it is dropped at the end, whoever still uses it."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield in_database(url, name)
        finally:
            for (slot,) in connection.execute(
                "SELECT slot_name FROM pg_replication_slots WHERE database = %s",
                (name,),
            ).fetchall():
                connection.execute(_FREE_SLOT, (slot,))
                connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def in_database(url: str, name: str) -> str:
    """The same server, another database."""
    server, question, options = url.partition("?")
    return f"{server.rpartition('/')[0]}/{name}{question}{options}"


_FREE_SLOT = """\
SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots
WHERE slot_name = %s AND active_pid IS NOT NULL
"""
