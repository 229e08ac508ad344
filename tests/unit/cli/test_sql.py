from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner
from pyspark.sql import Row

from penstock.cli import connect, sql
from penstock.cli.main import cli
from penstock.client import connect as reach
from penstock.errors import InvalidQuery
from penstock.spark.sql import Topics
from tests.local_server import local_server
from tests.unit.cli.desk_run import DeskRun


def test_a_table_has_a_heading_and_numbers_flush_right() -> None:
    rows = [("a", 1, None), ("bcd", 200, True), (None, None, False)]

    assert sql.table(["name", "n", "flag"], rows) == [
        "name  n     flag",
        "a        1  NULL",
        "bcd    200  true",
        "NULL  NULL  false",
    ]


def test_a_table_without_rows_says_so() -> None:
    assert sql.table(["a", "b"], []) == ["a  b", "(no rows)"]


def test_long_cells_are_cut_and_stay_on_their_line() -> None:
    _, line = sql.table(["text"], [("x\n" * 100,)])

    assert len(line) == sql.CELL
    assert line.startswith("x\\nx\\n")
    assert line.endswith("…")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (b"bytes", "bytes"),
        (bytearray(b"\xff"), "0xff"),
        (True, "true"),
        (1.5, "1.5"),
        (Row(a=1, b=Row(c=[Row(d="x")])), '{"a":1,"b":{"c":[{"d":"x"}]}}'),
        ({"a": 1}, '{"a":1}'),
        ([datetime(2026, 1, 2, tzinfo=UTC)], '["2026-01-02T00:00:00Z"]'),
    ],
)
def test_values_are_text(value: object, text: str) -> None:
    assert sql.text(value) == text


def test_on_a_terminal_a_line_says_what_takes_so_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)

    with pytest.raises(InvalidQuery), sql.telling("starting Spark …"):
        before = capsys.readouterr()
        raise InvalidQuery("no")

    assert (before.out, before.err) == ("", "starting Spark …")
    assert capsys.readouterr().err == "\r\x1b[K"


@pytest.mark.parametrize("terminal", [True, False])
def test_csv_on_a_terminal_is_nothing_that_it_obeys(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    rows = [["\x1b[2Jgone", 'two\nlines "of it"']]
    spark = SimpleNamespace(rows=lambda frame: rows, shown=lambda frame: frame)
    monkeypatch.setitem(sys.modules, "penstock.spark.sql", spark)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)

    sql._print_csv(cast("Any", SimpleNamespace(columns=["a\x9b", "b"])), None)

    plain = 'a\x9b,b\n\x1b[2Jgone,"two\nlines ""of it"""\n'
    shown = plain.replace("\x9b", "\\x9b").replace("\x1b", "\\x1b")
    assert capsys.readouterr().out == (shown if terminal else plain)


def test_elsewhere_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with sql.telling("starting Spark …"):
        pass

    assert capsys.readouterr().err == ""


def test_one_form_of_output_is_enough(run: DeskRun) -> None:
    said = run.refused("sql", "SELECT 1", "--json", "--csv")

    assert said == "error: --json, --csv and --parquet exclude each other\n"


@pytest.mark.parametrize("name", ["", "there", "none/file"])
def test_a_file_that_cannot_be_made_is_refused_before_anything_runs(
    run: DeskRun,
    told: list[Topics],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()

    said = run.refused("sql", "SELECT 1", "--parquet", name)

    assert said.startswith(f"error: --parquet {name or repr(name)}: ")
    assert told == []


def test_without_the_extra_it_is_said_what_to_install(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.startswith("penstock.spark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)

    said = run.refused("sql", "SELECT 1")

    assert said.startswith("error: Spark needs pyspark, which is not installed: pip")
    assert "penstock[spark]" in said


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Topics]:
    """What a command tells Spark; it goes no further."""
    found: list[Topics] = []

    @contextmanager
    def opened() -> Iterator[None]:
        yield

    def answer(_: None, topics: Topics, query: str) -> None:
        found.append(topics)
        raise InvalidQuery("as far as it goes")

    spark_sql = SimpleNamespace(opened=opened, answer=answer)
    monkeypatch.setattr(sql, "_spark_sql", lambda: spark_sql)
    return found


def test_spark_is_told_of_all_topics_and_of_schemas_that_matter(
    run: DeskRun, told: list[Topics], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders", "users", "Visits"):
        run.ask("schemas.register", topic=name, schema={"type": "object"})
    run.ask("topics.create", name="plain")
    monkeypatch.setattr(sql, "MAX_ROWS", 2)

    said = run.refused("sql", "SELECT * FROM ORDERS JOIN visits")

    (topics,) = told
    assert said == "error: as far as it goes\n"
    assert topics.options == {"path": str(run.server.data)}
    assert topics.names == ["Visits", "orders", "plain", "users"]
    assert set(topics.schemas) == {"orders", "Visits"}


def test_spark_logs_in_as_the_command_does(
    tmp_path: Path, told: list[Topics], monkeypatch: pytest.MonkeyPatch
) -> None:
    with local_server(tmp_path / "data", {"anna": "secret"}) as server:
        monkeypatch.setattr(
            connect, "connect", lambda _, **options: reach(server.data, **options)
        )

        result = CliRunner().invoke(
            cli,
            ["sql", "SELECT 1", "--server", "host:1", "--user", "anna"],
            input="secret\n",
        )

    assert result.stderr.count("Password of anna") == 1
    assert [topics.options for topics in told] == [
        {"servers": "host:1", "user": "anna", "password": "secret"}
    ]
