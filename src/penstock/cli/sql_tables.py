"""What answers a query: DuckDB in this process, or Spark, over the same tables.

DuckDB works in a thread of its own, so that Ctrl-C is heard: it looks for signals only
now and then, and not at all while it sorts or counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock import sql
from penstock.cli.connect import (
    Asker,
    ask,
    ask_all,
    at_desk,
    credentials,
    no_token,
    whereabouts,
)
from penstock.client import Client
from penstock.client.address import Local
from penstock.client.tls import Tls
from penstock.desk.views.schemas import SchemaPage, SchemaView
from penstock.desk.views.topics import TopicPage
from penstock.errors import NotAllowed, ServerRefused, UnknownSchema
from penstock.spark import missing

if TYPE_CHECKING:
    from penstock.sql.engine import SqlEngine, SqlResult
    from penstock.table.connection import BrokerAccess


T = TypeVar("T")

# An interrupt is lost on a query that is about to begin: it is told again.
AGAIN_S = 0.1


class InterruptibleEngine:
    """An engine whose work a KeyboardInterrupt ends; raised when it has ended."""

    def __init__(self, engine: SqlEngine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "penstock-sql")

    def names(self) -> Sequence[str]:
        return self._engine.names()

    def statements(self, query: str) -> list[str]:
        return self._engine.statements(query)

    def answer(self, query: str) -> SqlResult:
        """Raises InvalidQuery."""
        found = self._done(lambda: self._engine.answer(query))
        return replace(found, batches=self._each(found.batches))

    def write_parquet(self, query: str, file: str, most: int | None) -> None:
        """Raises InvalidQuery."""
        self._done(lambda: self._engine.write_parquet(query, file, most))

    def _each(self, batches: Iterator[Any]) -> Iterator[Any]:
        while (batch := self._done(lambda: next(batches, None))) is not None:
            yield batch

    def _done(self, work: Callable[[], T]) -> T:
        doing = self._thread.submit(work)
        try:
            return doing.result()
        finally:
            self._end(doing)

    def _end(self, doing: Future[Any]) -> None:
        while not doing.done():
            self._engine.interrupt()
            with suppress(KeyboardInterrupt):
                wait([doing], AGAIN_S)


# A broker that is away is waited for, but a person does not wait long.
RETRY_S = 5.0
NAME = "sql"
# Words of a query that are looked up, for users who may not see all topics.
MAX_WORDS = 100
_WORD = re.compile(r"""([A-Za-z_]\w*)|["`]((?:[^"`]|"")+)["`]""")


class QueryResult(Protocol):
    """The answer to a query."""

    @property
    def columns(self) -> list[str]: ...

    def rows(self, most: int | None = None) -> Iterator[Sequence[Any]]:
        """Values by row, so many at most; raises InvalidQuery."""

    @property
    def notes(self) -> Callable[[], list[str]]:
        """What to say to a person who has seen the rows."""


class Tables(Protocol):
    """Topics as tables."""

    def statements(self, query: str) -> list[str]:
        """What is asked, one by one."""

    def answer(self, query: str) -> QueryResult:
        """Raises InvalidQuery."""

    def write_parquet(self, query: str, file: str, most: int | None) -> None:
        """Write the answer to a new file; raises InvalidQuery."""


def with_duckdb() -> AbstractContextManager[InterruptibleEngine]:
    """The topics of the broker that the options name; raises MissingExtra."""
    try:
        engine = import_module("penstock.sql.engine")
    except ImportError as error:
        raise sql.missing(error) from error
    return _with_duckdb(engine.SqlEngine)


@contextmanager
def _with_duckdb(engine: Callable[..., SqlEngine]) -> Iterator[InterruptibleEngine]:
    with catalog() as known, engine(_connection(), known) as tables:
        yield InterruptibleEngine(tables)


def _connection() -> BrokerAccess:
    from penstock.table.connection import BrokerAccess

    where, user, password, token = credentials()
    if isinstance(where, Local):
        return BrokerAccess(
            servers=(), path=where.directory, retry_s=RETRY_S, name=NAME
        )
    return BrokerAccess(
        servers=(str(where),),
        path=None,
        user=user,
        password=password,
        token=token,
        retry_s=RETRY_S,
        name=NAME,
        tls=where.tls or Tls(),
    )


@dataclass(frozen=True, slots=True)
class BrokerTables:
    """What a running broker says."""

    desk: Asker

    def names(self, query: str = "") -> list[str]:
        """All topics; of a user who may not see them all, words of the query."""
        try:
            return _names(self.desk)
        except NotAllowed:
            return [word for word in words_of(query) if self._is_topic(word)]

    def schema(self, topic: str) -> str | None:
        try:
            return ask(self.desk, SchemaView, "schemas.show", topic=topic).schema
        except (UnknownSchema, NotAllowed):
            return None

    def _is_topic(self, word: str) -> bool:
        try:
            self.desk.ask("topics.show", name=word)
        except ServerRefused:
            return False
        return True


@dataclass(frozen=True, slots=True)
class DirectoryTables:
    """What a directory holds that no broker runs on; no other process writes it."""

    topics: list[str]
    schemas: dict[str, str]

    def names(self, query: str = "") -> list[str]:
        return self.topics

    def schema(self, topic: str) -> str | None:
        return self.schemas.get(topic)


@contextmanager
def catalog() -> Iterator[BrokerTables | DirectoryTables]:
    """What topics there are; files are let go of as soon as that is known."""
    with at_desk() as desk:
        known = BrokerTables(desk)
        if isinstance(desk, Client):
            yield known
            return
        schemas = {
            topic: ask(desk, SchemaView, "schemas.show", topic=topic).schema
            for topic in _with_schema(desk)
        }
        kept = DirectoryTables(known.names(), schemas)
    yield kept


def words_of(query: str) -> list[str]:
    """What stands in a query like a name: bare words, or what is in quotes."""
    found = (bare or quoted.replace('""', '"') for bare, quoted in _WORD.findall(query))
    return list(dict.fromkeys(found))[:MAX_WORDS]


def _names(desk: Asker) -> list[str]:
    rows = ask_all(
        desk,
        TopicPage,
        "topics",
        lambda page: page.topics,
        lambda row: row.name,
        own=True,
    )
    return [row.name for row in rows]


def _with_schema(desk: Asker) -> list[str]:
    rows = ask_all(
        desk, SchemaPage, "schemas", lambda page: page.schemas, lambda row: row.topic
    )
    return [row.topic for row in rows]


class OnSpark:
    """A session of Spark, and what was asked of it."""

    def __init__(self, spark_sql: Any, session: Any) -> None:
        self._spark_sql = spark_sql
        self._session = session

    def statements(self, query: str) -> list[str]:
        return [query]  # of several Spark says itself that it is one too many

    def answer(self, query: str) -> QueryResult:
        found: QueryResult = self._spark_sql.SparkResult(self._frame(query))
        return found

    def write_parquet(self, query: str, file: str, most: int | None) -> None:
        frame = self._frame(query)
        limited = frame if most is None else frame.limit(most)
        scratch = Path(file).parent
        whole = self._spark_sql.write_parquet(limited, scratch)
        whole.rename(file)

    def _frame(self, query: str) -> Any:
        with catalog() as known:
            topics = self._spark_sql.QueryTopics(
                options=_spark_options(),
                names=(names := known.names(query)),
                schemas={
                    topic: schema
                    for topic in names
                    if topic.lower() in query.lower()
                    and (schema := known.schema(topic)) is not None
                },
            )
        return self._spark_sql.answer(self._session, topics, query)


@contextmanager
def with_spark() -> Iterator[OnSpark]:
    """The same on Spark; raises MissingExtra."""
    try:
        spark_sql = import_module("penstock.spark.sql")
    except ImportError as error:
        raise missing(error) from error
    no_token("Spark")
    with spark_sql.opened() as session:
        yield OnSpark(spark_sql, session)


def _spark_options() -> dict[str, str]:
    from penstock.spark.options import tls_options

    where, user, password = whereabouts()
    if isinstance(where, Local):
        return {"path": where.directory}
    options = {"servers": str(where), **tls_options(where.tls)}
    if user is not None:
        options |= {"user": user, "password": password or ""}
    return options
