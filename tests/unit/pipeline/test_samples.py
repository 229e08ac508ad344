"""Panics are read from a real broker, each once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.client import connect
from penstock.client.address import SOCKET_NAME
from penstock.client.lasting import LastingConnection
from penstock.log import Log
from penstock.pipeline.samples import TOPIC, Panics
from tests.local_server import local_server

EVER = 1 << 62


@pytest.fixture
def panics(tmp_path: Path) -> Iterator[Panics]:
    with LastingConnection(partial(connect, tmp_path), 5.0) as line:
        yield Panics(line)


def sample(kind: str, count: int) -> bytes:
    return json.dumps({"kind": kind, "ms": None, "count": count, "at_ms": 7}).encode()


def test_panics_are_read_on_from_where_they_were(
    tmp_path: Path, panics: Panics
) -> None:
    with local_server(tmp_path), connect(tmp_path) as client:
        client.publish(TOPIC, [sample("panics", 2), sample("tweets", 9)])
        before = panics(0, EVER)
        client.publish(TOPIC, [sample("panics", 3)])
        after = panics(before[0], EVER)
        nothing = panics(after[0], EVER)
        (event,) = next(iter(client.fetch(TOPIC, 0, 1).batches)).events()

    assert (before[0], [count for _, count in before[1]]) == (2, [2])
    assert (after[0], [count for _, count in after[1]]) == (3, [3])
    assert nothing == (3, [])
    assert before[1][0][0] == event.timestamp_ms


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"[]", b'{"kind":7}', b"\xff", b"[" * 9**5]
)
def test_what_is_no_sample_is_passed_over(
    junk: bytes, tmp_path: Path, panics: Panics
) -> None:
    with local_server(tmp_path), connect(tmp_path) as client:
        client.publish(TOPIC, [junk, sample("panics", 2)])

        place, found = panics(0, EVER)

    assert (place, [count for _, count in found]) == (2, [2])


def test_panics_that_come_later_are_left_for_the_next_time(
    tmp_path: Path, panics: Panics
) -> None:
    with local_server(tmp_path), connect(tmp_path) as client:
        client.publish(TOPIC, [sample("panics", 2)])
        (event,) = next(iter(client.fetch(TOPIC, 0, 1).batches)).events()

        before = panics(0, event.timestamp_ms)
        after = panics(0, event.timestamp_ms + 1)

    assert before == (0, [])
    assert after == (1, [(event.timestamp_ms, 2)])


def test_a_broker_that_was_started_again_is_asked_again(
    tmp_path: Path, panics: Panics
) -> None:
    with local_server(tmp_path), connect(tmp_path) as client:
        client.publish(TOPIC, [sample("panics", 2)])
        panics(0, EVER)
    (tmp_path / SOCKET_NAME).unlink()

    with local_server(tmp_path):
        place, found = panics(0, EVER)

    assert (place, [count for _, count in found]) == (1, [2])


@pytest.mark.parametrize("place", [0, 3, 99])
def test_what_retention_has_taken_is_passed_over(
    place: int, tmp_path: Path, panics: Panics
) -> None:
    """And a topic that was made anew has fewer than there were."""
    with local_server(tmp_path), connect(tmp_path) as client:
        client.publish(TOPIC, [sample("panics", n) for n in range(5)])
    with Broker(partial(Log.open, tmp_path)).log as log:
        log.trim(TOPIC, 4)
    (tmp_path / SOCKET_NAME).unlink()

    with local_server(tmp_path):
        found = panics(place, EVER)

    assert (found[0], [count for _, count in found[1]]) == (5, [4])
