from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import (
    InvalidArgument,
    ReservedName,
    UnknownComment,
    UnknownTopic,
)
from tests.unit.desk.office import Office


def ask(office: Office, verb: str, **arguments: Any) -> Any:
    return office.desk.ask(verb, {"name": "t", **arguments})


def test_documentation_is_written_read_and_removed(office: Office) -> None:
    office.publish("t", b"1")
    assert ask(office, "topics.describe").text == ""

    written = ask(office, "topics.describe", text="# Orders", by="ann")
    office.commit()
    office.restart()

    assert ask(office, "topics.describe") == written
    assert (written.text, written.by) == ("# Orders", "ann")
    assert office.desk.topic(name="t").documented
    removed = ask(office, "topics.describe", text="")
    assert (removed.text, removed.at_ms) == ("", None)


def test_comments_are_added_paged_and_removed(office: Office) -> None:
    office.publish("t", b"1")
    for text in ("one", "two", "three"):
        ask(office, "topics.comment", text=text, by="ann")

    page = ask(office, "topics.comments", limit=2)
    rest = ask(office, "topics.comments", after=2)

    assert [(row.number, row.text) for row in page.comments] == [(1, "one"), (2, "two")]
    assert (page.more, rest.more) == (True, False)
    assert [row.text for row in rest.comments] == ["three"]
    assert ask(office, "topics.uncomment", number=2).text == "two"
    assert office.desk.topic(name="t").comments == 2
    assert ask(office, "topics.comment", text="four").number == 4
    with pytest.raises(UnknownComment):
        ask(office, "topics.uncomment", number=2)


def test_only_topics_of_clients_have_notes(office: Office) -> None:
    with pytest.raises(UnknownTopic):
        ask(office, "topics.comment", text="x")
    with pytest.raises(ReservedName):
        ask(office, "topics.describe", name="$errors", text="x")
    with pytest.raises(InvalidArgument):
        ask(office, "topics.comment", text="")
