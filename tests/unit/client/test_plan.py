from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
import pytest

from penstock.client.plan import (
    PageQuestion,
    Pause,
    Plan,
    all_rows,
    drive,
    drive_blocking,
    question,
)
from penstock.desk.views.letters import Done, Filter
from penstock.errors import NotRunning

DONE = Done(number=1, done=True, text="republished")


def plan() -> Plan[str]:
    """Asks, pauses, asks again."""
    first = yield PageQuestion("first", {"a": 1})
    pause: object = yield Pause(0.5)
    second = yield PageQuestion("second")
    return f"{first} {pause} {second}"


class Office:
    """Answers with the verb, and remembers everything."""

    def __init__(self) -> None:
        self.log: list[object] = []

    def ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        self.log.append((verb, dict(arguments)))
        return verb.upper()

    def sleep(self, seconds: float) -> str:
        self.log.append(seconds)
        return "slept"

    async def ask_later(self, verb: str, arguments: Mapping[str, object]) -> object:
        return self.ask(verb, arguments)

    async def sleep_later(self, seconds: float) -> str:
        return self.sleep(seconds)


def test_a_plan_is_carried_out_alike_by_who_blocks_and_who_awaits() -> None:
    here, there = Office(), Office()

    blocking = drive_blocking(plan(), here.ask, here.sleep)
    awaited = asyncio.run(drive(plan(), there.ask_later, there.sleep_later))

    assert blocking == awaited == "FIRST None SECOND"
    assert here.log == there.log == [("first", {"a": 1}), 0.5, ("second", {})]


def test_what_asking_raises_ends_the_plan() -> None:
    closed: list[bool] = []

    def careful() -> Plan[None]:
        try:
            yield PageQuestion("first")
        finally:
            closed.append(True)

    def ask(verb: str, arguments: Mapping[str, object]) -> object:
        raise NotRunning("there", "nothing listens there")

    async def ask_later(verb: str, arguments: Mapping[str, object]) -> object:
        return ask(verb, arguments)

    with pytest.raises(NotRunning):
        drive_blocking(careful(), ask, Office().sleep)
    with pytest.raises(NotRunning):
        asyncio.run(drive(careful(), ask_later, Office().sleep_later))

    assert closed == [True, True]


@pytest.mark.parametrize("answer", [DONE, {"number": 1, "done": True, "text": "x"}])
def test_an_answer_has_the_type_it_was_asked_for(answer: object) -> None:
    asked: list[PageQuestion] = []

    def ask(verb: str, arguments: Mapping[str, object]) -> object:
        asked.append(PageQuestion(verb, arguments))
        return answer

    done = drive_blocking(
        question(Done, "verb", filter=Filter(topic="t"), start=None, payload=b"x"),
        ask,
        Office().sleep,
    )

    assert isinstance(done, Done)
    (said,) = asked
    assert said.verb == "verb"
    assert "start" not in said.arguments
    assert said.arguments["payload"] == b"x"
    filter_ = said.arguments["filter"]
    assert isinstance(filter_, dict)
    assert filter_["topic"] == "t"


class Page(msgspec.Struct):
    names: list[str]
    more: bool


@pytest.mark.parametrize(
    ("pages", "asked", "found"),
    [
        ([Page([], False)], [None], []),
        (
            [Page(["a", "b"], True), Page(["c"], False)],
            [None, "b"],
            ["a", "b", "c"],
        ),
        ([Page(["a"], True), Page([], True)], [None, "a"], ["a"]),
    ],
    ids=["nothing", "two pages", "an empty page is the last"],
)
def test_rows_of_all_pages_are_asked_for_behind_the_last_one(
    pages: list[Page], asked: list[str | None], found: list[str]
) -> None:
    behind: list[object] = []
    answers = iter(pages)

    def ask(verb: str, arguments: Mapping[str, object]) -> object:
        behind.append(arguments.get("after"))
        assert (verb, arguments["own"]) == ("names", True)
        return next(answers)

    plan = all_rows(Page, "names", lambda page: page.names, str, own=True)

    assert drive_blocking(plan, ask, Office().sleep) == found
    assert behind == asked
