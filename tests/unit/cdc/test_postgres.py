"""Against a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import psycopg
import pytest

from penstock.cdc.change import Change
from penstock.cdc.postgres import PostgresCapture
from penstock.cdc.slot import drop
from penstock.errors import CaptureLost, StoreRefused, StoreUnreachable

TABLES = """
CREATE TABLE orders
  (id int PRIMARY KEY, doc jsonb, price numeric, paid bool, note text);
ALTER TABLE orders REPLICA IDENTITY FULL;
CREATE TABLE pairs (a int, b text, c text, PRIMARY KEY (b, a));
CREATE TABLE keyless (x double precision);
ALTER TABLE keyless REPLICA IDENTITY FULL;
"""

CONFIRMED = """
SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE database = current_database()
"""


@pytest.fixture
def database(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(TABLES)
        yield connection


@pytest.fixture
def capture(
    database: psycopg.Connection[Any], postgres_database: str
) -> Iterator[PostgresCapture]:
    made = PostgresCapture(postgres_database, "shop", ["orders", "pairs", "keyless"])
    yield made
    made.close()


def taken(capture: PostgresCapture, count: int) -> list[dict[str, Any]]:
    """So many changes, as what their events hold."""
    found: list[Change] = []
    while len(found) < count:
        some = capture.take(count - len(found), 20.0)
        assert some, f"{len(found)} of {count} came"
        found += some
    return [
        {**msgspec.json.decode(msgspec.json.encode(one.body)), "id": one.id}
        for one in found
    ]


def test_every_operation_is_told(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    database.execute(
        """INSERT INTO orders VALUES (1, '{"a": [1]}', 1.50, true, 'ü "x"')"""
    )
    database.execute("UPDATE orders SET paid = false, note = NULL WHERE id = 1")
    database.execute("DELETE FROM orders WHERE id = 1")
    database.execute("TRUNCATE orders")

    insert, update, delete, truncate = taken(capture, 4)

    first = {"id": 1, "doc": {"a": [1]}, "price": 1.5, "paid": True, "note": 'ü "x"'}
    second = {**first, "paid": False, "note": None}
    assert (insert["op"], insert["before"], insert["after"]) == ("insert", None, first)
    assert (update["op"], update["before"], update["after"]) == (
        *("update", first, second),
    )
    assert (delete["op"], delete["before"], delete["after"]) == ("delete", second, None)
    assert (truncate["op"], truncate["key"]) == ("truncate", None)
    assert [one["key"] for one in (insert, update, delete)] == ["1"] * 3
    assert insert["source"]["system"] == "postgresql"
    assert insert["source"]["collection"] == "orders"
    assert len({one["id"] for one in (insert, update, delete, truncate)}) == 4


def test_keys_of_several_columns_and_of_none(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    database.execute("INSERT INTO pairs VALUES (1, 'x', 'y')")
    database.execute("UPDATE pairs SET c = 'z'")
    database.execute("DELETE FROM pairs")
    database.execute("INSERT INTO keyless VALUES ('NaN')")

    *pairs, keyless = taken(capture, 4)

    assert [one["key"] for one in pairs] == ['["x","1"]'] * 3
    assert [one["before"] for one in pairs] == [None] * 3
    assert (keyless["key"], keyless["after"]) == (None, {"x": "NaN"})


def test_what_is_large_and_did_not_change_is_there(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    large = "".join(chr(65 + (i * 7919) % 57) for i in range(40_000))
    capture.begin("")
    database.execute("ALTER TABLE orders ALTER note SET STORAGE EXTERNAL")
    database.execute("INSERT INTO orders (id, note) VALUES (1, %s)", [large])
    database.execute("UPDATE orders SET paid = true")

    _, update = taken(capture, 2)

    assert update["after"]["note"] == large


def test_a_column_may_be_the_document(
    database: psycopg.Connection[Any], postgres_database: str
) -> None:
    made = PostgresCapture(postgres_database, "docs", ["orders"], document="doc")
    made.begin("")
    database.execute(
        """INSERT INTO orders (id, doc) VALUES (1, '{"b": 1}'), (2, NULL)"""
    )

    one, two = taken(made, 2)

    assert (one["after"], two["after"]) == ({"b": 1}, None)
    made.close()


def test_a_capture_goes_on_behind_its_place(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    database.execute("INSERT INTO keyless SELECT generate_series(1, 10)")
    database.execute("INSERT INTO keyless VALUES (11)")
    whole = taken(capture, 11)
    ids = [one["id"] for one in whole]

    for stop in (3, 10, 11):
        capture.begin("")  # nothing was said to be stored: all of it comes again
        first = taken(capture, stop)
        place = capture.place()
        capture.begin(place)
        rest = taken(capture, 11 - stop) if stop < 11 else []

        assert [one["id"] for one in first + rest] == ids
    database.execute("INSERT INTO keyless VALUES (12)")
    assert taken(capture, 1)[0]["after"] == {"x": 12}


def test_what_was_stored_may_be_forgotten(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    database.execute("INSERT INTO keyless VALUES (1)")
    taken(capture, 1)
    capture.stored()
    before = database.execute(CONFIRMED).fetchone()

    for _ in range(40):
        assert capture.take(1, 0.5) == []
        capture.stored()
        if database.execute(CONFIRMED).fetchone() != before and capture.lag == 0:
            break

    assert database.execute(CONFIRMED).fetchone() != before
    assert capture.lag == 0


def test_nothing_is_forgotten_that_is_not_stored(
    capture: PostgresCapture,
    database: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.cdc.postgres.STATUS_S", 0.0)
    capture.begin("")
    start = capture.place()
    confirmed = database.execute(CONFIRMED).fetchone()
    database.execute("INSERT INTO keyless VALUES (1)")
    taken(capture, 1)
    for _ in range(5):
        assert capture.take(1, 0.05) == []

    assert database.execute(CONFIRMED).fetchone() == confirmed
    capture.begin(start)
    assert len(taken(capture, 1)) == 1


def test_what_other_tables_do_is_passed(
    capture: PostgresCapture,
    database: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.cdc.postgres.STATUS_S", 0.0)
    capture.begin("")
    start, confirmed = capture.place(), database.execute(CONFIRMED).fetchone()
    database.execute("CREATE TABLE other AS SELECT generate_series(1, 1000)")

    for _ in range(100):
        assert capture.take(1, 0.05) == []
        capture.stored()
        if database.execute(CONFIRMED).fetchone() != confirmed:
            break

    assert database.execute(CONFIRMED).fetchone() != confirmed
    assert capture.place() != start


def test_a_place_is_kept_while_a_transaction_comes_again(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    start = capture.place()
    database.execute("INSERT INTO keyless SELECT generate_series(1, 1000)")
    taken(capture, 700)
    place = capture.place()
    capture.begin(place)

    assert capture.place() == place != start
    assert capture.take(0, 0.0) == []
    assert capture.place() == place
    rest = taken(capture, 300)
    assert [one["after"]["x"] for one in rest] == list(range(701, 1001))


def test_large_documents_are_taken_in_smaller_numbers(
    capture: PostgresCapture,
    database: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.cdc.postgres.TAKE_BYTES", 50_000)
    capture.begin("")
    database.execute(
        "INSERT INTO orders (id, note) SELECT n, repeat('x', 20000)"
        " FROM generate_series(1, 10) n"
    )

    assert len(capture.take(1000, 20.0)) <= 3
    assert len(taken(capture, 7)) == 7


def test_a_row_with_another_key_is_another_row(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    for table, values in (("orders (id)", "(1)"), ("pairs", "(1, 'x', 'y')")):
        database.execute(f"INSERT INTO {table} VALUES {values}")
    database.execute("UPDATE orders SET id = 2")
    database.execute("UPDATE pairs SET a = 2")

    *_, old, new, old_pair, new_pair = taken(capture, 6)

    assert [(one["op"], one["key"]) for one in (old, new, old_pair, new_pair)] == [
        ("delete", "1"),
        ("insert", "2"),
        ("delete", '["x","1"]'),
        ("insert", '["x","2"]'),
    ]
    assert (old["before"]["id"], new["after"]["id"]) == (1, 2)
    assert len({one["id"] for one in (old, new, old_pair, new_pair)}) == 4
    place = capture.place()
    capture.begin(place)
    assert capture.take(1, 0.3) == []


def test_tables_may_be_altered_in_between(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    database.execute("INSERT INTO orders (id) VALUES (1)")
    database.execute("ALTER TABLE orders RENAME id TO number")
    database.execute("ALTER TABLE orders DROP note, ADD added bool DEFAULT true")
    database.execute("INSERT INTO orders (number) VALUES (2)")
    database.execute("UPDATE orders SET paid = true WHERE number = 1")

    first, second, third = taken(capture, 3)

    assert (first["key"], first["after"]["id"], "note" in first["after"]) == (
        *("1", 1, True),
    )
    assert (second["key"], second["after"]["number"]) == ("2", 2)
    assert (third["key"], third["after"]["added"]) == ("1", True)


def test_several_tables_may_be_truncated_at_once(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    database.execute("TRUNCATE orders, pairs")

    found = taken(capture, 2)

    assert {(one["op"], one["source"]["collection"]) for one in found} == {
        ("truncate", "orders"),
        ("truncate", "pairs"),
    }
    assert len({one["id"] for one in found}) == 2


def test_a_predecessor_that_still_has_the_slot_is_waited_for(
    capture: PostgresCapture, database: psycopg.Connection[Any], postgres_database: str
) -> None:
    capture.begin("")
    other = PostgresCapture(postgres_database, "shop", ["orders", "pairs", "keyless"])

    with pytest.raises(StoreUnreachable, match="is active for PID"):
        other.begin(capture.place())
    capture.close()

    for _ in range(100):
        try:
            other.begin("")
            break
        except StoreUnreachable:
            database.execute("SELECT pg_sleep(0.05)")
    database.execute("INSERT INTO keyless VALUES (1)")
    assert len(taken(other, 1)) == 1
    other.close()


def test_one_may_begin_anew(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    place = capture.place()
    database.execute("INSERT INTO keyless VALUES (1)")
    for _ in range(100):
        try:
            capture.forget()
            break
        except StoreUnreachable:  # PostgreSQL has not noticed yet that it is closed
            database.execute("SELECT pg_sleep(0.05)")
    capture.begin("")
    database.execute("INSERT INTO keyless VALUES (2)")

    [found] = taken(capture, 1)

    assert found["after"] == {"x": 2}
    with pytest.raises(CaptureLost, match="was moved"):
        capture.begin(place)


def test_a_lost_connection_is_begun_again(
    capture: PostgresCapture, database: psycopg.Connection[Any]
) -> None:
    capture.begin("")
    place = capture.place()
    database.execute(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
        " WHERE database = current_database()"
    )
    with pytest.raises(StoreUnreachable):
        for _ in range(100):
            capture.take(1, 0.1)
    capture.begin(place)
    database.execute("INSERT INTO keyless VALUES (1)")

    assert len(taken(capture, 1)) == 1


def test_changes_that_nobody_keeps_any_more_are_an_error(
    capture: PostgresCapture, postgres_database: str
) -> None:
    capture.begin("")
    place = capture.place()
    capture.close()
    drop(postgres_database, "shop")

    with pytest.raises(CaptureLost, match="penstock_shop"):
        capture.begin(place)


def test_tables_may_be_other_ones_the_next_time(
    capture: PostgresCapture, database: psycopg.Connection[Any], postgres_database: str
) -> None:
    capture.begin("")
    place = capture.place()
    capture.close()
    other = PostgresCapture(postgres_database, "shop", ["pairs"])
    other.begin(place)
    database.execute("INSERT INTO keyless VALUES (1)")
    database.execute("INSERT INTO pairs VALUES (1, 'x', 'y')")

    [found] = taken(other, 1)

    assert found["source"]["collection"] == "pairs"
    other.close()


def test_a_table_that_is_not_there_is_an_error(postgres_database: str) -> None:
    with pytest.raises(StoreRefused, match="nowhere"):
        PostgresCapture(postgres_database, "shop", ["nowhere"]).begin("")


def test_a_name_that_cannot_be_a_slot_is_an_error(postgres_database: str) -> None:
    with pytest.raises(StoreRefused, match="slot"):
        PostgresCapture(postgres_database, "no way", ["t"])


def test_a_server_that_is_away_is_named_without_secrets() -> None:
    capture = PostgresCapture("postgresql://me:secret@127.0.0.1:1/db", "a", ["t"])

    with pytest.raises(StoreUnreachable) as raised:
        capture.begin("")

    assert "secret" not in str(raised.value)
    assert "127.0.0.1:1/db" in str(raised.value)
