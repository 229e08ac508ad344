"""A batch is told once, whatever is cut off; Spark's part of it is in tests/spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from penstock.client import connect
from penstock.client.feed import Feed, FeedEvents
from penstock.desk.sinks import MAX_NOTE_BYTES
from penstock.errors import ConnectionLost
from penstock.model.event import MESSAGE_FIELD
from penstock.pipeline import letters
from penstock.pipeline.batch import query_of, statistics
from penstock.pipeline.letters import Letter
from penstock.pipeline.notes import WINDOW_MS, Took, roughly
from penstock.pipeline.options import BrokerAddress
from penstock.pipeline.outlet import FeedNote, QueryFeed, feed_name
from penstock.pipeline.statistics import Windows, closed
from tests.effort import effort
from tests.local_server import local_server


def test_letters_that_were_told_before_a_crash_are_not_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "PART_LETTERS", 2)
    strays = [Letter(offset, "why", b"%d" % offset) for offset in range(30, 37)]

    def cut_off() -> Iterator[Letter]:
        yield from strays[:5]
        raise ConnectionLost("here", "killed")

    with local_server(tmp_path):
        broker = BrokerAddress(data=str(tmp_path))
        first, second = QueryFeed(broker.feed), QueryFeed(broker.feed)
        assert first.last_note() is None, "it does not know of what"
        first.last_note("q")
        first.put([FeedEvents("t", [b"7"])], FeedNote(7))
        with pytest.raises(ConnectionLost):
            first.put_letters(known(first), 8, cut_off())
        first.close()
        second.last_note("q")
        assert (known(second).batch, known(second).letters_to) == (8, 33)
        second.put_letters(known(second), 8, strays)
        second.put([FeedEvents("t", [b"8"])], FeedNote(8))
        second.close()

        with connect(tmp_path) as client:
            found = client.fetch("t", 0, 100).batches
            told: Any = client.ask("dead-letters")
    assert [event.payload for batch in found for event in batch.events()] == [
        *(b"7", b"8"),
    ]
    assert [one["raw"] for one in told["letters"]] == [one.raw for one in strays]


def test_after_an_answer_was_lost_it_is_asked_again_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local_server(tmp_path):
        outlet = QueryFeed(BrokerAddress(data=str(tmp_path)).feed)
        outlet.last_note("q")
        put = Feed.put

        def stored_without_a_word(feed: Feed, *args: Any, **more: Any) -> None:
            put(feed, *args, **more)
            raise ConnectionLost("here", "no answer")

        with monkeypatch.context() as lost:
            lost.setattr(Feed, "put", stored_without_a_word)
            with pytest.raises(ConnectionLost):
                outlet.put([FeedEvents("t", [b"7"])], FeedNote(7))
        assert outlet.last_note() is None
        assert outlet.last_note("q") == FeedNote(7)
        outlet.put([FeedEvents("t", [b"8"])], FeedNote(8))

        with connect(tmp_path) as client:
            found = client.fetch("t", 0, 100).batches
        outlet.close()
    assert [event.payload for batch in found for event in batch.events()] == [
        *(b"7", b"8"),
    ]


def test_people_see_the_text_of_a_statistic(tmp_path: Path) -> None:
    with local_server(tmp_path):
        outlet = QueryFeed(BrokerAddress(data=str(tmp_path)).feed)
        windows = Windows()
        windows.add(0, Took({7: 1}, {3: 1}, {2: 1}))
        outlet.last_note("q")
        outlet.put(statistics(closed(windows, WINDOW_MS)), FeedNote(7))
        with connect(tmp_path) as client:
            (batch,) = client.fetch("logger_stats", 0, 1).batches
        outlet.close()

    (event,) = batch.events()
    assert event.headers == {MESSAGE_FIELD: "text"}
    assert msgspec.json.decode(event.payload)["text"].startswith("[StatisticWorker")


def test_letters_leave_open_windows_as_they_are(tmp_path: Path) -> None:
    windows = Windows()
    windows.add(5_000, Took({1: 1}, {1: 1}, {1: 1}))
    with local_server(tmp_path):
        outlet = QueryFeed(BrokerAddress(data=str(tmp_path)).feed)
        outlet.last_note("q")
        outlet.put([], FeedNote(3, windows=windows, samples=9))

        outlet.put_letters(known(outlet), 4, [Letter(30, "why", b"x")])

        told = known(outlet)
        outlet.close()
    assert told == FeedNote(4, 30, windows, 9)


@pytest.mark.parametrize(
    "told", [FeedNote(), FeedNote(17), FeedNote(17, 40), FeedNote(0, 0)]
)
def test_a_note_says_what_was_told(told: FeedNote) -> None:
    assert FeedNote.of(str(told)) == told
    assert FeedNote.of("") == FeedNote()


@pytest.mark.slow
def test_a_note_is_small_enough_for_a_feed_whatever_happens() -> None:
    windows = Windows()
    # All times that there are, from a millisecond to some years.
    times = {roughly(ms): 10**6 for ms in range(1, 1000)}
    for digits in range(1, 3):
        times |= {ms * 10**digits: 10**6 for ms in range(100, 1000)}
    for digits in range(4, 10):
        times |= {ms * 10**digits: 10**6 for ms in range(10, 100)}
    assert times.keys() == {roughly(ms) for ms in times}
    # Of a topic with few tweets, a batch is of many windows: all but one are told.
    count = effort(300, 10_000)
    for number in range(count):
        begin_ms = (1 << 42) + number * WINDOW_MS
        windows.add(begin_ms, Took(times, {9: 10**9}, {9: 10**9}))
        if number % (count // 10) == 0:
            closed(windows, windows.reached_ms)
    closed(windows, windows.reached_ms)

    assert len(str(FeedNote(10**9, None, windows, 10**12))) < MAX_NOTE_BYTES


def test_another_checkpoint_begins_anew(tmp_path: Path) -> None:
    with local_server(tmp_path):
        broker = BrokerAddress(data=str(tmp_path))

        for query in ("one", "two"):
            outlet = QueryFeed(broker.feed)
            assert outlet.last_note(query) == FeedNote()
            outlet.put([FeedEvents("t", [query.encode()])], FeedNote(0))
            outlet.close()

        with connect(tmp_path) as client:
            found = client.fetch("t", 0, 100).batches
    payloads = [event.payload for batch in found for event in batch.events()]
    assert payloads == [b"one", b"two"]


def test_a_feed_has_the_name_of_its_query() -> None:
    properties = {"sql.streaming.queryId": "17"}
    context = SimpleNamespace(getLocalProperty=properties.get)
    frame: Any = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))

    assert feed_name(query_of(frame)) == "pipeline:17"


def known(outlet: QueryFeed) -> FeedNote:
    told = outlet.last_note()
    assert told is not None
    return msgspec.structs.replace(told)
