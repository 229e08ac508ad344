"""Strays are read from a real broker, and told in parts that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Client, connect
from penstock.client.lasting import LastingConnection
from penstock.pipeline import letters as letters_module
from penstock.pipeline.letters import Letter, letters, parts
from penstock.pipeline.options import BrokerAddress
from penstock.pipeline.outlet import FeedNote, QueryFeed
from penstock.pipeline.portion import Stray
from tests.local_server import LocalServer, local_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path) as server:
        yield server


def test_letters_are_read_over_one_connection(server: LocalServer) -> None:
    opened: list[Client] = []

    def opener() -> Client:
        opened.append(connect(server.data))
        return opened[-1]

    with connect(server.data) as client:
        for begin in (0, 50):
            client.publish("t", [b"%d" % one for one in range(begin, begin + 50)])
    strays = [Stray(3, "a"), Stray(7, "b", b"told"), Stray(50, "d"), Stray(99, "e")]

    with LastingConnection(opener, 0) as line:
        found = list(letters(line, "t", strays))

    assert found == [
        Letter(one.offset, one.reason, one.raw or b"%d" % one.offset) for one in strays
    ]
    assert len(opened) == 1


def test_of_a_large_event_the_beginning_is_kept_and_said_where_it_is(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters_module, "MAX_LETTER_BYTES", 3)
    with connect(server.data) as client:
        client.publish("t", [b"abc", b"abcd"])

    with LastingConnection(lambda: connect(server.data), 0) as line:
        whole, cut = letters(line, "t", [Stray(0, "why"), Stray(1, "why")])

    assert (whole.raw, whole.reason) == (b"abc", "why")
    assert cut.raw == b"abc"
    assert cut.reason == "why; this is the beginning of event 1 of t"


def test_an_event_that_is_not_there_any_more_is_a_letter_all_the_same(
    server: LocalServer,
) -> None:
    with connect(server.data) as client:
        client.publish("t", [b"one"])

    with LastingConnection(lambda: connect(server.data), 0) as line:
        (found,) = letters(line, "t", [Stray(5, "why")])

    assert found == Letter(5, "why; event 5 of t is removed", b"")


def test_there_are_no_letters_of_no_strays(server: LocalServer) -> None:
    with LastingConnection(lambda: connect(server.data), 0) as line:
        assert list(letters(line, "t", [])) == []


def test_parts_are_bounded_in_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters_module, "PART_LETTERS", 3)
    monkeypatch.setattr(letters_module, "PART_BYTES", 10)
    sizes = [1, 1, 1, 1, 9, 4, 6, 11, 2]
    given = [Letter(place, "", b"x" * size) for place, size in enumerate(sizes)]

    found = [[len(one.raw) for one in part] for part in parts(given)]

    assert found == [[1, 1, 1], [1, 9], [4, 6], [11], [2]]


@pytest.mark.slow
def test_more_letters_can_be_told_than_a_message_holds(server: LocalServer) -> None:
    given = (Letter(place, "why", bytes(1 << 20)) for place in range(70))
    outlet = QueryFeed(BrokerAddress(data=str(server.data)).feed)

    told = outlet.last_note("q")
    assert told is not None
    outlet.put_letters(told, 0, given)
    outlet.put([], FeedNote(0))
    outlet.close()

    with connect(server.data) as client:
        last: Any = client.ask("dead-letters.show", number=69)
    assert (last["reason"], len(last["raw"])) == ("why", 1 << 20)
