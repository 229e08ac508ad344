"""A connection of DuckDB that knows the topics of a broker as tables.

Only topics whose names stand in a query become tables, when it is asked: a broker may
have a hundred thousand. How far a topic goes is fixed then, so that a query that reads
it twice sees the same events twice.

``offset`` is a word of SQL, and a column of every topic. DuckDB takes it for the clause
wherever it stands bare. Here it is a column unless a number or a bracket follows, as
behind ``LIMIT 10 OFFSET 20``. Values that Python does not have are text: DuckDB has
years up to 294246, an end of all time, and billionths of a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from penstock.errors import InvalidQuery, PenstockError
from penstock.schema import parsed
from penstock.sql.scanning import TopicTable
from penstock.table.connection import BrokerAccess
from penstock.table.extent import Extent
from penstock.table.naming import suggestion
from penstock.table.place import open_place
from penstock.table.registered import of_schema

_PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NS = 10**9
_DAY_S = 86_400
# After so many days the calendar is the same again.
_YEARS, _DAYS = 400, 146_097
_SINCE = date(2000, 1, 1)
_SINCE_DAYS = (_SINCE - date(1970, 1, 1)).days
_ENDS = {
    **{bits: "infinity" for bits in (2**31 - 1, 2**63 - 1)},
    **{-bits: "-infinity" for bits in (2**31 - 1, 2**63 - 1)},
}


def values(column: pa.Array) -> list[Any]:
    """By row; raises InvalidQuery. A map is a dict, or pairs if keys are no names."""
    try:
        found: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (OverflowError, ValueError, KeyError, TypeError):
        return [_value(one) for one in column]
    return found


def _value(one: pa.Scalar) -> Any:
    kind = one.type
    if not one.is_valid:
        return None
    if pa.types.is_map(kind):
        keys, items = values(one.values.field(0)), values(one.values.field(1))
        return _map(keys, items)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return values(one.values)
    if pa.types.is_struct(kind):
        return {name: _value(part) for name, part in one.items()}
    if pa.types.is_union(kind):
        return _value(one.value)
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        return _text(one)


def _map(keys: list[Any], items: list[Any]) -> Any:
    pairs = list(zip(keys, items, strict=True))
    try:
        found = dict(pairs)
    except TypeError:
        return pairs
    return found if len(found) == len(pairs) else pairs


def _text(one: pa.Scalar) -> str:
    kind = one.type
    if pa.types.is_date32(kind):
        return _ENDS.get(one.value) or _day(one.value)
    if pa.types.is_timestamp(kind):
        return _ENDS.get(one.value) or _moment(one.value, kind)
    if pa.types.is_time(kind):
        return _clock(one.value, kind.unit)
    hint = "CAST(… AS VARCHAR) makes it text"
    raise InvalidQuery(f"a value of type {kind} cannot be shown", hint)


def _moment(value: int, kind: pa.TimestampType) -> str:
    days, rest = divmod(value, _DAY_S * _PER_S[kind.unit])
    zone = "" if kind.tz is None else "Z"
    return f"{_day(days)}T{_clock(rest, kind.unit)}{zone}"


def _day(days: int) -> str:
    cycles, rest = divmod(days - _SINCE_DAYS, _DAYS)
    day = _SINCE + timedelta(days=rest)
    year = day.year + cycles * _YEARS
    return f"{'-' * (year < 0)}{abs(year):04}-{day:%m-%d}"


def _clock(value: int, unit: str) -> str:
    seconds, rest = divmod(value, _PER_S[unit])
    ns = rest * (_NS // _PER_S[unit])
    digits = next(some for some in (3, 6, 9) if ns % 10 ** (9 - some) == 0)
    minutes, second = divmod(seconds, 60)
    fraction = f"{ns:09}"[:digits]
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{fraction}"


# Texts, names in quotes and comments, which are left as they are; or the word itself.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\$\$.*?\$\$"""
    r"""|(?P<word>(?<![\w."$])offset(?![\w"$]))(?P<clause>\s*[\d(?$:])?""",
    re.IGNORECASE | re.DOTALL,
)
# Texts and comments; or a name in quotes, in which neither begins.
_SILENT = re.compile(
    r"""("(?:[^"]|"")*")|'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\$\$.*?\$\$""", re.DOTALL
)


def spoken(query: str) -> str:
    """The query without its texts and comments."""
    return _SILENT.sub(lambda found: found[1] or " ", query)


def with_column(query: str) -> str:
    """The query with quotes around ``offset`` where it is a column."""
    return _TOKEN.sub(_quoted, query)


def _quoted(found: re.Match[str]) -> str:
    if found["word"] is None or found["clause"] is not None:
        return found[0]
    return f'"{found["word"]}"'


# Rows that are handed on at a time.
ROWS = 1 << 13
SETTINGS = {
    # What is not in the package is not fetched from anywhere.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # A table is a topic or a file, and nothing that happens to be a variable here.
    "python_enable_replacements": "false",
    "TimeZone": "UTC",
}

_MISSED = re.compile(r"Table with name \"?(.+?)\"? does not exist")
_LISTS = re.compile(r"\b(show|describe|summarize)\b|information_schema|duckdb_", re.I)
_KIND = re.compile(r"^[A-Z][\w ]*? Error: ")
_NOT_JSON = "Malformed JSON"


class TableCatalog(Protocol):
    """What topics there are, and what is registered of them."""

    def names(self, query: str = "") -> Sequence[str]:
        """Those that there are, or at least those that a query may mean."""

    def schema(self, topic: str) -> str | None:
        """Its JSON Schema, if one is registered."""


@dataclass(frozen=True, slots=True)
class SqlResult:
    """Rows, as they come; ``notes`` are for a person who has seen them all."""

    columns: list[str]
    types: list[str]
    batches: Iterator[pa.RecordBatch]
    notes: Callable[[], list[str]]

    def rows(self, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Values by row, so many at most; raises InvalidQuery."""
        left = most
        for batch in self.batches:
            part = batch if left is None else batch.slice(0, left)
            yield from zip(*map(values, part.columns), strict=True)
            if left is not None:
                left -= part.num_rows
                if left <= 0:
                    return


class SqlEngine:
    """Close it, or use it as a context manager; from one thread at a time."""

    def __init__(
        self,
        connection: BrokerAccess,
        catalog: TableCatalog,
        settings: Mapping[str, str] = SETTINGS,
    ) -> None:
        self._connection = connection
        self._catalog = catalog
        self._duck = duckdb.connect(":memory:")
        for name, value in settings.items():
            self._duck.execute(f"SET {name} = '{value}'")
        self._tables: dict[str, TopicTable] = {}
        self._last: pa.RecordBatchReader | None = None
        """Of the answer before; whatever is left of it goes with the next query."""

    def __enter__(self) -> SqlEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._let_go()
        self._duck.close()

    def interrupt(self) -> None:
        """From another thread: end the query that runs, if one does."""
        self._duck.interrupt()

    def names(self) -> Sequence[str]:
        """The topics that there are."""
        return self._catalog.names()

    def statements(self, query: str) -> list[str]:
        """What is asked, one by one; whole if it cannot be taken apart."""
        for text in (query, with_column(query)):
            try:
                found = self._duck.extract_statements(text)
            except duckdb.Error:
                continue
            return [one.query for one in found] or [query]
        return [query]

    def answer(self, query: str) -> SqlResult:
        """What a query is answered by; raises InvalidQuery."""
        names = self._catalog.names(query)
        self._register(query, names)
        try:
            found = self._asked(query)
            self._last = reader = found.to_arrow_reader(ROWS)
        except (duckdb.Error, RuntimeError) as error:
            raise self._refused(error, names) from error
        types = [str(kind) for kind in found.types]
        batches = self._handed(reader, names)
        return SqlResult(list(found.columns), types, batches, self.notes)

    def write_parquet(self, query: str, file: str, most: int | None) -> None:
        """Write the answer to a file; raises InvalidQuery."""
        names = self._catalog.names(query)
        self._register(query, names)
        try:
            found = self._asked(query)
            (found if most is None else found.limit(most)).write_parquet(file)
        except (duckdb.Error, RuntimeError) as error:
            raise self._refused(error, names) from error

    def _asked(self, query: str) -> duckdb.DuckDBPyRelation:
        try:
            found = self._planned(query)
        except duckdb.ParserException:
            anew = with_column(query)
            if anew == query:
                raise
            found = self._planned(anew)
        if found is None:
            raise InvalidQuery("nothing is asked")
        return found

    def _planned(self, query: str) -> duckdb.DuckDBPyRelation | None:
        return self._duck.sql(query)

    def _register(self, query: str, names: Sequence[str]) -> None:
        """Let the topics that the query may mean be tables, as they are now."""
        self._let_go()
        for name in self._tables:
            self._duck.unregister(name)
        self._tables = {}
        wanted = named_in(query, names)
        with closing(open_place(self._connection)) as place:
            extents = place.extents(wanted) if wanted else {}
        for name, extent in extents.items():
            self._tables[name] = self._table(name, extent)
            self._duck.register(name, self._tables[name])

    def _let_go(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.close()

    def _table(self, name: str, extent: Extent) -> TopicTable:
        text = self._catalog.schema(name)
        typed = None if text is None else of_schema(parsed(text))
        return TopicTable(self._connection, name, extent, typed or None)

    def _handed(
        self, reader: pa.RecordBatchReader, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
            raise self._refused(error, names) from error

    def _refused(self, error: Exception, names: Sequence[str]) -> PenstockError:
        """What a person can use of an error of DuckDB."""
        for table in self._tables.values():
            if table.error is not None:
                return table.error
        text = str(error)
        missed = _MISSED.search(text)
        if missed is not None:
            name = missed[1]
            return InvalidQuery(f"there is no topic {name}", suggestion(name, names))
        if _NOT_JSON in text:
            hint = "leave out what is no JSON: WHERE json_valid(value)"
            return InvalidQuery("a payload is no JSON", hint)
        first, _, _ = _KIND.sub("", text.strip()).partition("\n\n")
        return InvalidQuery(" ".join(first.split()))

    def notes(self) -> list[str]:
        """What should be said of the last query, beside its answer."""
        return [
            f"{table.misfits.count} payloads of {name} do not fit its schema: their "
            "fields are NULL, and the payload is in _corrupt"
            for name, table in self._tables.items()
            if table.misfits.count
        ]


def named_in(query: str, names: Sequence[str]) -> list[str]:
    """The topics that a query may mean; all, if it asks which there are.

    Names have no case in SQL: of those that differ in it alone, the one that stands in
    the query as it is. Raises InvalidQuery if that does not tell them apart.
    """
    if _LISTS.search(spoken(query)):
        return list({name.lower(): name for name in names}.values())
    lowered = query.lower()
    found: dict[str, list[str]] = {}
    for name in names:
        if name.lower() in lowered:
            found.setdefault(name.lower(), []).append(name)
    return [_chosen(alike, query) for alike in found.values()]


def _chosen(alike: Sequence[str], query: str) -> str:
    if len(alike) == 1:
        return alike[0]
    exact = [name for name in alike if name in query]
    if len(exact) != 1:
        both = " and ".join(alike)
        raise InvalidQuery(f"{both} differ in case alone, which names in SQL do not")
    return exact[0]
