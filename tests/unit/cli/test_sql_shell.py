from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from penstock.cli import sql_shell
from penstock.cli.sql_shell import HELP, WELCOME, Shell, is_whole, words
from penstock.errors import InvalidQuery


class Found:
    columns = ["n"]

    def __init__(self, count: int, *notes: str) -> None:
        self._count = count
        self._notes = list(notes)

    def rows(self, most: int | None = None) -> Iterator[list[Any]]:
        count = self._count if most is None else min(most, self._count)
        yield from ([n] for n in range(count))

    def notes(self) -> list[str]:
        return self._notes


class Tables:
    """Answers a number with as many rows."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def statements(self, query: str) -> list[str]:
        return [f"{one};" for one in query.split(";") if one.strip()]

    def answer(self, query: str) -> Found:
        self.asked.append(query)
        if query == "wrong;":
            raise InvalidQuery("there is no topic wrong", "did you mean right?")
        digits = "".join(filter(str.isdigit, query))
        return Found(int(digits or 1), *(["look at it"] if "note" in query else []))

    def write_parquet(self, query: str, file: str, most: int | None) -> None:
        raise AssertionError("not from here")


def names() -> list[str]:
    return ["orders", "orders.eu", "Users"]


@pytest.fixture
def shell() -> Shell:
    return Shell(Tables(), names, 100)


def test_a_question_is_answered_by_a_table(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.do("SELECT 2;")
    shell.do("note 1;")

    assert capsys.readouterr().out == "n\n0\n1\nn\n0\nnote: look at it\n"


def test_of_several_questions_each_is_answered(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.do("SELECT 2; SELECT 1;")

    assert capsys.readouterr().out == "n\n0\n1\nn\n0\n"


def test_what_is_wrong_with_it_is_said_and_the_shell_goes_on(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.do("wrong;")
    shell.do(" ;")

    said = "error: there is no topic wrong\nhint: did you mean right?\n"
    assert capsys.readouterr().err == said
    assert not shell.over


@pytest.mark.parametrize(
    ("format_", "said"), [("json", '{"n":0}\n{"n":1}\n'), ("csv", "n\n0\n1\n")]
)
def test_answers_have_a_format(
    shell: Shell, capsys: pytest.CaptureFixture[str], format_: str, said: str
) -> None:
    shell.do(f".format {format_}")
    shell.do("SELECT 2;")

    assert capsys.readouterr().out == said


def test_long_answers_are_shown_by_pages_and_end_at_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LINES", "24")
    pages: list[str] = []
    shell = Shell(Tables(), names, 100, pages.append)

    shell.do("SELECT 50;")
    shell.do(".limit 30")
    shell.do("SELECT 50;")

    assert [page.count("\n") for page in pages] == [51, 32]
    assert pages[1].endswith("… the first 30 rows; more with .limit\n")


def test_commands_begin_with_a_dot(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.do(".help")
    shell.do(".tables")
    shell.do(".columns orders.eu")
    shell.do(".nonsense here")
    shell.do(".format xml")

    said = capsys.readouterr()
    assert said.out == f"{HELP}\norders\norders.eu\nUsers\nn\n0\n"
    assert isinstance(shell.tables, Tables)
    assert shell.tables.asked == ['DESCRIBE "orders.eu"']
    assert said.err == (
        "error: .nonsense here is nothing; .help lists what there is\n"
        "error: .format xml is nothing; .help lists what there is\n"
    )


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; \n", True),
        (".tables", True),
        ("", True),
        ("SELECT\n1", False),
    ],
)
def test_a_query_ends_with_a_semicolon(typed: str, *, whole: bool) -> None:
    assert is_whole(typed) is whole


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("ord", ["orders", '"orders.eu"', "ORDER BY"]),
        ("us", ["Users", "USING"]),
        ("off", ["offset"]),
        ("sel", ["SELECT"]),
        ("xyz", []),
    ],
)
def test_words_are_completed(before: str, found: list[str]) -> None:
    assert words(before, names()) == found


def test_what_is_typed_is_carried_out_until_ctrl_d(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tables = Tables()
    with (
        create_pipe_input() as typed,
        create_app_session(input=typed, output=DummyOutput()),
    ):
        # Two lines, one that is given up, another, and the end.
        typed.send_text("SELECT\r2;\rSELECT 7\x03SELECT 1;\r\x04")
        sql_shell.run(tables, names, 100)

    assert tables.asked == ["SELECT\n2;", "SELECT 1;"]
    assert capsys.readouterr().out == f"{WELCOME}\nn\n0\n1\nn\n0\n"
    assert "SELECT" in (tmp_path / "penstock" / "sql-history").read_text()
