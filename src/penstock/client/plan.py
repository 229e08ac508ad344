"""Work of many steps at the desk, told apart from how its steps are carried out.

A plan is a generator: it yields a Question, and is sent the answer; or a Pause, and is
resumed when it is over. Whoever blocks and whoever awaits drive the same plan.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

Result = TypeVar("Result")
View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Question:
    verb: str
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Plan = Generator[Question | Pause, object, Result]

Ask = Callable[[str, Mapping[str, object]], object]
AskLater = Callable[[str, Mapping[str, object]], Awaitable[object]]


def question(view: type[View], verb: str, **arguments: object) -> Plan[View]:
    """The answer to a question, as the type it has. ``yield from`` it."""
    said = {name: value for name, value in arguments.items() if value is not None}
    answer = yield Question(verb, _plain(said))
    return msgspec.convert(_plain(answer), view)


def drive_blocking(
    plan: Plan[Result], ask: Ask, sleep: Callable[[float], object]
) -> Result:
    """Carry a plan out; what ``ask`` raises ends it."""
    answer: object = None
    try:
        while True:
            match plan.send(answer):
                case Question(verb, arguments):
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
                case Question(verb, arguments):
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
