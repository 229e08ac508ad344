"""The process of one question: one SELECT, within limits, over the topics it is told.

The client that asks is not trusted. What keeps a question inside:

- one statement, and that a SELECT; of functions in FROM those of ``FUNCTIONS`` alone:
  others read files, run text as SQL, or take addresses in memory;
- DuckDB opens no file, loads nothing and keeps its settings; the only tables are the
  topics, which the server chose by what the asker may read;
- the kernel holds limits of memory and time, whatever DuckDB thinks of them, and no
  file can be written. The server ends the process at its deadline; the alarm does so
  if there is no server any more.

    python -P -m penstock.sql.boxed < question.json
"""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from penstock.errors import DataLost, InvalidQuery, PenstockError
from penstock.sql.engine import SETTINGS, SqlEngine, SqlResult
from penstock.sql.plain import encode, plain
from penstock.sql.question import (
    ANSWERED,
    REFUSED,
    SqlQuestion,
    refusal_of,
    too_much_memory,
)
from penstock.table.connection import BrokerAccess

FAILED = 1
# Beside topics: what makes rows of its arguments.
FUNCTIONS = frozenset(
    {"generate_series", "json_each", "json_tree", "range", "repeat", "unnest"}
)
BOX = {
    **SETTINGS,
    "threads": "1",
    # Nothing is put aside on disk.
    "temp_directory": "",
    "enable_external_access": "false",
    # The last one.
    "lock_configuration": "true",
}
# The broker goes first.
NICENESS = 10
# What the server takes for its own deadline, before the alarm.
GRACE_S = 1
_NO_FILES = "file system operations are disabled"
_OUT_OF_MEMORY = ("Out of Memory", "MemoryError", "bad_alloc", "malloc of size")


class Box(SqlEngine):
    """An engine that answers one SELECT, and reads nothing but topics."""

    def __init__(self, question: SqlQuestion) -> None:
        self._question = question
        place = BrokerAccess(servers=(), path=question.data, retry_s=0)
        super().__init__(place, _GivenCatalog(question), BOX)

    def _planned(self, query: str) -> duckdb.DuckDBPyRelation | None:
        check(self._duck, query)
        return super()._planned(query)

    def _refused(self, error: Exception, names: Sequence[str]) -> PenstockError:
        if any(one in str(error) for one in _OUT_OF_MEMORY):
            return too_much_memory(self._question.memory_bytes)
        if _NO_FILES in str(error):
            return InvalidQuery("files are not read here, only topics")
        found = super()._refused(error, names)
        if isinstance(found, DataLost):
            reason = f"topic {found.topic}: {found.reason}"
            return InvalidQuery(reason, "it changed meanwhile: ask again")
        # Errors of files come with their names.
        if self._question.data in found.for_client:
            return InvalidQuery("a file of the topics could not be read", "ask again")
        return found


class _GivenCatalog:
    """The catalogue that came with the question."""

    def __init__(self, question: SqlQuestion) -> None:
        self._question = question

    def names(self, query: str = "") -> list[str]:
        return self._question.topics

    def schema(self, topic: str) -> str | None:
        return self._question.schemas.get(topic)


def check(duck: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raises InvalidQuery unless it is one SELECT with functions that are allowed."""
    statements = duck.extract_statements(query)
    if not statements:
        raise InvalidQuery("nothing is asked")
    if len(statements) > 1:
        raise InvalidQuery(f"{len(statements)} statements: one question at a time")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise InvalidQuery("only SELECT, SHOW, DESCRIBE and SUMMARIZE are answered")
    ((tree,),) = duck.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    for name in functions_in(msgspec.json.decode(tree)):
        if name.lower() not in FUNCTIONS:
            allowed = ", ".join(sorted(FUNCTIONS))
            hint = f"behind FROM there are topics, and {allowed}"
            raise InvalidQuery(f"the function {name[:80]} cannot be used here", hint)


def functions_in(tree: object) -> list[str]:
    """The functions that stand like tables in a query, which DuckDB took apart.

    What could not be taken apart has one without a name, which is not allowed.
    """
    if not isinstance(tree, dict) or tree.get("error") is not False:
        return [""]
    found, left = [], [tree]
    while left:
        node: Any = left.pop()
        if isinstance(node, list):
            left += node
        elif isinstance(node, dict):
            left += node.values()
            if node.get("type") == "TABLE_FUNCTION":
                function = node.get("function") or {}
                found.append(str(function.get("function_name", "")))
    return found


def encoded(question: SqlQuestion, found: SqlResult) -> bytes:
    """The answer as JSON, as much of it as fits; raises InvalidQuery, TooMuchAsked."""
    columns = [
        {"name": name, "type": kind.strip('"')}  # "NULL" is a type
        for name, kind in zip(found.columns, found.types, strict=True)
    ]
    size = _fitting("the heading", len(encode(columns)), question)
    rows: list[msgspec.Raw] = []
    cut = None
    for row in found.rows(question.rows + 1):
        line = encode([plain(value) for value in row])
        if len(rows) == question.rows:
            cut = "rows"
            break
        size += len(line)
        if size > question.answer_bytes and rows:
            cut = "bytes"
            break
        _fitting("the first row", size, question)
        rows.append(msgspec.Raw(line))
    notes = found.notes()
    return encode({"columns": columns, "rows": rows, "cut": cut, "notes": notes})


def _fitting(what: str, size: int, question: SqlQuestion) -> int:
    most = question.answer_bytes
    if size > most:
        reason = (
            f"{what} of the answer has {size} bytes, http.sql_answer_bytes is {most}"
        )
        raise InvalidQuery(reason, "ask for fewer columns, or a part of a long value")
    return size


def confine(question: SqlQuestion) -> None:
    """Take no more of the machine from here on than the question may."""
    seconds = math.ceil(question.seconds) + GRACE_S
    signal.alarm(seconds)
    cpu_s = math.ceil(time.process_time()) + seconds
    # At the first a signal that says why; the second kills a process that ignores it.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    # Beyond what the libraries take before anything is asked.
    size, _, _, _, _, data, _ = Path("/proc/self/statm").read_text().split()
    page = os.sysconf("SC_PAGE_SIZE")
    _limit(resource.RLIMIT_AS, int(size) * page + question.memory_bytes)
    _limit(resource.RLIMIT_DATA, int(data) * page + question.memory_bytes)


def _limit(what: int, value: int) -> None:
    resource.setrlimit(what, (value, value))


def give_way() -> None:
    """Let the broker go first, and if the machine has no memory left, stay."""
    os.nice(NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def outcome(question: SqlQuestion) -> tuple[int, bytes]:
    """The exit code, and what is written."""
    try:
        with Box(question) as box:
            confine(question)
            return ANSWERED, encoded(question, box.answer(question.query))
    except PenstockError as error:
        return REFUSED, encode(refusal_of(error))
    except MemoryError:
        return REFUSED, encode(refusal_of(too_much_memory(question.memory_bytes)))
    except Exception:
        return FAILED, traceback.format_exc().encode(errors="replace")


def main() -> int:
    give_way()
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=SqlQuestion)
    code, written = outcome(question)
    sys.stdout.buffer.write(written)
    sys.stdout.buffer.flush()
    return code


if __name__ == "__main__":
    # At once: nothing is left to be put in order.
    os._exit(main())
