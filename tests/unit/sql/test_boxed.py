"""What a question may do in its process, and how far its answer goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidQuery
from penstock.log import Columns, Log
from penstock.sql.boxed import FUNCTIONS, Box, encoded, functions_in
from penstock.sql.question import ANSWERED, PROGRAM, REFUSED, SqlQuestion, SqlRefusal
from penstock.sql.scanning import TopicTable

NEW_YEAR = 1_767_225_600_000
MIB = 1 << 20
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("boxed") / "data"
    with Log.open(directory) as log:
        for name in ("orders", "secret", "typed"):
            log.create_topic(name)
        log.append("orders", Columns([b'{"n":%d}' % n for n in range(50)], NEW_YEAR))
        log.append("secret", Columns([b"nobody's business"], NEW_YEAR))
        log.append("typed", Columns([b'{"n":1}', b"none", b'{"n":"x"}'], NEW_YEAR))
        log.sync()
    (directory.parent / "prices.csv").write_text("item,price\ntea,4\n")
    return directory


def question(data: Path, query: str, **more: Any) -> SqlQuestion:
    fields: dict[str, Any] = {
        "topics": ["orders", "typed"],
        "schemas": {"typed": json.dumps(SCHEMA)},
        "seconds": 60.0,
        "memory_bytes": 256 * MIB,
        "rows": 100,
        "answer_bytes": MIB,
    }
    return SqlQuestion(data=str(data), query=query, **{**fields, **more})


def answered(data: Path, query: str, **more: Any) -> Any:
    """Answered in this process, which is not confined."""
    asked = question(data, query, **more)
    with Box(asked) as box:
        return json.loads(encoded(asked, box.answer(query)))


def carried_out(asked: SqlQuestion) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", "-m", PROGRAM],
        input=msgspec.json.encode(asked),
        capture_output=True,
        env={
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "ARROW_DEFAULT_MEMORY_POOL": "system",
        },
    )


def refused(data: Path, query: str, **more: Any) -> str:
    with pytest.raises(InvalidQuery) as caught:
        answered(data, query, **more)
    return str(caught.value)


def test_an_answer_has_columns_with_types_and_rows(data: Path) -> None:
    found = answered(
        data, "SELECT offset, value, NULL AS nil, [1] AS l FROM orders LIMIT 2"
    )

    assert found == {
        "columns": [
            {"name": "offset", "type": "BIGINT"},
            {"name": "value", "type": "VARCHAR"},
            {"name": "nil", "type": "NULL"},
            {"name": "l", "type": "INTEGER[]"},
        ],
        "rows": [[0, '{"n":0}', None, [1]], [1, '{"n":1}', None, [1]]],
        "cut": None,
        "notes": [],
    }


def test_payloads_that_do_not_fit_their_schema_are_told_of(data: Path) -> None:
    found = answered(data, "SELECT n FROM typed ORDER BY offset")

    assert found["rows"] == [[1], [None], [None]]
    (note,) = found["notes"]
    assert note.startswith("2 payloads of typed do not fit its schema")


@pytest.mark.parametrize(
    "query",
    [
        "SHOW TABLES",
        "DESCRIBE orders",
        "SUMMARIZE orders",
        "FROM orders",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SELECT * FROM orders WHERE offset > 3 LIMIT 1 OFFSET 2",
        "SELECT unnest([1, 2]) UNION ALL SELECT * FROM range(3)",
        "SELECT key FROM json_each('{\"a\": 1}')",
    ],
)
def test_whatever_only_reads_topics_is_answered(data: Path, query: str) -> None:
    assert answered(data, query)["rows"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE t AS SELECT 1",
        "INSERT INTO orders VALUES (1)",
        "COPY orders TO 'x.csv'",
        "ATTACH 'x.db'",
        "PRAGMA version",
        "SET threads = 8",
        "SET lock_configuration = false",
        "INSTALL httpfs",
        "LOAD json",
        "CALL pragma_version()",
        "EXPORT DATABASE 'x'",
        "EXPLAIN ANALYZE SELECT 1",
    ],
)
def test_anything_but_a_question_is_refused(data: Path, query: str) -> None:
    assert "only SELECT" in refused(data, query)


def test_one_question_is_asked_at_a_time(data: Path) -> None:
    assert refused(data, "SELECT 1; COPY orders TO 'x'").startswith("2 statements")
    assert refused(data, "-- nothing") == "nothing is asked"


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "read_text('/etc/hostname')",
        "read_csv('{folder}/prices.csv')",
        "read_parquet('x.parquet')",
        "read_blob('{folder}/*')",
        "glob('/*')",
        "query('SELECT 1')",
        "query_table('orders')",
        "json_execute_serialized_sql('{{}}')",
        "arrow_scan(1, 2, 3)",
        "pandas_scan(1)",
        "duckdb_settings()",
        "histogram('orders', 'offset')",
        "main.query('SELECT 1')",
        "(DESCRIBE SELECT * FROM QUERY('SELECT 1'))",
        "orders WHERE offset IN (SELECT 1 FROM glob('/*'))",
    ],
)
def test_functions_that_reach_further_are_refused(data: Path, source: str) -> None:
    text = refused(data, f"SELECT * FROM {source}".format(folder=data.parent))

    assert "cannot be used here" in text


@pytest.mark.parametrize("name", ["prices.csv", "nothing.parquet"])
def test_no_file_is_a_table_whether_it_is_there_or_not(data: Path, name: str) -> None:
    text = refused(data, f"SELECT * FROM '{data.parent / name}'")

    assert text == "files are not read here, only topics"


def test_a_topic_that_was_not_told_of_does_not_exist(data: Path) -> None:
    there = refused(data, "SELECT * FROM secret")
    nowhere = refused(data, "SELECT * FROM zzz")

    assert there == "there is no topic secret"
    assert there.replace("secret", "zzz") == nowhere
    assert "secret" not in json.dumps(
        answered(data, "SELECT * FROM information_schema.tables")
    )


def test_no_error_names_a_file_of_the_server(data: Path) -> None:
    def gone(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", f"{data}/topics/7")

    asked = question(data, "SELECT value FROM orders")
    with Box(asked) as box, pytest.MonkeyPatch.context() as patch:
        # Not by the name of its module: other tests load that anew.
        patch.setitem(TopicTable.read.__globals__, "open_place", gone)
        with pytest.raises(InvalidQuery) as caught:
            encoded(asked, box.answer(asked.query))

    assert str(caught.value) == "a file of the topics could not be read"


def test_no_variable_of_the_process_is_a_table(data: Path) -> None:
    frame = {"a": [1]}  # found by replacement scans, if there were any

    assert refused(data, "SELECT * FROM frame") == "there is no topic frame"
    assert frame


def test_what_cannot_be_taken_apart_has_a_function_that_is_not_allowed() -> None:
    for tree in (None, {}, {"error": True}):
        assert not FUNCTIONS.issuperset(functions_in(tree))


def test_rows_end_at_their_limit_and_say_so(data: Path) -> None:
    whole = answered(data, "SELECT offset FROM orders", rows=50)
    part = answered(data, "SELECT offset FROM orders ORDER BY offset", rows=49)

    assert (len(whole["rows"]), whole["cut"]) == (50, None)
    assert (len(part["rows"]), part["cut"]) == (49, "rows")
    assert part["rows"][-1] == [48]


def test_bytes_end_at_their_limit_and_say_so(data: Path) -> None:
    query = "SELECT repeat('x', 1000) FROM orders"

    found = answered(data, query, answer_bytes=5_000)

    assert found["cut"] == "bytes"
    assert 0 < len(found["rows"]) <= 5


def test_a_row_that_is_longer_than_an_answer_is_refused_with_its_size(
    data: Path,
) -> None:
    text = refused(data, "SELECT repeat('x', 9000)", answer_bytes=5_000)

    assert text.startswith("the first row of the answer has 90")
    assert text.endswith("http.sql_answer_bytes is 5000")


def test_a_heading_that_is_longer_than_an_answer_is_refused(data: Path) -> None:
    columns = ", ".join(f"1 AS c{n}" for n in range(100))

    text = refused(data, f"SELECT {columns}", answer_bytes=1_024)

    assert text.startswith("the heading of the answer has")


@pytest.mark.slow
def test_a_process_answers_and_refuses(data: Path) -> None:
    good = carried_out(question(data, "SELECT count(*) FROM orders"))
    bad = carried_out(question(data, "SELECT * FROM secret"))

    assert good.returncode == ANSWERED
    assert json.loads(good.stdout)["rows"] == [[50]]
    assert bad.returncode == REFUSED
    assert msgspec.json.decode(bad.stdout, type=SqlRefusal).error == "InvalidQuery"
    assert good.stderr == bad.stderr == b""


def test_a_time_that_no_calendar_holds_is_answered(data: Path) -> None:
    found = answered(data, "SELECT to_timestamp(1700000000000), ['infinity'::date]")

    assert found["rows"] == [["55840-11-08T22:13:20.000Z", ["infinity"]]]


@pytest.mark.slow
def test_what_goes_wrong_behind_the_first_rows_is_refused(data: Path) -> None:
    late = "SELECT if(range = 100000, error('oh no'), 0) FROM range(200000)"

    found = carried_out(question(data, late, rows=1_000_000))

    assert found.returncode == REFUSED, found
    refusal = msgspec.json.decode(found.stdout, type=SqlRefusal)
    assert (refusal.error, refusal.arguments[0]) == ("InvalidQuery", "oh no")


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM range(1000000000) ORDER BY hash(range)",
        "SELECT repeat('x', 3000000000)",
        pytest.param(
            "SELECT string_agg(n::VARCHAR, repeat('x', 999)) FROM range(10000000) t(n)",
            marks=pytest.mark.deep,
        ),
        pytest.param(
            "SELECT list(value) FROM orders, range(100000000)", marks=pytest.mark.deep
        ),
    ],
)
def test_memory_has_a_limit_that_holds(data: Path, query: str) -> None:
    found = carried_out(question(data, query, memory_bytes=64 * MIB))

    assert found.returncode == REFUSED, found
    refusal = msgspec.json.decode(found.stdout, type=SqlRefusal)
    assert refusal.error == "TooMuchAsked"
    assert refusal.arguments[1:] == [64 * MIB, "http.sql_memory_bytes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "endless",
    ["SELECT count(*) FROM range(1000000000000000)", "SELECT pg_sleep(1000)"],
    ids=["at work", "at rest"],
)
def test_a_process_ends_by_itself_when_nobody_ends_it(data: Path, endless: str) -> None:
    found = carried_out(question(data, endless, seconds=0.1))

    assert found.returncode in (-signal.SIGALRM, -signal.SIGXCPU)


@pytest.mark.slow
def test_no_file_can_be_written_from_inside(data: Path, tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, msgspec\n"
        "from penstock.sql.boxed import confine\n"
        "from penstock.sql.question import SqlQuestion\n"
        "confine(msgspec.json.decode(sys.stdin.buffer.read(), type=SqlQuestion))\n"
        "pathlib.Path(sys.argv[1]).write_text('x')\n"
    )

    found = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "file")],
        input=msgspec.json.encode(question(data, "SELECT 1")),
        capture_output=True,
    )

    assert b"File too large" in found.stderr
    assert (tmp_path / "file").read_bytes() == b""
