"""``penstock sql``: questions over topics, and how their answers are printed."""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
)
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from penstock.cli import show
from penstock.cli.connect import json_option, server_options
from penstock.cli.output import StandardText, say, write_line
from penstock.cli.progress import INTERRUPTED
from penstock.cli.refusal import Refusal
from penstock.cli.sql_tables import QueryResult, Tables, with_duckdb, with_spark
from penstock.files import Files
from penstock.sql.plain import encode, plain

# Rows of a table on a terminal, unless another number is given.
TABLE_ROWS = 100
# Characters of one cell.
CELL = 60
# To the beginning of the line, and nothing behind it.
_ERASE = "\r\x1b[K"
ENGINES: dict[str, Callable[[], AbstractContextManager[Tables]]] = {
    "duckdb": with_duckdb,
    "spark": with_spark,
}


@click.command("sql")
@click.argument("query", required=False)
@server_options
@json_option("Print one JSON object for each row.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a heading.")
@click.option(
    "--parquet",
    metavar="FILE",
    help="Write a Parquet file. One that is there already is replaced.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help=f"At most N rows. Default: {TABLE_ROWS} in a table, else all.",
)
@click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    default="duckdb",
    show_default=True,
    help="What answers: DuckDB at once, Spark for what is too large for it.",
)
def sql_command(
    query: str | None,
    parquet: str | None,
    limit: int | None,
    engine: str,
    *,
    as_json: bool,
    as_csv: bool,
    **_: object,
) -> None:
    """Ask a question in SQL: every topic is a table.

    Its columns are offset, timestamp, key, value, priority, id, headers and so on, with
    key and value as text. Where a schema is registered for a topic, the fields of its
    payloads are columns instead of value. Names of topics that are not plain words
    stand in double quotes. Parquet and CSV files are tables as well: 'prices.csv'.

    Without QUERY it is read from standard input; on a terminal that is a shell.
    Needs the extra penstock[sql]; with --engine spark, penstock[spark].

    \b
    Examples:
      penstock sql "SELECT count(*) FROM orders"
      penstock sql "SELECT user, sum(total) FROM orders GROUP BY user" --csv
      penstock sql 'SELECT * FROM "orders.eu" WHERE offset >= 1000' --limit 10
      penstock sql "SELECT value->>'$.item' AS item, count(*) FROM orders GROUP BY item"
      penstock sql "FROM orders JOIN 'prices.csv' USING (item)" --parquet joined.parquet
    """
    if (as_json, as_csv, parquet is not None).count(True) > 1:
        raise Refusal("--json, --csv and --parquet exclude each other")
    if parquet is not None:
        _check_file(parquet)
    if query is None and sys.stdin.isatty():
        _shell(engine, limit or TABLE_ROWS)
        return
    asked = sys.stdin.read() if query is None else query
    with _interruptible(), tables_of(engine) as tables:
        if parquet is not None:
            _write_parquet(tables, asked, Path(parquet), limit)
            return
        for one in tables.statements(asked):
            _answer(tables, one, limit, as_json=as_json, as_csv=as_csv)


def _answer(
    tables: Tables, query: str, limit: int | None, *, as_json: bool, as_csv: bool
) -> None:
    with telling("reading …"):
        found = tables.answer(query)
        most = limit or TABLE_ROWS
        # One more, to know of it.
        first = [] if as_json or as_csv else list(found.rows(most + 1))
    if as_json:
        print_json(found, limit)
    elif as_csv:
        print_csv(found, limit)
    else:
        print_table(found, first, most)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends the command in a line."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


@contextmanager
def tables_of(engine: str) -> Iterator[Tables]:
    """Topics as tables of an engine; raises MissingExtra."""
    with ExitStack() as stack:
        with telling("starting Spark …") if engine == "spark" else nullcontext():
            tables = stack.enter_context(ENGINES[engine]())
        yield tables


def _shell(engine: str, most: int) -> None:
    if engine == "spark":
        raise Refusal("the shell has DuckDB only", "give --engine spark a QUERY")
    from penstock.cli import sql_shell

    with with_duckdb() as tables:
        sql_shell.run(tables, tables.names, most)


@contextmanager
def telling(text: str) -> Iterator[None]:
    """A line on standard error meanwhile, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    click.echo(text, err=True, nl=False)
    try:
        yield
    finally:
        click.echo(_ERASE, err=True, nl=False)


def print_json(found: QueryResult, most: int | None) -> None:
    for row in found.rows(most):
        named = {
            name: plain(value) for name, value in zip(found.columns, row, strict=True)
        }
        write_line(encode(named))
    _say_notes(found)


def print_csv(found: QueryResult, most: int | None) -> None:
    writer = csv.writer(StandardText(), lineterminator="\n")
    writer.writerow(found.columns)
    for row in found.rows(most):
        writer.writerow("" if value is None else text(value) for value in row)
    _say_notes(found)


def print_table(found: QueryResult, rows: Sequence[Sequence[Any]], most: int) -> None:
    for line in table(found.columns, rows[:most]):
        say(line)
    if len(rows) > most:
        say(f"… the first {show.count(most, 'row')}; more with --limit", err=True)
    _say_notes(found)


def _say_notes(found: QueryResult) -> None:
    for note in found.notes():
        say(f"note: {note}", err=True)


def _check_file(name: str) -> None:
    """Before a query runs that may take its time: can the file be made?"""
    file = Path(name).absolute()
    if not name or file.is_dir():
        raise Refusal(f"--parquet {name or repr(name)}: it must be a file")
    if not file.parent.is_dir():
        raise Refusal(f"--parquet {name}: {file.parent} is no directory")


def _write_parquet(tables: Tables, query: str, file: Path, most: int | None) -> None:
    count = len(tables.statements(query))
    if count > 1:
        raise Refusal(f"{count} statements: a Parquet file holds one answer")
    parent = file.absolute().parent
    with tempfile.TemporaryDirectory(prefix=".penstock-sql-", dir=parent) as scratch:
        whole = Path(scratch, "whole.parquet")
        with telling("reading …"):
            tables.write_parquet(query, str(whole), most)
        Files().rename(str(whole), str(file.absolute()))


def table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines for people: a heading, then the rows, and numbers flush right."""
    cells = [[_cell(value) for value in row] for row in rows]
    lines = show.table([list(names), *_aligned(names, rows, cells)])
    return lines if cells else [*lines, "(no rows)"]


def _aligned(
    names: Sequence[str], rows: Sequence[Sequence[object]], cells: list[list[str]]
) -> list[list[str]]:
    for column, name in enumerate(names):
        values = [row[column] for row in rows if row[column] is not None]
        if values and all(_is_number(value) for value in values):
            width = max(len(name), *(len(row[column]) for row in cells))
            for row in cells:
                row[column] = row[column].rjust(width)
    return cells


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    line = show.preview(text(value).encode(errors="surrogateescape"))
    return line if len(line) <= CELL else line[: CELL - 1] + "…"


def text(value: object) -> str:
    """A value of a row as text: plain where it is, else as JSON."""
    if isinstance(value, bytes | bytearray):
        return show.preview(bytes(value))
    if isinstance(value, bool):
        return str(value).lower()
    found = plain(value)
    if isinstance(found, list | dict):
        return encode(found).decode()
    return str(found)
