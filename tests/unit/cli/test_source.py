from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.log import batches_of, topic_of
from penstock.cli.refusal import Refusal
from penstock.errors import OffsetOutOfRange
from penstock.log import Columns, Log, Reader

TOPICS = ("orders", "orders-archive", "audit", "x1", "x2", "x3")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Log.open(tmp_path) as log:
        for name in TOPICS:
            log.create_topic(name)
        for number in range(10):
            log.append("orders", Columns([b"%d" % number] * 3, number))
            log.commit()
    with Reader.open(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ordrs", "did you mean orders, orders-archive?"),
        ("archive", "did you mean orders-archive?"),
        ("zzzzzz", "its topics are audit, orders, orders-archive, x1, x2, …"),
    ],
)
def test_an_unknown_topic_is_named_with_its_like(
    reader: Reader, name: str, hint: str
) -> None:
    with pytest.raises(Refusal) as refusal:
        topic_of(reader, name)

    assert refusal.value.message == f"topic {name} does not exist"
    assert refusal.value.hint == hint


def test_a_directory_without_topics_says_so(tmp_path: Path) -> None:
    Log.open(tmp_path).close()

    with Reader.open(tmp_path) as reader, pytest.raises(Refusal) as refusal:
        topic_of(reader, "a")

    assert refusal.value.hint == "this data directory has no topics"


@pytest.mark.parametrize(
    ("start", "stop", "offsets"),
    [
        (None, None, range(30)),
        (4, None, range(4, 30)),
        (None, 7, range(7)),
        (4, 8, range(4, 8)),
        (8, 8, range(0)),
        (30, None, range(0)),
        (28, 1000, range(28, 30)),
    ],
)
def test_batches_hold_the_offsets_asked_for(
    reader: Reader, start: int | None, stop: int | None, offsets: range
) -> None:
    found = batches_of(reader, reader.topic("orders"), start, stop)

    assert [one for batch in found for one in batch.offsets()] == list(offsets)


def test_an_offset_out_of_range_is_refused_at_once(reader: Reader) -> None:
    with pytest.raises(OffsetOutOfRange):
        batches_of(reader, reader.topic("orders"), 31, None)
