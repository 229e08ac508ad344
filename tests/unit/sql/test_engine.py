"""Questions over the files of a data directory, held against plain Python."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import DataLost, InvalidQuery
from penstock.log import Columns, Log
from penstock.sql import scanning
from penstock.sql.engine import SqlEngine, named_in
from penstock.table.connection import BrokerAccess
from penstock.table.place import DataDirectory
from tests.effort import effort

# 2026-01-01T00:00:00Z.
NEW_YEAR = 1_767_225_600_000
EVENTS = 1_000
SCHEMA = {
    "type": "object",
    "properties": {"user": {"type": "string"}, "total": {"type": "integer"}},
}


class Topics:
    def __init__(self, names: Sequence[str], **schemas: Any) -> None:
        self._names = names
        self._schemas = schemas

    def names(self, query: str = "") -> Sequence[str]:
        return self._names

    def schema(self, topic: str) -> str | None:
        found = self._schemas.get(topic)
        return None if found is None else json.dumps(found)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sql") / "data"
    with Log.open(directory) as log:
        for name in ("orders", "orders.eu", "odd"):
            log.create_topic(name)
        for start in range(0, EVENTS, 100):
            numbers = range(start, start + 100)
            log.append("orders", columns(numbers))
            log.append("orders.eu", columns(numbers))
            log.commit()
        log.append("odd", Columns([b"\xff\x00", b'{"a": 1}', b"no"], NEW_YEAR))
        log.sync()
    return directory


def columns(numbers: range) -> Columns:
    return Columns(
        [b'{"user":"u%d","total":%d}' % (n % 3, n) for n in numbers],
        [NEW_YEAR + n * 1000 for n in numbers],
        ids=[f"o{n}" for n in numbers],
        keys=[None if n % 5 == 0 else b"k%d" % (n % 5) for n in numbers],
        priorities=[n % 4 for n in numbers],
        headers=[{"n": str(n)} for n in numbers],
    )


@pytest.fixture(scope="module")
def engine(data: Path) -> Iterator[SqlEngine]:
    known = Topics(["orders", "orders.eu", "odd", "Case", "case"], orders=SCHEMA)
    with SqlEngine(
        BrokerAccess(servers=(), path=str(data), retry_s=0), known
    ) as engine:
        yield engine


def asked(engine: SqlEngine, query: str) -> list[tuple[Any, ...]]:
    return list(engine.answer(query).rows())


def test_a_topic_has_the_columns_of_its_events_and_of_its_schema(
    engine: SqlEngine,
) -> None:
    plain = engine.answer('SELECT * FROM "orders.eu" WHERE offset = 7')
    typed = engine.answer("SELECT * FROM orders WHERE offset = 7")

    assert plain.columns[:4] == ["offset", "timestamp", "key", "value"]
    assert typed.columns[:4] == ["offset", "timestamp", "user", "total"]
    assert typed.columns[-2:] == ["key", "_corrupt"]
    assert "value" not in typed.columns


def test_values_are_those_of_the_events(engine: SqlEngine) -> None:
    what = "offset, epoch_ms(timestamp), key, value, priority, id, headers['n'], topic"

    found = asked(engine, f'SELECT {what} FROM "orders.eu" WHERE offset = 7')

    payload = '{"user":"u1","total":7}'
    assert found == [
        (7, NEW_YEAR + 7000, "k2", payload, 3, "o7", "7", "orders.eu"),
    ]


def test_fields_of_a_schema_are_columns(engine: SqlEngine) -> None:
    by_user = "SELECT user, sum(total)::BIGINT FROM orders GROUP BY user ORDER BY user"

    assert asked(engine, by_user) == [
        (f"u{n}", sum(range(n, EVENTS, 3))) for n in range(3)
    ]


def test_topics_are_joined_with_each_other_and_with_files(
    engine: SqlEngine, tmp_path: Path
) -> None:
    (tmp_path / "names.csv").write_text("user,name\nu0,Anna\nu1,Bert\n")
    names = tmp_path / "names.parquet"
    asked_for = f"SELECT * FROM '{tmp_path / 'names.csv'}'"
    engine.write_parquet(asked_for, str(names), None)

    found = asked(
        engine,
        "SELECT name, count(*), max(o.total) FROM orders o "
        'JOIN "orders.eu" e ON e.offset = o.offset '
        f"JOIN '{names}' USING (user) GROUP BY name ORDER BY name",
    )

    assert found == [("Anna", 334, 999), ("Bert", 333, 997)]


def test_one_query_sees_a_topic_as_it_is_at_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that comes between two scans is in neither."""
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        log.append("t", Columns([b"1"]))
        log.sync()
        read = DataDirectory.batches

        def late(place: DataDirectory, *args: Any, **more: Any) -> Any:
            log.append("t", Columns([b"2"]))
            log.sync()
            return read(place, *args, **more)

        monkeypatch.setattr(DataDirectory, "batches", late)
        connection = BrokerAccess(servers=(), path=str(tmp_path), retry_s=0)
        with SqlEngine(connection, Topics(["t"])) as engine:
            both = "SELECT (SELECT count(*) FROM t), (SELECT max(value) FROM t)"

            assert asked(engine, both) == [(1, "1")]
            assert asked(engine, "SELECT count(*) >= 3 FROM t") == [(True,)]


def test_frames_that_cannot_hold_what_is_asked_for_are_not_read(
    engine: SqlEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges: list[tuple[int, int]] = []
    read = DataDirectory.batches

    def noted(
        place: DataDirectory, topic: str, start: int, end: int, **more: Any
    ) -> Any:
        ranges.append((start, end))
        return read(place, topic, start, end, **more)

    monkeypatch.setattr(DataDirectory, "batches", noted)

    asked(engine, "SELECT count(*) FROM orders WHERE offset BETWEEN 500 AND 510")
    asked(engine, "SELECT * FROM orders WHERE timestamp >= '2026-01-01T00:15:00Z'")
    asked(engine, "SELECT * FROM orders WHERE offset > 5000")

    assert ranges[0] == (500, 511)
    assert ranges[1][0] >= 800, "where the index says that the time may begin"
    assert len(ranges) == 2


def test_only_columns_that_are_asked_for_are_made(
    engine: SqlEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []
    layout_of = scanning.TopicTable.layout

    def noted(table: scanning.TopicTable, names: Sequence[str]) -> Any:
        found = layout_of(table, names)
        made.append(found.kept)
        return found

    monkeypatch.setattr(scanning.TopicTable, "layout", noted)

    asked(engine, "SELECT count(*) FROM orders")
    asked(engine, "SELECT sum(priority) FROM orders WHERE key = 'k1'")

    assert {"payload"}.isdisjoint(name for kept in made for name in kept)
    assert {name for kept in made for name in kept} == {"offset", "priority", "key"}


def test_payloads_that_do_not_fit_are_told_of(data: Path) -> None:
    connection = BrokerAccess(servers=(), path=str(data), retry_s=0)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    with SqlEngine(connection, Topics(["odd"], odd=schema)) as engine:
        found = engine.answer("SELECT a, _corrupt FROM odd")

        assert list(found.rows()) == [(None, "\ufffd\0"), (1, None), (None, "no")]
        (note,) = found.notes()
        assert note.startswith("2 payloads of odd do not fit its schema: their fields ")


def test_bytes_that_are_no_text_are_shown_as_such(engine: SqlEngine) -> None:
    assert asked(engine, "SELECT upper(value) FROM odd WHERE offset <> 1") == [
        ("\ufffd\0",),
        ("NO",),
    ]


@pytest.mark.parametrize(
    ("query", "reason", "hint"),
    [
        ("FROM order_", "there is no topic order_", "did you mean orders, orders.eu?"),
        ("FROM nothing", "there is no topic nothing", "topics are orders, orders.eu"),
        ("SELECT nope FROM orders", 'Referenced column "nope" not found', ""),
        (" ; ", "nothing is asked", ""),
        ("SELEC 1", 'syntax error at or near "SELEC"', ""),
        ("SELECT value->'$.a' FROM odd", "a payload is no JSON", "WHERE json_valid"),
        ("FROM CASE, orders", "Case and case differ in case alone", ""),
        ("FROM 'none.parquet'", "No files found", ""),
    ],
)
def test_what_cannot_be_answered_is_said_in_a_line(
    engine: SqlEngine, query: str, reason: str, hint: str
) -> None:
    with pytest.raises(InvalidQuery) as caught:
        asked(engine, query)

    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert hint in caught.value.hint


def test_what_goes_wrong_behind_the_first_rows_is_said_in_a_line(
    engine: SqlEngine,
) -> None:
    query = "SELECT if(range = 100000, error('oh no'), 0) FROM range(200000)"

    with pytest.raises(InvalidQuery, match="^oh no$"):
        asked(engine, query)


def test_what_was_lost_meanwhile_is_said(
    engine: SqlEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> Any:
        raise DataLost("orders", "it was deleted")

    monkeypatch.setattr(DataDirectory, "batches", lost)

    with pytest.raises(DataLost, match="it was deleted"):
        asked(engine, "SELECT count(*) FROM orders")


def test_all_topics_are_listed_when_that_is_the_question(engine: SqlEngine) -> None:
    assert asked(engine, "SHOW TABLES") == [("odd",), ("orders",), ("orders.eu",)]


def test_tables_of_ones_own_can_be_made(engine: SqlEngine) -> None:
    asked(engine, "CREATE OR REPLACE TABLE mine AS SELECT 42 AS n")

    assert asked(engine, "SELECT n FROM mine") == [(42,)]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * FROM Orders", ["orders"]),
        ('FROM "Users"', ["Users"]),
        ("FROM a_b", ["a", "a_b"]),
        ("SELECT 1", []),
        ("SHOW TABLES", ["orders", "users", "a", "a_b"]),
        ("SELECT 'show' || $$ describe $$ -- show\n/* duckdb_ */", []),
    ],
)
def test_topics_are_found_by_their_names(query: str, names: list[str]) -> None:
    assert named_in(query, ["orders", "Users", "users", "a", "a_b"]) == names


@pytest.mark.parametrize(
    ("query", "statements"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1;", "SELECT 2;"]),
        ("SELECT ';' -- ;", ["SELECT ';' -- ;"]),
        ("SELECT offset FROM t; FROM t", ['SELECT "offset" FROM t;', "FROM t"]),
        ("SELEC 1; SELECT 2", ["SELEC 1; SELECT 2"]),
        (" ; ", [";"]),
    ],
)
def test_statements_are_told_apart(
    engine: SqlEngine, query: str, statements: list[str]
) -> None:
    assert [one.strip() for one in engine.statements(query)] == statements


moments = st.integers(-2, EVENTS + 2).map(
    lambda n: f"make_timestamptz({(NEW_YEAR + n * 1000) * 1000})"
)
numbers = st.integers(-2, EVENTS + 2).map(str)
signs = st.sampled_from(["<", "<=", "=", "<>", ">=", ">"])
plain = (
    st.tuples(st.just('"offset"'), signs, numbers)
    | st.tuples(st.just("timestamp"), signs, moments)
    | st.tuples(st.just("key"), signs, st.sampled_from(["'k1'", "'k3'"]))
    | st.tuples(st.just("priority"), signs, st.sampled_from(["1", "2"]))
    | st.tuples(st.just("key"), st.just("IS"), st.just("NULL"))
).map(" ".join)
conditions = st.recursive(
    plain,
    lambda some: (
        st.tuples(some, st.sampled_from(["AND", "OR"]), some).map(
            lambda parts: f"({' '.join(parts)})"
        )
        | some.map(lambda one: f"NOT ({one})")
    ),
    max_leaves=5,
)


@pytest.mark.slow
@given(condition=conditions)
@settings(max_examples=effort(40, 500))
def test_a_condition_finds_what_it_finds_in_a_table(
    engine: SqlEngine, condition: str
) -> None:
    """The same rows in a table of DuckDB's own, where nothing is left to us."""
    what = '"offset", timestamp, key, priority'
    asked(engine, f'CREATE TABLE IF NOT EXISTS own AS SELECT {what} FROM "orders.eu"')

    found = asked(engine, f'SELECT {what} FROM "orders.eu" WHERE {condition}')
    wanted = asked(engine, f"SELECT {what} FROM own WHERE {condition}")

    assert sorted(found, key=str) == sorted(wanted, key=str)
