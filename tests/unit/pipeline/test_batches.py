"""A batch is told once; what it does with frames is in tests/spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.client import connect
from penstock.client.feed import Events
from penstock.errors import ConnectionLost
from penstock.pipeline import letters
from penstock.pipeline.batches import Outlet, Told, feed_name, query_of
from penstock.pipeline.letters import Letter
from penstock.pipeline.options import Broker
from tests.local_server import local_server


def test_a_batch_that_was_told_is_not_told_again(tmp_path: Path) -> None:
    frame: Any = batch_of("q")
    with local_server(tmp_path):
        broker = Broker(data=str(tmp_path))
        first, second = Outlet(broker.feed), Outlet(broker.feed)

        for outlet, batch in ((first, 0), (first, 4), (second, 4), (second, 5)):
            told = Events("t", [b"%d" % batch])
            outlet.put(frame, batch, told, [Letter(batch, "why", b"letter %d" % batch)])
        first.close()
        second.close()

        with connect(tmp_path) as client:
            found = client.fetch("t", 0, 100).batches
            answer: Any = client.ask("dead-letters")
    payloads = [event.payload for batch in found for event in batch.events()]
    assert payloads == [b"0", b"4", b"5"]
    assert [one["raw"] for one in answer["letters"]] == [
        b"letter 0",
        b"letter 4",
        b"letter 5",
    ]


def test_letters_that_were_told_before_a_crash_are_not_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "PART_LETTERS", 2)
    frame: Any = batch_of("q")
    strays = [Letter(offset, "why", b"%d" % offset) for offset in range(30, 37)]

    def cut_off() -> Iterator[Letter]:
        yield from strays[:5]
        raise ConnectionLost("here", "killed")

    with local_server(tmp_path):
        broker = Broker(data=str(tmp_path))
        first, second = Outlet(broker.feed), Outlet(broker.feed)
        first.put(frame, 7, Events("t", [b"7"]))
        with pytest.raises(ConnectionLost):
            first.put(frame, 8, Events("t", [b"8"]), cut_off())
        first.close()
        for _ in range(2):
            second.put(frame, 8, Events("t", [b"8"]), strays)
        second.close()

        with connect(tmp_path) as client:
            found = client.fetch("t", 0, 100).batches
            told: Any = client.ask("dead-letters")
    assert [event.payload for batch in found for event in batch.events()] == [
        *(b"7", b"8"),
    ]
    assert [one["raw"] for one in told["letters"]] == [one.raw for one in strays]


@pytest.mark.parametrize(
    ("note", "told"),
    [
        ("", Told()),
        ("0", Told(0)),
        ("17", Told(17)),
        ("17 letters to 40", Told(17, 40)),
        ("17 letters to 0", Told(17, 0)),
    ],
)
def test_a_note_says_what_was_told(note: str, told: Told) -> None:
    assert Told.of(note) == told
    assert Told.of(str(told)) == told


def test_another_checkpoint_begins_anew(tmp_path: Path) -> None:
    with local_server(tmp_path):
        broker = Broker(data=str(tmp_path))

        for query in ("one", "two"):
            outlet = Outlet(broker.feed)
            frame: Any = batch_of(query)
            outlet.put(frame, 0, Events("t", [query.encode()]))
            outlet.close()

        with connect(tmp_path) as client:
            found = client.fetch("t", 0, 100).batches
    payloads = [event.payload for batch in found for event in batch.events()]
    assert payloads == [b"one", b"two"]


def test_a_feed_has_the_name_of_its_query() -> None:
    frame: Any = batch_of("17")

    assert feed_name(query_of(frame)) == "pipeline:17"


def batch_of(query: str) -> object:
    """As much of a frame as is asked which query it is of."""
    properties = {"sql.streaming.queryId": query}
    context = SimpleNamespace(getLocalProperty=properties.get)
    return SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))
