from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from penstock.client import connect
from penstock.errors import DataLost, InvalidOption, UnknownTopic
from penstock.log import Log
from penstock.spark.stream import ProgressReporter, TopicStreamReader
from tests.local_server import local_server
from tests.unit.spark.scene import append, rows, source

ALL = ReadAllAvailable()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log that is being written, with topics t of 10 events and u of 2."""
    with Log.open(tmp_path) as log:
        for topic, count in {"t": 10, "u": 2}.items():
            log.create_topic(topic)
            append(log, topic, count)
        log.sync()
        yield log


def reader(path: Path, **options: str) -> TopicStreamReader:
    given = {"subscribe": "t", "startingOffsets": "earliest", **options}
    if "subscribePattern" in options:
        del given["subscribe"]
    one = source(path=str(path), **given)
    return one.streamReader(one.schema())


def kept(offset: dict[str, Any]) -> dict[str, Any]:
    """An offset as it comes back from a checkpoint."""
    back: dict[str, Any] = json.loads(json.dumps(offset))
    return back


def offsets(one: TopicStreamReader, start: Any, end: Any) -> list[int]:
    copy = pickle.loads(pickle.dumps(one))
    parts = one.partitions(kept(start), kept(end))
    return [row["offset"] for part in parts for row in rows(list(copy.read(part)))]


def batches(
    one: TopicStreamReader, start: Any, limit: ReadLimit = ALL
) -> Iterator[tuple[Any, Any]]:
    while (end := one.latestOffset(kept(start), limit)) != start:
        yield start, end
        start = end


def test_batches_are_all_there_is(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path)

    first = one.initialOffset()
    second = one.latestOffset(first, ALL)
    append(log, "t", 3, start=10)
    third = one.latestOffset(second, ALL)

    assert offsets(one, first, second) == list(range(10))
    assert offsets(one, second, third) == [10, 11, 12]
    assert third["t"] == {"0": 13}


def test_nothing_new_is_the_same_offset(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path)
    first = one.initialOffset()
    end = one.latestOffset(first, ALL)

    assert json.dumps(one.latestOffset(kept(end), ALL)) == json.dumps(end)
    assert one.partitions(end, end) == []


def test_a_query_knows_itself_by_its_offsets(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path)
    end = one.latestOffset(one.initialOffset(), ALL)
    append(log, "t", 1, start=10)

    again = reader(tmp_path).latestOffset(kept(end), ALL)

    assert again["$penstock"] == {
        "query": end["$penstock"]["query"],
        "numbers": {"t": log.topic("t").id},
    }


def test_where_a_query_begins_is_asked_twice_and_one_place(
    log: Log, tmp_path: Path
) -> None:
    one = reader(tmp_path, startingOffsets="latest")

    first = one.initialOffset()
    append(log, "t", 5, start=10)

    assert one.initialOffset() == first
    assert first["t"] == {"0": 10}


def test_the_first_batch_is_the_same_after_a_crash(log: Log, tmp_path: Path) -> None:
    """Spark keeps only its end, and asks a new process where it begins."""
    one = reader(tmp_path, startingOffsets="latest")
    first = one.initialOffset()
    append(log, "t", 5, start=10)
    end = one.latestOffset(first, ALL)
    append(log, "t", 5, start=15)

    other = reader(tmp_path, startingOffsets="latest")

    assert offsets(other, other.initialOffset(), end) == [10, 11, 12, 13, 14]
    following = other.latestOffset(kept(end), ALL)
    assert offsets(other, end, following) == [15, 16, 17, 18, 19]


def test_a_batch_without_data_has_no_tasks(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path)
    first = one.initialOffset()
    end = one.latestOffset(first, ALL)

    assert one.partitions(first, first) == one.partitions(kept(end), end) == []


def test_a_batch_with_a_new_topic_is_the_same_after_a_crash(
    log: Log, tmp_path: Path
) -> None:
    one = reader(tmp_path, subscribePattern="t|new")
    end = one.latestOffset(one.initialOffset(), ALL)
    log.create_topic("new")
    append(log, "new", 5)
    log.trim("new", 2)
    log.sync()
    following = one.latestOffset(kept(end), ALL)

    other = reader(tmp_path, subscribePattern="t|new")

    assert offsets(other, end, following) == [2, 3, 4]


def test_batches_are_limited_and_lose_nothing(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path, subscribe="t,u", maxOffsetsPerTrigger="5")
    limit = one.getDefaultReadLimit()

    parts = [offsets(one, *pair) for pair in batches(one, one.initialOffset(), limit)]

    assert limit == ReadMaxRows(5)
    assert [len(part) for part in parts] == [5, 5, 2]
    assert sorted(sum(parts, [])) == sorted([*range(10), 0, 1])


def test_a_small_topic_gets_its_share(log: Log, tmp_path: Path) -> None:
    append(log, "t", 1000, start=10)
    one = reader(tmp_path, subscribe="t,u", maxOffsetsPerTrigger="5")

    end = one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())

    assert (end["t"], end["u"]) == ({"0": 4}, {"0": 1})


def test_without_a_limit_all_is_wanted(log: Log, tmp_path: Path) -> None:
    assert reader(tmp_path).getDefaultReadLimit() == ReadAllAvailable()
    limited = reader(tmp_path, maxOffsetsPerTrigger="5")
    end = limited.latestOffset(limited.initialOffset(), ALL)
    assert end["t"] == {"0": 10}


def test_available_now_ends_where_it_began(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path, subscribePattern="t|u|new", maxOffsetsPerTrigger="5")
    one.prepareForTriggerAvailableNow()
    append(log, "t", 5, start=10)
    log.create_topic("new")
    append(log, "new", 5)

    parts = [
        offsets(one, *pair)
        for pair in batches(one, one.initialOffset(), one.getDefaultReadLimit())
    ]

    assert sum(map(len, parts)) == 12


def test_available_now_of_a_query_that_is_there_already(
    log: Log, tmp_path: Path
) -> None:
    one = reader(tmp_path)
    end = one.latestOffset(one.initialOffset(), ALL)

    one.prepareForTriggerAvailableNow()

    assert one.latestOffset(kept(end), ALL) == end


def test_what_there_is_is_reported(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path, maxOffsetsPerTrigger="5")
    one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())

    assert one.reportLatestOffset() == {"t": {"0": 10}}


def test_new_topics_of_a_pattern_appear(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path, subscribePattern="new.*", startingOffsets="latest")
    first = one.initialOffset()
    log.create_topic("new")
    append(log, "new", 3)

    second = one.latestOffset(first, ALL)
    log.create_topic("newer")
    append(log, "newer", 2)
    third = one.latestOffset(second, ALL)

    assert offsets(one, first, second) == [0, 1, 2]
    assert offsets(one, second, third) == [0, 1]


def test_a_topic_that_is_not_there(log: Log, tmp_path: Path) -> None:
    with pytest.raises(UnknownTopic):
        reader(tmp_path, subscribe="none").initialOffset()


def test_a_topic_that_comes_later_can_be_waited_for(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path, subscribe="none", failOnDataLoss="false")
    first = one.initialOffset()
    assert one.latestOffset(first, ALL) == first

    log.create_topic("none")
    append(log, "none", 2)

    assert offsets(one, first, one.latestOffset(first, ALL)) == [0, 1]


def test_retention_that_overtakes_is_an_error_or_is_gone_around(
    log: Log, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = reader(tmp_path), reader(tmp_path, failOnDataLoss="false")
    first = one.initialOffset()
    log.trim("t", 4)
    log.sync()

    with pytest.raises(
        DataLost, match="t: offset 0 is not there any more, it has 4 to"
    ):
        one.latestOffset(kept(first), ALL)

    end = other.latestOffset(kept(first), ALL)
    assert offsets(other, first, end) == [4, 5, 6, 7, 8, 9]
    assert "topic t: offset 0 is not there any more" in caplog.text


def test_a_topic_that_is_deleted_is_an_error_or_is_left_out(
    log: Log, tmp_path: Path
) -> None:
    one = reader(tmp_path, subscribe="t,u")
    other = reader(tmp_path, subscribe="t,u", failOnDataLoss="false")
    end = one.latestOffset(one.initialOffset(), ALL)
    log.delete_topic("u")
    append(log, "t", 1, start=10)

    with pytest.raises(DataLost, match="topic u: it was deleted"):
        one.latestOffset(kept(end), ALL)

    following = other.latestOffset(kept(end), ALL)
    assert "u" not in following
    assert offsets(other, end, following) == [10]


@pytest.mark.parametrize("options", [{}, {"subscribePattern": "t.*"}])
def test_a_topic_that_is_not_wanted_any_more_was_not_deleted(
    log: Log, tmp_path: Path, options: dict[str, str]
) -> None:
    one = reader(tmp_path, subscribe="t,u")
    end = one.latestOffset(one.initialOffset(), ALL)
    append(log, "t", 1, start=10)

    with pytest.raises(DataLost, match="topic u: .* not among its topics any more"):
        reader(tmp_path, **options).latestOffset(kept(end), ALL)

    other = reader(tmp_path, failOnDataLoss="false", **options)
    assert offsets(other, end, other.latestOffset(kept(end), ALL)) == [10]


def made_again(log: Log, topic: str, count: int) -> None:
    log.delete_topic(topic)
    log.create_topic(topic)
    append(log, topic, count)
    log.sync()


@pytest.mark.parametrize("count", [0, 2, 10, 15])
def test_a_topic_that_was_made_again_begins_again(
    log: Log, tmp_path: Path, count: int
) -> None:
    """Also if it has as many events as before, or more."""
    one = reader(tmp_path)
    other = reader(tmp_path, failOnDataLoss="false")
    end = one.latestOffset(one.initialOffset(), ALL)
    made_again(log, "t", count)

    with pytest.raises(DataLost, match="topic t: it was deleted and made again"):
        one.latestOffset(kept(end), ALL)

    following = other.latestOffset(kept(end), ALL)
    assert offsets(other, end, following) == list(range(count))
    assert other.latestOffset(kept(following), ALL) == following


def test_a_topic_that_was_made_again_before_the_first_batch(
    log: Log, tmp_path: Path
) -> None:
    one = reader(tmp_path, startingOffsets="latest", failOnDataLoss="false")
    first = one.initialOffset()
    made_again(log, "t", 10)

    end = one.latestOffset(kept(first), ALL)

    assert offsets(one, first, end) == list(range(10))


def test_a_batch_is_not_repeated_with_events_of_another_topic(
    log: Log, tmp_path: Path
) -> None:
    one = reader(tmp_path)
    first = one.initialOffset()
    end = one.latestOffset(first, ALL)
    made_again(log, "t", 15)

    with pytest.raises(DataLost, match="topic t: it was deleted and made again"):
        offsets(reader(tmp_path), first, end)

    careless = reader(tmp_path, failOnDataLoss="false")
    assert offsets(careless, first, end) == []


def test_a_task_does_not_read_events_of_another_topic(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path)
    other = reader(tmp_path, failOnDataLoss="false")
    first = one.initialOffset()
    (part,) = one.partitions(first, one.latestOffset(first, ALL))
    made_again(log, "t", 15)

    with pytest.raises(DataLost, match="topic t: it was deleted and made again"):
        list(one.read(part))

    assert list(other.read(part)) == []


def test_a_checkpoint_without_numbers_goes_on(log: Log, tmp_path: Path) -> None:
    end = {"$penstock": {"query": "q"}, "t": {"0": 4}}

    following = reader(tmp_path).latestOffset(end, ALL)

    assert offsets(reader(tmp_path), end, following) == list(range(4, 10))


def test_a_stream_has_no_end(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="endingOffsets"):
        reader(tmp_path, endingOffsets="latest")


def test_tasks_are_cut_by_the_options(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path, minPartitions="3")
    first = one.initialOffset()

    assert len(one.partitions(first, one.latestOffset(first, ALL))) == 3


def test_the_broker_sees_where_a_query_stands(tmp_path: Path) -> None:
    with local_server(tmp_path), connect(tmp_path) as client:
        client.publish("t", [b"x"] * 10)

        def lags() -> dict[str, int]:
            found: Any = client.ask("subscriptions", topic="t")
            return {one["subscriber"]: one["lag"] for one in found["subscriptions"]}

        one, named = reader(tmp_path), reader(tmp_path, progress="mine")
        silent = reader(tmp_path, progress="off")
        for each in (one, named, silent):
            first = each.initialOffset()
            end = each.latestOffset(first, ALL)
        query = one.initialOffset()["$penstock"]["query"]
        assert lags() == {f"spark:{query}": 10, "spark:mine": 10}

        # The batch up to there is done when Spark goes on from there.
        assert named.latestOffset(kept(end), ALL) == end
        assert lags()["spark:mine"] == 0
        for each in (one, named, silent):
            each.stop()


def test_the_last_progress_is_told_when_a_query_stops(tmp_path: Path) -> None:
    with local_server(tmp_path), connect(tmp_path) as client:
        client.publish("t", [b"x"] * 10)
        one = reader(tmp_path, progress="mine")
        first = one.initialOffset()
        end = one.latestOffset(first, ReadMaxRows(5))
        one.latestOffset(kept(end), ReadMaxRows(1))  # so soon that it is not told

        one.stop()
        one.stop()

        found: Any = client.ask(
            "subscriptions.show", subscriber="spark:mine", topic="t"
        )
        assert found["position"] == 5


def test_stopping_says_nothing_that_cannot_be_said(log: Log, tmp_path: Path) -> None:
    one = reader(tmp_path)
    one.latestOffset(one.initialOffset(), ALL)

    one.stop()
    reader(tmp_path).stop()


def test_stopping_does_not_wait_for_a_broker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away = source(servers="127.0.0.1:1", subscribe="t")
    one = away.streamReader(away.schema())
    one._progress = ProgressReporter("spark:q", needs_broker=True)
    one._stands = {"t": 5}
    monkeypatch.setattr(time, "sleep", pytest.fail)

    one.stop()

    assert "the last progress is not reported: no broker at 127.0.0.1:1" in caplog.text


def test_commits_need_nothing(tmp_path: Path) -> None:
    reader(tmp_path).commit({})
