from __future__ import annotations

from typing import Any

import pytest

from penstock.embedded.topic import Topic
from penstock.errors import InvalidName, ReservedName


def test_a_topic_knows_its_name_and_type() -> None:
    topic = Topic("numbers", int, doc="Numbers.", compatibility="full")

    assert (topic.name, topic.codec.type) == ("numbers", int)
    assert (topic.doc, topic.compatibility, topic.registers) == (
        "Numbers.",
        "full",
        True,
    )
    assert repr(topic) == "Topic('numbers', int)"


def test_without_a_type_payloads_are_bytes() -> None:
    assert Topic("t").codec.raw


@pytest.mark.parametrize("type_", [int | None, dict[str, int], Any, list])
def test_every_type_can_be_shown(type_: Any) -> None:
    assert repr(Topic("t", type_)).startswith("Topic('t', ")


def test_a_name_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(InvalidName):
        Topic("")
    with pytest.raises(ReservedName):
        Topic("$mine")
