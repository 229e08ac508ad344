"""What is PostgreSQL's alone; the contract is in tests/contract/test_store.py."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from penstock.errors import StoreRefused, StoreUnreachable
from penstock.store.postgres import PostgresStore
from tests.postgres import in_database

pytestmark = pytest.mark.slow


@pytest.fixture
def store(postgres_database: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres_database, retry_s=20) as opened:
        yield opened


@pytest.fixture
def other(postgres_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        yield connection


def test_changes_will_tell_the_whole_row_before(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    other.execute(
        "CREATE TABLE users (id text PRIMARY KEY, version bigint NOT NULL,"
        " doc jsonb NOT NULL)"
    )

    store.prepare(["tweets", "users"])

    found = other.execute(
        "SELECT relname, relreplident::text FROM pg_class"
        " WHERE relname IN ('tweets', 'users') ORDER BY 1"
    ).fetchall()
    assert found == [("tweets", "f"), ("users", "f")]


def test_preparing_again_waits_for_no_lock(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    store.prepare(["tweets"])

    with other.transaction():
        other.execute("LOCK TABLE tweets IN ROW EXCLUSIVE MODE")
        store.prepare(["tweets"])


def test_what_is_there_already_is_no_change_for_a_slot(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    store.prepare(["tweets"])
    other.execute("CREATE PUBLICATION p FOR TABLE tweets")
    other.execute("SELECT pg_create_logical_replication_slot('s_once', 'pgoutput')")

    for _ in range(3):
        store.upsert("tweets", [("a", 1, b"{}"), ("b", 1, b"{}")])

    kinds = other.execute(
        "SELECT chr(get_byte(data, 0)) FROM pg_logical_slot_get_binary_changes("
        "'s_once', NULL, NULL, 'proto_version', '1', 'publication_names', 'p')"
    ).fetchall()
    assert [kind for (kind,) in kinds if kind in "IUD"] == ["I", "I"]


def test_connection_that_was_cut_is_made_again(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    store.upsert("tweets", [("a", 1, b"{}")])
    other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    assert store.upsert("tweets", [("a", 2, b"{}")]) == 1
    assert store.count("tweets") == 1


def test_deadlock_is_tried_again(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    """Somebody else's transaction locks two rows the other way round."""
    store.upsert("tweets", [("a", 1, b"{}"), ("b", 1, b"{}")])
    other.execute("SET deadlock_timeout = '1h'")  # not the other one gives up
    import threading

    with other.transaction():
        other.execute("UPDATE tweets SET version = 1 WHERE id = 'b'")
        changed: list[int] = []
        writer = threading.Thread(
            target=lambda: changed.append(
                store.upsert("tweets", [("a", 2, b"{}"), ("b", 2, b"{}")])
            )
        )
        writer.start()
        other.execute("SELECT pg_sleep(0.01)")
        while not other.execute(
            "SELECT 1 FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"
        ).fetchone():
            assert writer.is_alive()
        other.execute("UPDATE tweets SET version = 1 WHERE id = 'a'")
    writer.join(60)

    assert changed == [2]
    assert {version for _, version, _ in store.read("tweets")} == {2}


def test_table_of_another_shape_is_refused(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    other.execute("CREATE TABLE tweets (id text PRIMARY KEY, other int)")

    with pytest.raises(StoreRefused, match='column "version"'):
        store.upsert("tweets", [("a", 1, b"{}")])

    assert store.collections() == []


def test_database_that_is_not_there_is_refused_at_once(postgres_url: str) -> None:
    with (
        PostgresStore(in_database(postgres_url, "nowhere"), retry_s=60) as store,
        pytest.raises(StoreRefused, match="does not exist"),
    ):
        store.count("tweets")


def test_wrong_password_is_refused_and_not_shown(postgres_url: str) -> None:
    server = postgres_url.partition("?")[0].replace("penstock@", "penstock:secret@")

    with (
        PostgresStore(server, retry_s=60) as store,
        pytest.raises(StoreRefused, match="authentication") as caught,
    ):
        store.count("tweets")

    assert "secret" not in str(caught.value)


def test_reading_from_a_server_that_is_away_is_waited_for() -> None:
    store = PostgresStore("postgresql://127.0.0.1:1/db", retry_s=0.1)

    with pytest.raises(StoreUnreachable):
        next(store.read("tweets"))
