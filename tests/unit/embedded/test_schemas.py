from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from penstock.clock import SystemClock
from penstock.embedded.schemas import TopicBook, ensure_topic, register
from penstock.embedded.topic import Topic
from penstock.errors import InvalidName, TopicExists
from penstock.model.remote_errors import remote_error


class Order(msgspec.Struct):
    total: int


class Link:
    """Keeps what it is asked, and answers as told."""

    def __init__(self, **answers: object) -> None:
        self.clock = SystemClock()
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers = answers
        self.marked: object = 1

    def mark(self, topic: str) -> object:
        return self.marked

    async def ask(self, verb: str, arguments: Any) -> object:
        self.asked.append((verb, dict(arguments)))
        answer = self.answers.get(verb.replace(".", "_"))
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_schema_of_a_type_is_stored() -> None:
    link: Any = Link()

    asyncio.run(register(link, Topic("t", Order, compatibility="full"), "me"))

    [(verb, arguments)] = link.asked
    assert verb == "schemas.register"
    assert arguments["topic"] == "t"
    assert arguments["mode"] == "full"
    assert arguments["by"] == "me"
    assert "Order" in arguments["type"]
    assert "total" in str(arguments["schema"])


def test_bytes_and_views_of_others_have_nothing_to_store() -> None:
    link: Any = Link()

    asyncio.run(register(link, Topic("t"), "me"))
    asyncio.run(register(link, Topic("t", Order, register=False), "me"))

    assert link.asked == []


@pytest.mark.parametrize(("known", "told"), [("", True), ("Orders.", False)])
def test_a_description_is_stored_if_it_is_new(known: str, told: bool) -> None:
    link: Any = Link(topics_describe={"text": known})

    asyncio.run(register(link, Topic("t", doc="Orders."), "me"))

    said = [one for verb, one in link.asked if verb == "topics.describe"]
    assert ({"name": "t", "text": "Orders.", "by": "me"} in said) is told


def test_a_topic_that_exists_is_fine() -> None:
    link: Any = Link(topics_create=TopicExists("t"))

    asyncio.run(ensure_topic(link, "t"))

    assert link.asked == [("topics.create", {"name": "t"})]


@pytest.mark.parametrize(
    "error", [InvalidName("t", "is bad"), remote_error("LimitReached", "enough")]
)
def test_other_errors_are_told(error: Exception) -> None:
    link: Any = Link(topics_create=error)

    with pytest.raises(type(error)):
        asyncio.run(ensure_topic(link, "t"))


def test_a_topic_is_told_of_once() -> None:
    link: Any = Link()
    book, topic = TopicBook(link, "me"), Topic("t", Order)

    async def run() -> None:
        await book.add(topic)
        await book.add(Topic("t", Order))

    asyncio.run(run())

    assert book.knows(topic) and not book.knows(Topic("t", int))
    assert len(link.asked) == 1


@pytest.mark.parametrize("mark", [2, None])
def test_a_topic_that_was_made_anew_is_told_of_again(mark: object) -> None:
    link: Any = Link()
    book, topic = TopicBook(link, "me"), Topic("t", Order)
    asyncio.run(book.add(topic))

    link.marked = mark

    assert not book.knows(topic)
    asyncio.run(book.add(topic))
    assert book.knows(topic) and len(link.asked) == 2


def test_a_topic_that_is_deleted_is_forgotten() -> None:
    link: Any = Link()
    book, topic = TopicBook(link, "me"), Topic("t", Order)
    asyncio.run(book.add(topic))

    book.forget("u")
    before = book.knows(topic)
    book.forget("t")

    assert before and not book.knows(topic)
