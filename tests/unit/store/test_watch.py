from __future__ import annotations

import time

import psycopg
import pytest

from penstock.store.postgres import PostgresStore
from penstock.store.watch import DocumentWatch

pytestmark = pytest.mark.slow

WAIT_S = 30.0


def test_documents_written_since_it_began_are_counted(postgres_database: str) -> None:
    with (
        PostgresStore(postgres_database) as store,
        DocumentWatch(postgres_database) as watch,
    ):
        assert watch.look() == 0

        store.upsert("tweets", [("a", 1, b"{}"), ("b", 1, b"{}")])
        store.upsert("tweets", [("a", 2, b"{}")])
        store.close()  # PostgreSQL tells its counts when a session ends
        deadline = time.monotonic() + WAIT_S
        while watch.look() < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)

        assert watch.look() == 3
        assert watch.errors == 0


def test_what_is_copied_first_is_not_counted(postgres_database: str) -> None:
    with (
        psycopg.connect(postgres_database, autocommit=True) as connection,
        DocumentWatch(postgres_database) as watch,
    ):
        watch.look()
        for statement in (
            "CREATE TEMPORARY TABLE incoming AS SELECT generate_series(1, 50)",
            "INSERT INTO incoming SELECT 1",
            "CREATE TABLE kept (n int)",
            "INSERT INTO kept VALUES (1), (2)",
            "SELECT pg_stat_force_next_flush()",
        ):
            connection.execute(statement)
        deadline = time.monotonic() + WAIT_S
        while not watch.look():
            assert time.monotonic() < deadline
            time.sleep(0.01)

        assert watch.look() == 2


def test_server_that_begins_at_zero_again_is_counted_on() -> None:
    watch = DocumentWatch("postgresql://127.0.0.1:1/db")

    for total in (100, 110, 4, 5):
        watch._count(total)

    assert watch._written == 15


def test_nobody_there_is_an_error_that_is_counted() -> None:
    with DocumentWatch("postgresql://127.0.0.1:1/db") as watch:
        assert watch.look() == 0
        assert watch.look() == 0

    assert watch.errors == 2
