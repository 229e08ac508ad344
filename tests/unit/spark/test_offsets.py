from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import InvalidOption
from penstock.spark.offsets import (
    Bound,
    StreamOffset,
    bound_of,
    plain,
)
from penstock.table.extent import Extent, is_another

EXTENT = Extent(start=10, end=50, bytes=4000)


def at(topic: str, timestamp_ms: int) -> int:
    return {"t": 20, "u": 30}[topic] + timestamp_ms


def starting(**given: str) -> Bound:
    lowered = {name.lower(): value for name, value in given.items()}
    return bound_of(lowered, "starting", default="earliest")


@pytest.mark.parametrize(
    ("given", "offset"),
    [
        ({}, 10),
        ({"startingOffsets": "earliest"}, 10),
        ({"startingOffsets": " Latest"}, 50),
        ({"startingOffsets": '{"t": {"0": 23}}'}, 23),
        ({"startingOffsets": '{"t": {"0": -1}}'}, 50),
        ({"startingOffsets": '{"t": {"0": -2}}'}, 10),
        ({"startingOffsets": '{"u": {"0": 5}}'}, 10),
        ({"startingOffsets": '{"$penstock": {"query": "q"}, "t": {"0": 23}}'}, 23),
        ({"startingTimestamp": "7"}, 27),
        ({"startingTimestamp": "1970-01-01T00:00:00.007Z"}, 27),
        ({"startingTimestamp": "1970-01-01 00:00:00.007"}, 27),
        ({"startingTimestamp": "1970-01-01T01:00:00.007+01:00"}, 27),
        ({"startingTimestamp": "1970-01-01T00:00:00.0061Z"}, 27),
        ({"startingTimestamp": "1969-12-31T23:59:59.999Z"}, 19),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 9}}'}, 29),
        ({"startingOffsetsByTimestamp": '{"u": {"0": 9}}'}, 10),
        ({"startingTimestamp": "1", "startingOffsets": "latest"}, 21),
    ],
)
def test_where_to_begin(given: dict[str, str], offset: int) -> None:
    assert starting(**given).resolve("t", EXTENT, at) == offset


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"startingOffsets": "first"}, "startingOffsets is 'first': must be earliest"),
        ({"startingOffsets": "[]"}, "must be earliest, latest or JSON"),
        ({"startingOffsets": '{"t": 5}'}, "of partition 0 alone"),
        ({"startingOffsets": '{"t": {"1": 5}}'}, "of partition 0 alone"),
        ({"startingOffsets": '{"t": {"0": true}}'}, "must be earliest, latest or JSON"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "-2 is earliest, -1 latest"),
        ({"startingTimestamp": "noon"}, "startingTimestamp is 'noon': must be milli"),
        ({"startingOffsetsByTimestamp": "5"}, "startingOffsetsByTimestamp is '5'"),
        ({"startingTimestamp": "1" * 25}, "startingTimestamp is '1111"),
        ({"startingTimestamp": "-" + "1" * 25}, "at most 9223372036854775807"),
        ({"startingTimestamp": "1" * 5000}, "startingTimestamp is '1111"),
        ({"startingOffsets": '{"t": {"0": %s}}' % ("1" * 25)}, "at most 922337203685"),
        ({"startingOffsetsByTimestamp": '{"t":{"0":-1%s}}' % ("1" * 25)}, "at most 9"),
    ],
)
def test_what_is_no_place(given: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        starting(**given)

    assert text in str(caught.value)


@given(st.integers(0, 4_102_444_800_000))
@example(2_198_756_485_127)  # one of those that are not whole as a float of seconds
def test_moments_are_exact_to_the_millisecond(time_ms: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)

    assert starting(startingTimestamp=moment.isoformat()).time_ms == time_ms


def test_words_are_told_from_offsets() -> None:
    assert starting(startingOffsets="latest").is_latest
    assert starting().is_earliest
    assert not starting(startingOffsets='{"t": {"0": 1}}').is_earliest
    assert not starting(startingTimestamp="1").is_earliest
    assert starting(startingOffsets='{"t": {"0": 1}}').topics == {"t"}


@pytest.mark.parametrize(
    "offset",
    [
        StreamOffset(topics={}, query="q"),
        StreamOffset(topics={"b": 1, "a": 2}, query="q", initial=True),
        StreamOffset(topics={"a": 2}, query="q", begins={"a": 1, "b": 0}),
        StreamOffset(topics={"a": 2}, query="q", numbers={"a": 3}),
    ],
)
def test_an_offset_comes_back_from_a_checkpoint(offset: StreamOffset) -> None:
    text = json.dumps(offset.document())

    back = StreamOffset.of(json.loads(text))

    assert back == offset
    assert json.dumps(back.document()) == text


def test_topics_are_in_order_whatever_order_they_came_in() -> None:
    one = StreamOffset(topics={"b": 1, "a": 2}, query="q").document()

    assert list(one) == ["$penstock", "a", "b"]
    assert plain({"b": 1, "a": 2}) == {"a": {"0": 2}, "b": {"0": 1}}


def test_offsets_as_kafka_has_them_are_offsets() -> None:
    assert StreamOffset.of({"t": {"0": 23}}).topics == {"t": 23}


@pytest.mark.parametrize(
    ("number", "now", "another"),
    [(1, 1, False), (1, 2, True), (0, 2, False), (1, 0, False)],
)
def test_a_topic_is_known_by_its_number(number: int, now: int, another: bool) -> None:
    assert is_another(number, Extent(start=0, end=1, number=now)) is another


def test_events_weigh_what_their_topic_does() -> None:
    assert EXTENT.bytes_per_event == 100
    assert Extent(start=0, end=0).bytes_per_event == 0
