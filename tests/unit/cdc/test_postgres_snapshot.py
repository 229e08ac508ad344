"""Against a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import psycopg
import pytest

from penstock.cdc import postgres_snapshot as module
from penstock.cdc.change import Change
from penstock.cdc.postgres import PostgresCapture
from penstock.cdc.postgres_snapshot import PostgresSnapshot
from penstock.cdc.slot import drop
from penstock.errors import CaptureLost, StoreRefused, StoreUnreachable

TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, doc jsonb, paid bool);
CREATE TABLE pairs (a int, b text, twice int GENERATED ALWAYS AS (a * 2) STORED,
                    PRIMARY KEY (b, a));
INSERT INTO orders SELECT n, '{"n": 1}', n % 2 = 0 FROM generate_series(1, 120) n;
INSERT INTO pairs VALUES (1, 'ü"'), (2, 'Z'), (2, 'a');
"""
Connection = psycopg.Connection[Any]
Told = tuple[str, str, str | None, Any]


@pytest.fixture
def database(postgres_database: str) -> Iterator[Connection]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(TABLES)
        yield connection


@pytest.fixture
def made(database: Connection, postgres_database: str) -> Iterator[PostgresSnapshot]:
    found = snapshot(postgres_database)
    yield found
    found.close()


def snapshot(url: str) -> PostgresSnapshot:
    return PostgresSnapshot(url, "shop", ["orders", "pairs"])


def told(changes: list[Change]) -> list[Told]:
    return [
        (
            one.body.source.collection,
            one.body.op,
            one.body.key,
            msgspec.json.decode(one.body.after),
        )
        for one in changes
    ]


def rest(one: PostgresSnapshot) -> list[Change]:
    found = []
    while not one.is_done:
        found += one.take(1000, 5.0)
    return found


def following(url: str, place: str, count: int) -> list[Change]:
    """So many changes behind a snapshot; there are no more."""
    capture = PostgresCapture(url, "shop", ["orders", "pairs"])
    capture.begin(place)
    found: list[Change] = []
    while len(found) < count:
        some = capture.take(1000, 20.0)
        assert some, f"{len(found)} of {count} came"
        found += some
    assert capture.take(1, 0.5) == []
    capture.close()
    return found


def test_every_row_is_told_once(made: PostgresSnapshot) -> None:
    made.begin("", "")

    found = rest(made)

    rows = told(found)
    orders, pairs = rows[:120], rows[120:]
    assert {key for _, _, key, _ in orders} == {str(n) for n in range(1, 121)}
    assert ("orders", "read", "7", {"id": 7, "doc": {"n": 1}, "paid": False}) in orders
    assert pairs == [
        ("pairs", "read", '["Z","2"]', {"a": 2, "b": "Z"}),
        ("pairs", "read", '["a","2"]', {"a": 2, "b": "a"}),
        ("pairs", "read", '["ü\\"","1"]', {"a": 1, "b": 'ü"'}),
    ]
    assert len({one.id for one in found}) == 123
    assert found[0].body.source.at_ms is None


def test_changes_follow_the_rows_with_no_gap_and_none_twice(
    made: PostgresSnapshot, database: Connection, postgres_database: str
) -> None:
    database.execute("UPDATE orders SET paid = NULL WHERE id = 1")
    made.begin("", "")
    database.execute("UPDATE orders SET paid = true WHERE id = 1")
    database.execute("DELETE FROM pairs WHERE b = 'Z'")
    database.execute("INSERT INTO orders VALUES (999)")

    found = told(rest(made))

    assert ("orders", "read", "1", {"id": 1, "doc": {"n": 1}, "paid": None}) in found
    assert len(found) == 123
    changes = told(following(postgres_database, made.place(), 3))
    assert [(one[0], one[1], one[2]) for one in changes] == [
        ("orders", "update", "1"),
        ("pairs", "delete", '["Z","2"]'),
        ("orders", "insert", "999"),
    ]


def test_one_that_was_cut_off_goes_on(
    made: PostgresSnapshot,
    database: Connection,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows up to the frontier have been told; their changes come, those of others not.

    Keys are in the order of their texts: 1, 10, 100, 101 and so on.
    """
    monkeypatch.setattr(module, "FIRST_ROWS", 10)
    made.begin("", "")
    first = told(made.take(1000, 1.0))
    assert [key for _, _, key, _ in first][-1] == "107"
    place, frontier = made.place(), made.frontier()
    made.close()
    database.execute("UPDATE orders SET paid = NULL WHERE id IN (1, 99)")
    database.execute("DELETE FROM orders WHERE id IN (10, 98)")
    database.execute("UPDATE orders SET id = 970 WHERE id = 100")
    database.execute("INSERT INTO orders VALUES (1001), (990)")
    database.execute("UPDATE pairs SET b = 'X' WHERE b = 'Z'")

    again = snapshot(postgres_database)
    again.begin(place, frontier)
    database.execute("UPDATE orders SET paid = true WHERE id IN (1, 99)")
    second = told(rest(again))
    third = told(following(postgres_database, again.place(), 2))
    again.close()

    changes = [one for one in second if one[1] != "read"]
    assert [(op, key) for _, op, key, _ in changes] == [
        *(("update", "1"), ("delete", "10"), ("delete", "100"), ("insert", "1001")),
    ]
    reads = [key for _, op, key, _ in second if op == "read"]
    assert second[: len(changes)] == changes
    assert {"970", "990", "99", '["X","2"]'} <= set(reads)
    assert not {"98", '["Z","2"]', "1", "1001"} & set(reads)
    assert sorted((op, key) for _, op, key, _ in third) == [
        ("update", "1"),
        ("update", "99"),
    ]
    state = state_of(first + second + third)
    assert state == rows_of(database)


def test_a_table_that_is_truncated_between_two_parts_of_it(
    made: PostgresSnapshot,
    database: Connection,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FIRST_ROWS", 10)
    made.begin("", "")
    first = told(made.take(1000, 1.0))
    place, frontier = made.place(), made.frontier()
    made.close()
    database.execute("TRUNCATE orders, pairs")
    database.execute("INSERT INTO orders VALUES (1), (5)")

    again = snapshot(postgres_database)
    again.begin(place, frontier)
    second = told(rest(again))
    again.close()

    assert [(name, op, key) for name, op, key, _ in second] == [
        ("orders", "truncate", None),
        ("orders", "insert", "1"),
        ("orders", "read", "5"),
    ]
    assert state_of(first + second) == rows_of(database)


def test_one_that_made_its_slot_and_no_more_begins_anew(
    made: PostgresSnapshot, database: Connection, postgres_database: str
) -> None:
    made.begin("", "")
    made.close()
    database.execute("DELETE FROM orders WHERE id > 1")

    again = snapshot(postgres_database)
    again.begin("", "")
    found = told(rest(again))
    again.close()

    assert [key for name, _, key, _ in found if name == "orders"] == ["1"]
    assert all(op == "read" for _, op, _, _ in found)


def test_a_slot_that_is_gone_is_not_made_again(
    made: PostgresSnapshot, postgres_database: str
) -> None:
    made.begin("", "")
    made.take(1000, 1.0)
    place, frontier = made.place(), made.frontier()
    made.close()
    drop(postgres_database, "shop")

    with pytest.raises(CaptureLost, match="penstock_shop"):
        made.begin(place, frontier)


def test_a_table_without_a_key_cannot_be_read(
    database: Connection, postgres_database: str
) -> None:
    database.execute("CREATE TABLE keyless (x int)")
    database.execute("ALTER TABLE keyless REPLICA IDENTITY FULL")

    with pytest.raises(StoreRefused, match="keyless has no primary key"):
        PostgresSnapshot(postgres_database, "shop", ["keyless"]).begin("", "")


def test_a_connection_that_is_lost_is_no_end(
    made: PostgresSnapshot, database: Connection
) -> None:
    made.begin("", "")
    database.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE application_name = 'penstock cdc' AND datname = current_database()"
    )

    with pytest.raises(StoreUnreachable):
        made.take(1000, 1.0)

    made.begin("", "")
    assert len(rest(made)) == 123


def test_large_rows_are_read_in_smaller_numbers(
    made: PostgresSnapshot, database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAKE_BYTES", 50_000)
    database.execute("UPDATE orders SET doc = to_json(repeat('x', 20000))")
    made.begin("", "")
    made.take(1000, 1.0)

    assert len(made.take(1000, 1.0)) <= 3


def state_of(found: list[Told]) -> dict[tuple[str, str], Any]:
    """What somebody has who believes the events; none makes no sense."""
    state: dict[tuple[str, str], Any] = {}
    for name, op, key, after in found:
        if key is None:
            state = {place: one for place, one in state.items() if place[0] != name}
            continue
        there = (name, key) in state
        assert there is (op in ("update", "delete")), (name, op, key)
        state[name, key] = after
        if after is None:
            del state[name, key]
    return state


def rows_of(database: Connection) -> dict[tuple[str, str], Any]:
    orders = database.execute("SELECT id, doc, paid FROM orders").fetchall()
    pairs = database.execute("SELECT a, b FROM pairs").fetchall()
    return {
        **{
            ("orders", str(id_)): {"id": id_, "doc": doc, "paid": paid}
            for id_, doc, paid in orders
        },
        **{
            ("pairs", msgspec.json.encode([b, str(a)]).decode()): {"a": a, "b": b}
            for a, b in pairs
        },
    }
