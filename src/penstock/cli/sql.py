"""``penstock sql``: a query over topics, answered by Spark on this machine."""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click
import msgspec

from penstock.broker.desk import MAX_ROWS
from penstock.broker.desk_views import TopicPage
from penstock.broker.schema_views import SchemaPage, SchemaView
from penstock.cli import show
from penstock.cli.connect import (
    Asker,
    ask,
    at_desk,
    json_option,
    no_token,
    server_options,
    whereabouts,
)
from penstock.cli.output import StandardText, say, write_line
from penstock.cli.refusal import Refusal
from penstock.client.address import Local
from penstock.files import Files
from penstock.spark import missing

if TYPE_CHECKING:
    from penstock.spark.sql import Table, Topics

# Rows of a table on a terminal, unless another number is given.
TABLE_ROWS = 100
# Characters of one cell.
CELL = 60
# To the beginning of the line, and nothing behind it.
_ERASE = "\r\x1b[K"


@click.command("sql")
@click.argument("query")
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
def sql_command(
    query: str,
    parquet: str | None,
    limit: int | None,
    *,
    as_json: bool,
    as_csv: bool,
    **_: object,
) -> None:
    """Ask a question in SQL: every topic is a table.

    Columns are those of the Spark source: offset, timestamp, key, value, id and so
    on, with key and value as text. Where a schema is registered for a topic, the
    fields of its payloads are columns, too. Names of topics that are not plain words
    stand in backticks. Needs the extra penstock[spark].

    \b
    Examples:
      penstock sql "SELECT count(*) FROM orders"
      penstock sql "SELECT user, sum(total) FROM orders GROUP BY user" --csv
      penstock sql 'SELECT * FROM `orders.eu` WHERE offset >= 1000' --limit 10
    """
    if (as_json, as_csv, parquet is not None).count(True) > 1:
        raise Refusal("--json, --csv and --parquet exclude each other")
    if parquet is not None:
        _check_file(parquet)
    spark_sql = _spark_sql()
    topics = _topics(query)
    with ExitStack() as stack:
        with telling("starting Spark …"):
            spark = stack.enter_context(spark_sql.opened())
            frame = spark_sql.answer(spark, topics, query)
        if parquet is not None:
            _write_parquet(frame, Path(parquet), limit)
        elif as_json:
            _print_json(frame, limit)
        elif as_csv:
            _print_csv(frame, limit)
        else:
            _print_table(frame, limit or TABLE_ROWS)


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


def _spark_sql() -> ModuleType:
    """Here, because Spark is an extra, and takes its time; raises MissingExtra."""
    try:
        return import_module("penstock.spark.sql")
    except ImportError as error:
        raise missing(error) from error


def _topics(query: str) -> Topics:
    """The topics of the broker, with the schemas of those that the query names."""
    from penstock.spark.sql import Topics

    where, user, password = whereabouts()
    no_token("Spark")
    options = {"path": where.directory} if isinstance(where, Local) else {}
    if not options:
        from penstock.spark.options import tls_options

        secure = tls_options(None if isinstance(where, Local) else where.tls)
        options = {"servers": str(where), **secure}
        if user is not None:
            options |= {"user": user, "password": password or ""}
    with at_desk() as desk:
        names = list(_names(desk))
        schemas = {
            topic: ask(desk, SchemaView, "schemas.show", topic=topic).schema
            for topic in _with_schema(desk)
            if topic.lower() in query.lower()
        }
    return Topics(options=options, names=names, schemas=schemas)


def _names(desk: Asker) -> Iterator[str]:
    after, more = "", True
    while more:
        page = ask(desk, TopicPage, "topics", after=after, own=True, limit=MAX_ROWS)
        yield from (topic.name for topic in page.topics)
        more = page.more
        after = page.topics[-1].name if page.topics else after


def _with_schema(desk: Asker) -> Iterator[str]:
    after, more = "", True
    while more:
        page = ask(desk, SchemaPage, "schemas", after=after, limit=MAX_ROWS)
        yield from (row.topic for row in page.schemas)
        more = page.more
        after = page.schemas[-1].topic if page.schemas else after


def _limited(frame: Table, limit: int | None) -> Table:
    return frame if limit is None else frame.limit(limit)


def _print_json(frame: Table, limit: int | None) -> None:
    from penstock.spark.sql import json_lines

    for line in json_lines(_limited(frame, limit)):
        write_line(line.encode())


def _print_csv(frame: Table, limit: int | None) -> None:
    from penstock.spark.sql import rows, shown

    writer = csv.writer(StandardText(), lineterminator="\n")
    writer.writerow(frame.columns)
    for row in rows(shown(_limited(frame, limit))):
        writer.writerow("" if value is None else text(value) for value in row)


def _print_table(frame: Table, limit: int) -> None:
    from penstock.spark.sql import first_rows, shown

    with telling("reading …"):
        found = first_rows(shown(frame), limit + 1)
    for line in table(frame.columns, found[:limit]):
        say(line)
    if len(found) > limit:
        say(f"… the first {show.count(limit, 'row')}; more with --limit", err=True)


def _check_file(name: str) -> None:
    """Before a query runs that may take its time: can the file be made?"""
    file = Path(name).absolute()
    if not name or file.is_dir():
        raise Refusal(f"--parquet {name or repr(name)}: it must be a file")
    if not file.parent.is_dir():
        raise Refusal(f"--parquet {name}: {file.parent} is no directory")


def _write_parquet(frame: Table, file: Path, limit: int | None) -> None:
    from penstock.spark.sql import write_parquet

    parent = file.absolute().parent
    with tempfile.TemporaryDirectory(prefix=".penstock-sql-", dir=parent) as scratch:
        with telling("reading …"):
            whole = write_parquet(_limited(frame, limit), Path(scratch))
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
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    line = show.preview(text(value).encode(errors="surrogateescape"))
    return line if len(line) <= CELL else line[: CELL - 1] + "…"


def text(value: object) -> str:
    """A value of a row as text: plain where it is, else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return show.preview(bytes(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | dict):
        return msgspec.json.encode(_plain(value), enc_hook=str).decode()
    return str(value)


def _plain(value: object) -> object:
    """Rows as objects, however deep they are."""
    if hasattr(value, "asDict"):
        return {name: _plain(one) for name, one in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value
