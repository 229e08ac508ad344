from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import Row

from penstock.cli import connect, sql, sql_tables
from penstock.cli.main import cli
from penstock.client import connect as reach
from penstock.client import plan
from penstock.errors import InvalidQuery
from penstock.spark.sql import QueryTopics
from tests.local_server import local_server
from tests.unit.cli.desk_run import DeskRun


class Found:
    """An answer that is there already."""

    def __init__(self, columns: list[str], rows: list[list[Any]], *notes: str) -> None:
        self.columns = columns
        self._rows = rows
        self._notes = list(notes)

    def rows(self, most: int | None = None) -> Iterator[list[Any]]:
        yield from self._rows[:most]

    def notes(self) -> list[str]:
        return self._notes


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
        ([datetime(2026, 1, 2, tzinfo=UTC)], '["2026-01-02T00:00:00.000Z"]'),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00.000Z"),
        (Decimal("1.50"), "1.50"),
        (Decimal("1" + "0" * 30), "1" + "0" * 30),
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
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)

    sql.print_csv(Found(["a\x9b", "b"], rows), None)

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
    told: list[QueryTopics],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()

    said = run.refused("sql", "SELECT 1", "--parquet", name)

    assert said.startswith(f"error: --parquet {name or repr(name)}: ")
    assert told == []


@pytest.mark.parametrize(
    ("engine", "package", "extra"),
    [("duckdb", "duckdb", "sql"), ("spark", "pyspark", "spark")],
)
def test_without_the_extra_it_is_said_what_to_install(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch, engine: str, package: str, extra: str
) -> None:
    for name in [one for one in sys.modules if one.startswith(f"penstock.{extra}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)

    said = run.refused("sql", "SELECT 1", "--engine", engine)

    assert f"needs {package}, which is not installed: pip" in said
    assert f"penstock[{extra}]" in said


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[QueryTopics]:
    """What a command tells Spark; it goes no further."""
    found: list[QueryTopics] = []

    @contextmanager
    def opened() -> Iterator[None]:
        yield

    def answer(_: None, topics: QueryTopics, query: str) -> None:
        found.append(topics)
        raise InvalidQuery("as far as it goes")

    spark_sql = SimpleNamespace(
        opened=opened,
        answer=answer,
        QueryTopics=QueryTopics,
        SparkResult=lambda frame: frame,
    )
    monkeypatch.setattr(sql_tables, "import_module", lambda _: spark_sql)
    return found


def test_spark_is_told_of_all_topics_and_of_schemas_that_matter(
    run: DeskRun, told: list[QueryTopics], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders", "users", "Visits"):
        run.ask("schemas.register", topic=name, schema={"type": "object"})
    run.ask("topics.create", name="plain")
    monkeypatch.setattr(plan, "PAGE_ROWS", 2)

    said = run.refused("sql", "SELECT * FROM ORDERS JOIN visits", "--engine", "spark")

    (topics,) = told
    assert said == "error: as far as it goes\n"
    assert topics.options == {"path": str(run.server.data)}
    assert topics.names == ["Visits", "orders", "plain", "users"]
    assert set(topics.schemas) == {"orders", "Visits"}


def test_spark_logs_in_as_the_command_does(
    tmp_path: Path, told: list[QueryTopics], monkeypatch: pytest.MonkeyPatch
) -> None:
    with local_server(tmp_path / "data", {"anna": "secret"}) as server:
        monkeypatch.setattr(
            connect, "connect", lambda _, **options: reach(server.data, **options)
        )

        result = CliRunner().invoke(
            cli,
            [
                *("sql", "SELECT 1", "--engine", "spark"),
                *("--server", "host:1", "--user", "anna"),
            ],
            input="secret\n",
        )

    assert result.stderr.count("Password of anna") == 1
    assert [topics.options for topics in told] == [
        {"servers": "host:1", "user": "anna", "password": "secret"}
    ]


def test_the_shell_is_for_a_terminal_and_a_pipe_holds_a_query(run: DeskRun) -> None:
    run.client.publish("t", [b"a", b"b"])

    piped = run("sql", "--csv", input=b"SELECT count(*) AS n FROM t")

    assert (piped.exit_code, piped.stdout) == (0, "n\n2\n")
