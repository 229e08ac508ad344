"""The shell of ``penstock sql``: one question after the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from penstock import sql
from penstock.cli import show
from penstock.cli.output import say, say_text
from penstock.cli.sql import print_csv, print_json, table
from penstock.cli.sql_tables import QueryResult, Tables
from penstock.errors import PenstockError
from penstock.model.printable import printable
from penstock.spark import cache
from penstock.table.naming import CORRUPT, NAMES

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer

PROMPT, MORE = "sql> ", "  -> "
FORMATS = ("table", "json", "csv")
WELCOME = (
    "Every topic is a table. A query ends with ; and .help lists what else there is."
)
HELP = """\
  SELECT … ;          a question; it may have several lines
  .tables             the topics
  .columns TOPIC      the columns of one
  .format NAME        table, json or csv
  .limit N            so many rows of a table
  .help               this list
  .quit               or Ctrl-D; Ctrl-C ends a query that takes too long"""
# Words that are completed, beside names of topics and columns.
KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "HAVING", "JOIN"),
    *("LEFT JOIN", "USING", "ON", "AS", "AND", "OR", "NOT", "IN", "LIKE", "BETWEEN"),
    *("IS NULL", "DISTINCT", "COUNT", "SUM", "AVG", "MIN", "MAX", "CASE", "WHEN"),
    *("THEN", "ELSE", "END", "UNION ALL", "WITH", "DESC", "CAST", "DESCRIBE"),
    *("SUMMARIZE", "json_valid", "date_trunc", "epoch_ms"),
)


@dataclass(slots=True)
class Shell:
    """What is typed, carried out; ``echo`` gets what is longer than the screen."""

    tables: Tables
    names: Callable[[], Iterable[str]]
    most: int
    page: Callable[[str], None] = click.echo_via_pager
    format: str = "table"
    over: bool = field(default=False, init=False)

    def do(self, typed: str) -> None:
        """A command, or a question; what is wrong with it is said."""
        try:
            if typed.startswith("."):
                self._command(*typed[1:].split())
            elif typed.strip(" ;\n"):
                for one in self.tables.statements(typed):
                    self._ask(one)
        except PenstockError as error:
            say(f"error: {error}", err=True)
            if error.hint:
                say(f"hint: {error.hint}", err=True)
        except KeyboardInterrupt:
            say("interrupted", err=True)

    def _ask(self, query: str) -> None:
        found = self.tables.answer(query)
        if self.format == "json":
            print_json(found, None)
        elif self.format == "csv":
            print_csv(found, None)
        else:
            self._show(found)

    def _show(self, found: QueryResult) -> None:
        rows = list(found.rows(self.most + 1))
        lines = table(found.columns, rows[: self.most])
        if len(rows) > self.most:
            first = show.count(self.most, "row")
            lines.append(f"… the first {first}; more with .limit")
        lines += [f"note: {note}" for note in found.notes()]
        if len(lines) < shutil.get_terminal_size().lines:
            for line in lines:
                say(line)
        else:
            self.page("".join(f"{printable(line)}\n" for line in lines))

    def _command(self, word: str = "", *rest: str) -> None:
        match (word, *rest):
            case ("quit" | "exit" | "q",):
                self.over = True
            case ("help" | "h",):
                say_text(HELP)
            case ("tables",):
                for name in self.names():
                    say(name)
            case ("columns", topic):
                self._ask(f'DESCRIBE "{topic}"')
            case ("format", name) if name in FORMATS:
                self.format = name
            case ("limit", number) if number.isdigit() and int(number) > 0:
                self.most = int(number)
            case _:
                what = " ".join((word, *rest))
                say(f"error: .{what} is nothing; .help lists what there is", err=True)


def run(tables: Tables, names: Callable[[], Iterable[str]], most: int) -> None:
    """Ask and answer until Ctrl-D; raises MissingExtra."""
    shell = Shell(tables, names, most)
    session = _session(names)
    say(WELCOME)
    while not shell.over:
        try:
            shell.do(session.prompt(PROMPT))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _session(names: Callable[[], Iterable[str]]) -> PromptSession[str]:
    try:
        import_module("prompt_toolkit")
    except ImportError as error:
        raise sql.missing(error) from error
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    history: History = InMemoryHistory()
    try:
        directory = cache.directory()
        directory.mkdir(parents=True, exist_ok=True)
        history = FileHistory(str(directory / "sql-history"))
    except OSError:
        pass  # what was asked is not remembered
    return PromptSession(
        history=history,
        completer=_completer(names),
        complete_while_typing=False,
        key_bindings=keys,
        multiline=True,
        prompt_continuation=MORE,
        enable_history_search=True,
    )


def is_whole(typed: str) -> bool:
    """Whether Enter means that it is to be carried out, and no line more."""
    text = typed.strip()
    return not text or text.startswith(".") or text.endswith(";")


def _completer(names: Callable[[], Iterable[str]]) -> Completer:
    from prompt_toolkit.completion import Completer, Completion

    class SqlCompleter(Completer):
        def get_completions(self, document: Any, _: Any) -> Iterator[Completion]:
            before = document.get_word_before_cursor(WORD=False)
            for word in words(before, names()):
                yield Completion(word, start_position=-len(before))

    return SqlCompleter()


def words(before: str, names: Iterable[str]) -> list[str]:
    """What a word may become: topics first, in quotes where they need them."""
    low = before.lower()
    topics = [_quoted(name) for name in names if name.lower().startswith(low)]
    columns = [name for name in (*NAMES, CORRUPT) if name.lower().startswith(low)]
    keywords = [word for word in KEYWORDS if low and word.lower().startswith(low)]
    return [*topics, *columns, *keywords]


def _quoted(name: str) -> str:
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'
