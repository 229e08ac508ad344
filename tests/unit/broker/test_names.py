from __future__ import annotations

from typing import Any

import pytest

from penstock.broker.names import (
    accepted_query,
    accepted_subscriber,
    accepted_topic,
    check_ids,
)
from penstock.errors import InvalidBatch, InvalidName, ReservedName

NO_NAMES = [
    ("", "is empty"),
    ("a\nb", "contains characters that cannot be printed"),
    (" a", "begins or ends with a space"),
    ("a ", "begins or ends with a space"),
    ("ä" * 129, "has 258 bytes, limit 256"),
]
NAMES = ["a", "a b", "ü/ö", "x" * 256]


@pytest.mark.parametrize("name", ["t", "a/b", "ü", "a$"])
def test_topic_of_a_client_is_taken(name: str) -> None:
    assert accepted_topic(name) == name


def test_topic_of_the_broker_is_refused() -> None:
    with pytest.raises(ReservedName):
        accepted_topic("$dead-letters")


def test_name_that_no_topic_can_have_is_refused() -> None:
    with pytest.raises(InvalidName):
        accepted_topic("")


@pytest.mark.parametrize("name", NAMES)
def test_subscriber_that_can_be_typed_is_taken(name: str) -> None:
    assert accepted_subscriber(name) == name


@pytest.mark.parametrize(("name", "problem"), NO_NAMES)
def test_subscriber_that_cannot_be_typed_is_refused(name: str, problem: str) -> None:
    with pytest.raises(InvalidName, match=problem):
        accepted_subscriber(name)


def test_subscriber_name_of_the_broker_is_refused() -> None:
    with pytest.raises(ReservedName):
        accepted_subscriber("$line-7")


def test_ids_that_can_be_typed_are_taken() -> None:
    check_ids("id", [None, *NAMES])
    check_ids("id", ["a", None, "b"])
    check_ids("id", [])


@pytest.mark.parametrize(("id_", "problem"), NO_NAMES)
def test_id_that_cannot_be_typed_is_refused(id_: str, problem: str) -> None:
    with pytest.raises(InvalidBatch, match=problem) as caught:
        check_ids("dedup id", ["fine", id_])

    assert caught.value.field == "dedup id"


def test_a_query_has_a_name_that_can_be_typed() -> None:
    assert accepted_query("$any name: 1") == "$any name: 1"

    with pytest.raises(InvalidName, match=r"query name 'a\\n' contains"):
        accepted_query("a\n")


def test_what_is_no_text_is_refused_as_such() -> None:
    number: Any = 5

    with pytest.raises(InvalidBatch, match="no text"):
        check_ids("id", [number])
    with pytest.raises(InvalidName, match="no text"):
        accepted_subscriber(number)
