"""Processes that answer: their limits, and that none is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from penstock import sql
from penstock.errors import InvalidQuery, LimitReached, MissingExtra, TooMuchAsked
from penstock.http.options import HttpOptions
from penstock.http.sql_routes import SqlAnswer
from penstock.log import Columns, Log
from penstock.server import questions
from penstock.server.processes import children_of
from penstock.server.questions import QuestionProcesses
from tests.unit.http.streaming import happens
from tests.unit.server.scene import run

pytestmark = pytest.mark.slow

ENDLESS = "SELECT count(*) FROM range(1000000000000000)"
MIB = 1 << 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("questions") / "data"
    with Log.open(directory) as log:
        log.create_topic("orders")
        log.append("orders", Columns([b"a", b"b"], 1_767_225_600_000))
        log.sync()
    return directory


def processes(data: Path, **options: Any) -> QuestionProcesses:
    return QuestionProcesses(str(data), HttpOptions(**{"sql_s": 60.0, **options}))


async def begun(before: list[int]) -> int:
    """The process that was started since."""

    def new() -> set[int]:
        return set(children_of(os.getpid())) - set(before)

    await happens(new)
    return new().pop()


def program(
    monkeypatch: pytest.MonkeyPatch, folder: Path, text: str, name: str = "stand_in"
) -> None:
    """Have this program answer instead."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(questions, "PROGRAM", name)


def test_an_answer_is_what_the_route_promises(data: Path) -> None:
    async def scene() -> None:
        found = await processes(data).answer("SELECT * FROM orders", ["orders"], {})

        assert len(json.loads(found)["rows"]) == 2
        assert set(json.loads(found)) == set(SqlAnswer.__struct_fields__) - {"seconds"}

    run(scene())


def test_a_refusal_is_raised_as_it_was(data: Path) -> None:
    async def scene() -> None:
        with pytest.raises(InvalidQuery, match="there is no topic orders"):
            await processes(data).answer("SELECT * FROM orders", [], {})

    run(scene())


def test_a_question_that_takes_too_long_is_ended(data: Path) -> None:
    async def scene() -> None:
        asked = processes(data, sql_s=0.5)
        before = children_of(os.getpid())

        with pytest.raises(TooMuchAsked) as caught:
            await asked.answer(ENDLESS, [], {})

        expected = "the question takes more than 0.5 s, the limit of http.sql_s"
        assert str(caught.value) == expected
        assert children_of(os.getpid()) == before

    run(scene())


def test_a_question_that_takes_too_much_memory_is_refused(data: Path) -> None:
    async def scene() -> None:
        asked = processes(data, sql_memory_bytes=32 * MIB)

        with pytest.raises(TooMuchAsked, match="33554432 bytes of memory"):
            await asked.answer("SELECT repeat('x', 1000000000)", [], {})

    run(scene())


def test_one_more_than_may_be_at_a_time_is_refused_at_once(data: Path) -> None:
    async def scene() -> None:
        asked = processes(data, sql_questions=1)
        before = children_of(os.getpid())
        first = asyncio.ensure_future(asked.answer(ENDLESS, [], {}))
        await begun(before)

        with pytest.raises(LimitReached) as caught:
            await asked.answer("SELECT 1", [], {})
        expected = "there are 1 questions in SQL, the limit of http.sql_questions"
        assert str(caught.value) == expected

        first.cancel()
        await asyncio.wait([first])
        assert json.loads(await asked.answer("SELECT 1", [], {}))["rows"] == [[1]]

    run(scene())


def test_nobody_holds_more_than_half_of_the_places(data: Path) -> None:
    async def scene() -> None:
        asked = processes(data, sql_questions=2)
        before = children_of(os.getpid())
        first = asyncio.ensure_future(asked.answer(ENDLESS, [], {}, "user anna"))
        await begun(before)

        with pytest.raises(LimitReached) as caught:
            await asked.answer("SELECT 1", [], {}, "user anna")
        expected = (
            "there are 1 questions in SQL of user anna, "
            "the limit of half of http.sql_questions"
        )
        assert str(caught.value) == expected
        for other in ("token anna", ""):
            found = await asked.answer("SELECT 1", [], {}, other)
            assert json.loads(found)["rows"] == [[1]]

        first.cancel()
        await asyncio.wait([first])
        await asked.answer("SELECT 1", [], {}, "user anna")

    run(scene())


def test_no_questions_at_a_time_are_none_ever(data: Path) -> None:
    async def scene() -> None:
        asked = processes(data, sql_questions=0)

        with pytest.raises(LimitReached):
            asked.check()
        with pytest.raises(LimitReached):
            await asked.answer("SELECT 1", [], {})

    run(scene())


def test_a_question_that_nobody_waits_for_leaves_nothing(data: Path) -> None:
    async def scene() -> None:
        before = children_of(os.getpid())
        asked = asyncio.ensure_future(processes(data).answer(ENDLESS, [], {}))
        pid = await begun(before)

        asked.cancel()
        await asyncio.wait([asked])

        assert asked.cancelled()
        assert pid not in children_of(os.getpid())

    run(scene())


def test_a_process_that_is_killed_counts_as_too_much_memory(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        before = children_of(os.getpid())
        asked = asyncio.ensure_future(processes(data).answer(ENDLESS, [], {}))
        os.kill(await begun(before), signal.SIGKILL)

        with pytest.raises(TooMuchAsked, match=r"http\.sql_memory_bytes"):
            await asked

    run(scene())
    assert [record.action for record in caplog.records] == [  # type: ignore[attr-defined]
        "question_killed"
    ]


def test_a_process_that_another_signal_ends_names_it(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    program(monkeypatch, tmp_path, "import os; os.kill(os.getpid(), 11)")

    async def scene() -> None:
        with pytest.raises(InvalidQuery, match="was ended by signal 11"):
            await processes(data).answer("SELECT 1", [], {})

    run(scene())
    (said,) = caplog.messages
    assert said == "a question in SQL was killed by signal 11 (Segmentation fault)"


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGXCPU])
def test_a_process_whose_time_the_kernel_ends_took_too_long(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    text = f"import os; os.kill(os.getpid(), {number.value})"
    program(monkeypatch, tmp_path, text)

    async def scene() -> None:
        with pytest.raises(TooMuchAsked, match=r"http\.sql_s"):
            await processes(data).answer("SELECT 1", [], {})

    run(scene())


def test_a_mistake_of_the_process_is_one_of_ours(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(monkeypatch, tmp_path, "print('Traceback: oh no')\nraise SystemExit(1)")

    async def scene() -> None:
        with pytest.raises(RuntimeError, match="ended with 1: Traceback: oh no"):
            await processes(data).answer("SELECT 1", [], {})

    run(scene())


def test_an_answer_without_an_end_is_not_taken_in(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(monkeypatch, tmp_path, "while True: print('x' * 65536)")

    async def scene() -> None:
        with pytest.raises(RuntimeError, match="is longer than"):
            await processes(data, sql_answer_bytes=MIB).answer("SELECT 1", [], {})

    run(scene())


def test_a_process_gets_neither_environment_nor_descriptors(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import json, os, sys\n"
        "sys.stdin.read()\n"
        "fds = [int(one) for one in os.listdir('/proc/self/fd')]\n"
        "print(json.dumps([sorted(os.environ), sorted(fds)]))\n"
    )
    program(monkeypatch, tmp_path, text)
    monkeypatch.setenv("PENSTOCK_PASSWORD", "secret")

    async def scene() -> None:
        read, write = os.pipe()
        try:
            written = await processes(data).answer("SELECT 1", [], {})
        finally:
            os.close(read)
            os.close(write)
        environment, descriptors = json.loads(written)
        own = {"ARROW_DEFAULT_MEMORY_POOL", "PYTHONPATH"}
        assert own <= set(environment) <= own | {"LC_CTYPE"}  # which Python sets
        assert len(descriptors) == 4  # the fourth is the listing itself

    run(scene())


def test_without_the_extra_it_says_how_to_install_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "PACKAGES", ("duckdb_that_nobody_has",))

    with pytest.raises(MissingExtra, match=r"pip install 'penstock\[sql\]'"):
        processes(data).check()
