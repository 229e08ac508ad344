"""Ctrl-C while DuckDB works."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

from penstock.cli.sql_shell import Shell
from penstock.cli.sql_tables import InterruptibleEngine
from penstock.errors import InvalidQuery
from penstock.log import Log
from penstock.sql.engine import SqlEngine
from penstock.table.connection import BrokerAccess

ENDLESS = (
    "SELECT count(DISTINCT a.range * b.range) FROM range(100000000) a, range(99) b"
)
LATE = "SELECT range FROM range(1000000000000) WHERE range < 9 OR range % 1e12 = 7"


class Nothing:
    def names(self, query: str = "") -> list[str]:
        return []

    def schema(self, topic: str) -> str | None:
        return None


@pytest.fixture
def aside(tmp_path: Path) -> Iterator[InterruptibleEngine]:
    with Log.open(tmp_path):
        pass
    connection = BrokerAccess(servers=(), path=str(tmp_path), retry_s=0)
    with SqlEngine(connection, Nothing()) as engine:
        yield InterruptibleEngine(engine)


def ctrl_c() -> None:
    timer = Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    timer.daemon = True
    timer.start()


@pytest.mark.slow
@pytest.mark.parametrize("query", [ENDLESS, LATE])
def test_ctrl_c_ends_a_query_and_the_next_is_answered(
    aside: InterruptibleEngine, query: str
) -> None:
    ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        list(aside.answer(query).rows())

    assert list(aside.answer("SELECT 1").rows()) == [(1,)]


@pytest.mark.slow
def test_ctrl_c_ends_the_writing_of_a_file(
    aside: InterruptibleEngine, tmp_path: Path
) -> None:
    ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        aside.write_parquet(ENDLESS, str(tmp_path / "file"), None)


@pytest.mark.slow
def test_the_shell_goes_on_afterwards(
    aside: InterruptibleEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(aside, aside.names, 100)
    ctrl_c()

    shell.do(f"{ENDLESS};")
    shell.do("SELECT 1 AS n;")

    said = capsys.readouterr()
    assert (said.out, said.err) == ("n\n1\n", "interrupted\n")


def test_errors_are_those_of_the_engine(aside: InterruptibleEngine) -> None:
    with pytest.raises(InvalidQuery, match="there is no topic t"):
        aside.answer("FROM t")
