"""Work of many steps at the desk, told apart from how its steps are carried out.

A plan is a generator: it yields a PageQuestion, and is sent the answer; or a Pause, and
is resumed when it is over. Blocking and async callers drive the same plan.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

# Rows of one question; of those that look at more than they answer.
PAGE_ROWS = 1000
MAX_ROWS = 500


class RowPage(Protocol):
    """Rows behind a name or number; ``more`` says that there are others."""

    @property
    def more(self) -> bool: ...


class NumberedPage(Protocol):
    """Rows from a number on; ``next`` is where to go on, if there are others."""

    @property
    def next(self) -> int | None: ...


Result = TypeVar("Result")
Row = TypeVar("Row")
AnyView = TypeVar("AnyView")
AnyPage = TypeVar("AnyPage", bound=RowPage)
AnyNumbered = TypeVar("AnyNumbered", bound=NumberedPage)


@dataclass(frozen=True, slots=True)
class PageQuestion:
    verb: str
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Plan = Generator[PageQuestion | Pause, object, Result]

AskVerb = Callable[[str, Mapping[str, object]], object]
AskLater = Callable[[str, Mapping[str, object]], Awaitable[object]]


def question(view: type[AnyView], verb: str, **arguments: object) -> Plan[AnyView]:
    """The answer to a question, as the type it has. ``yield from`` it."""
    said = {name: value for name, value in arguments.items() if value is not None}
    answer = yield PageQuestion(verb, _plain(said))
    return msgspec.convert(_plain(answer), view)


def all_rows(
    view: type[AnyPage],
    verb: str,
    rows: Callable[[AnyPage], list[Row]],
    key: Callable[[Row], str | int],
    **arguments: object,
) -> Plan[list[Row]]:
    """Rows of all pages; ``key`` is what the next page begins behind."""
    found: list[Row] = []
    after: str | int | None = None
    arguments.setdefault("limit", PAGE_ROWS)
    while True:
        page = yield from question(view, verb, after=after, **arguments)
        found += rows(page)
        if not page.more or not rows(page):
            return found
        after = key(found[-1])


def first_rows(
    view: type[AnyNumbered],
    verb: str,
    rows: Callable[[AnyNumbered], list[Row]],
    *,
    count: int | None,
    start: int | None = None,
    **arguments: object,
) -> Plan[list[Row]]:
    """Rows from a number on, page after page; not more than ``count``."""
    found: list[Row] = []
    while count is None or len(found) < count:
        limit = MAX_ROWS if count is None else min(count - len(found), MAX_ROWS)
        page = yield from question(view, verb, start=start, limit=limit, **arguments)
        found += rows(page)
        start = page.next
        if start is None:
            break
    return found


def drive_blocking(
    plan: Plan[Result], ask: AskVerb, sleep: Callable[[float], object]
) -> Result:
    """Carry a plan out; what ``ask`` raises ends it."""
    answer: object = None
    try:
        while True:
            match plan.send(answer):
                case PageQuestion(verb, arguments):
                    answer = ask(verb, arguments)
                case Pause(seconds):
                    sleep(seconds)
                    answer = None
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        plan.close()


async def drive(
    plan: Plan[Result], ask: AskLater, sleep: Callable[[float], Awaitable[object]]
) -> Result:
    """Carry a plan out without blocking."""
    answer: object = None
    try:
        while True:
            match plan.send(answer):
                case PageQuestion(verb, arguments):
                    answer = await ask(verb, arguments)
                case Pause(seconds):
                    await sleep(seconds)
                    answer = None
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        plan.close()


def _plain(value: Any) -> Any:
    """As it travels; a desk in this process gives and takes objects."""
    return msgspec.to_builtins(value, builtin_types=(bytes,))
