"""A batch for several topics means what batches of one topic mean, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.access.grants import Grants
from penstock.access.quota import Quota
from penstock.broker.broker import Broker
from penstock.broker.options import BrokerOptions
from penstock.broker.publishing import Accepted, StoredPiece, ids_at
from penstock.errors import (
    BeingDeleted,
    DiskFull,
    InvalidBatch,
    InvalidName,
    InvalidPayload,
    LimitReached,
    PenstockError,
    QuotaReached,
    ReservedName,
    WriteFailed,
)
from penstock.log import Columns, Log, LogOptions
from penstock.testing import CrashDisk
from tests.unit.log.faults import FaultyFiles, payloads

LARGE = b"x" * 101
MOST_TOPICS = 6


def made(path: Path | str, disk: FaultyFiles | CrashDisk) -> Broker:
    options = LogOptions(max_event_bytes=100, group_bytes=20_000)
    broker = Broker(
        partial(Log.open, path, options, files=disk),
        BrokerOptions(max_topics=MOST_TOPICS),
    )
    broker.create_topic("number")
    broker.registry.register(
        "number", {"type": "integer"}, type_="N", at_ms=0, by="anna"
    )
    short = replace(broker.topic_options, expires_s=5.0)
    broker.create_topic("short", short)
    broker.create_topic("going")
    broker.log.commit()
    broker.delete_topic("going")
    return broker


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def broker(tmp_path: Path, disk: FaultyFiles) -> Iterator[Broker]:
    broker = made(tmp_path, disk)
    yield broker
    broker.log.abandon()


def stored(broker: Broker, topic: str) -> list[bytes]:
    broker.log.commit()
    return payloads(broker.log, topic)


def placed(outcome: Accepted) -> dict[int, int]:
    """Where the events of units of one event are."""
    return {
        unit: offset
        for piece in outcome.pieces
        for unit, offset in zip(piece.units, piece.offsets, strict=True)
    }


def test_events_of_many_topics_are_one_piece(broker: Broker) -> None:
    topics = ["a", "b", "a", "number"]

    outcome = broker.accept_rows(topics, Columns([b"1", b"2", b"3", b"4"], 1))

    (piece,) = outcome.pieces
    assert not outcome.refused
    assert list(piece.units) == [0, 1, 2, 3]
    assert list(piece.offsets) == [0, 0, 1, 0]
    assert outcome.group == broker.group
    assert [stored(broker, name) for name in ("a", "b", "number")] == [
        [b"1", b"3"],
        [b"2"],
        [b"4"],
    ]
    rows = enumerate(zip(topics, piece.offsets, strict=True))
    for row, (topic, offset) in rows:
        assert [piece.id_at(broker, topic, row)] == ids_at(broker, topic, [offset])


def test_each_topic_is_refused_what_it_does_not_take(broker: Broker) -> None:
    topics = ["a", "number", "$x", "going", "a", "b\0", "number", "c"]
    events = [b"1", b'"text"', b"2", b"3", LARGE, b"4", b"5", b"6"]

    outcome = broker.accept_rows(topics, Columns(events, 1))

    assert {row: type(error) for row, error in sorted(outcome.refused.items())} == {
        1: InvalidPayload,
        2: ReservedName,
        3: BeingDeleted,
        4: InvalidBatch,
        5: InvalidName,
    }
    assert placed(outcome) == {0: 0, 6: 0, 7: 0}
    assert [stored(broker, name) for name in ("a", "number", "c")] == [
        [b"1"],
        [b"5"],
        [b"6"],
    ]
    assert not broker.log.has_topic("$x")


def test_topics_that_are_one_too_many_are_not_made(broker: Broker) -> None:
    topics = [f"new-{number}" for number in range(MOST_TOPICS)]
    there = broker.log.topic_count

    outcome = broker.accept_rows(topics, Columns([b"x"] * len(topics), 1))

    assert broker.log.topic_count == MOST_TOPICS
    assert sorted(placed(outcome)) == list(range(MOST_TOPICS - there))
    assert {type(one) for one in outcome.refused.values()} == {LimitReached}


def test_a_unit_is_stored_whole_or_not_at_all(broker: Broker) -> None:
    events = Columns([b"1", b"2", b"3", LARGE, b"4"], 1)

    outcome = broker.accept_rows(["a", "a", "b", "b", "a"], events, units=[2, 2, 1])

    assert list(outcome.refused) == [1]
    assert stored(broker, "a") == [b"1", b"2", b"4"]
    assert not broker.log.has_topic("b")


def test_what_has_a_dedup_id_is_stored_once(broker: Broker) -> None:
    def publish(*texts: str) -> dict[int, int]:
        events = Columns([text.encode() for text in texts], 1)
        topics = ["ab"[number % 2] for number in range(len(texts))]
        outcome = broker.accept_rows(topics, events, dedup_ids=[*texts], now_s=1.0)
        assert not outcome.refused
        return placed(outcome)

    assert publish("1", "2", "3") == {0: 0, 1: 0, 2: 1}
    assert publish("3", "2", "4") == {0: 1, 1: 0, 2: 2}


def test_events_expire_as_their_topic_says(broker: Broker) -> None:
    events = Columns([b"1", b"2", b"3"], 1000, expires=[0, 0, 1700])

    broker.accept_rows(["short", "a", "short"], events)

    broker.log.commit()
    (batch,) = broker.log.read("short", 0)
    assert batch.expires() == [6000, 1700]
    (batch,) = broker.log.read("a", 0)
    assert batch.expires() == [0]


def test_who_has_a_quota_is_charged_by_topic(broker: Broker) -> None:
    quota = Quota(topics=2, events_per_s=1000)
    account = broker.accounts.of(Grants(user="anna", quota=quota))
    assert account is not None

    with broker.accounts.acting(account):
        outcome = broker.accept_rows(["a", "b", "a"], Columns([b"x"] * 3, 1))
        refused = broker.accept_rows(["a", "c"], Columns([b"x"] * 2, 1)).refused

    assert placed(outcome) == {0: 0, 1: 0, 2: 1}
    assert account.charges
    assert {row: type(error) for row, error in refused.items()} == {1: QuotaReached}
    assert broker.registry.made_by("anna") == {"a", "b"}


def test_who_is_told_of_pieces_hears_of_units_of_the_batch(broker: Broker) -> None:
    told: list[StoredPiece] = []

    broker.accept_rows(["a", "b"], Columns([b"1", b"2"], 1), stored=told.append)
    broker.accept_rows(
        ["a", "b", "a"], Columns([LARGE, b"2", b"3"], 1), stored=told.append
    )

    assert [list(piece.units) for piece in told] == [[0, 1], [2], [1]]


def test_what_a_failed_commit_took_back_is_refused(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    options = LogOptions(group_bytes=1024)
    broker = Broker(partial(Log.open, tmp_path, options, files=disk))
    disk.fail("sync", "journal")
    events = Columns([b"x" * 800, b"y" * 800], 1)

    # One topic after the other, and there is no room for both in one group.
    outcome = broker.accept_rows(["a", "b"], events, dedup_ids=["1", "2"], now_s=1.0)

    disk.heal()
    assert not outcome.pieces
    assert {type(one) for one in outcome.refused.values()} <= {WriteFailed, DiskFull}
    broker.log.commit()
    assert not any(broker.log.has_topic(name) for name in ("a", "b"))
    broker.log.abandon()


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "number", "short", "going", "$x", "c", "d", "e\n"]),
        st.sampled_from([b"1", b"22", b'"text"', LARGE]),
        st.sampled_from([None, None, "one", "two"]),
    ),
    min_size=1,
    max_size=20,
)


@given(events=EVENTS, once=st.booleans())
def test_it_is_as_if_each_topic_came_alone(
    events: list[tuple[str, bytes, str | None]], *, once: bool
) -> None:
    topics = [topic for topic, _, _ in events]
    columns = Columns([payload for _, payload, _ in events], 1000)
    known = [dedup for _, _, dedup in events] if once else None
    together, alone = made("/d", CrashDisk()), made("/d", CrashDisk())

    outcome = together.accept_rows(topics, columns, dedup_ids=known, now_s=1.0)

    refused: dict[int, type[PenstockError]] = {}
    offsets: dict[int, int] = {}
    for topic in dict.fromkeys(topics):
        rows = [row for row, name in enumerate(topics) if name == topic]
        ids = None if known is None else [known[row] for row in rows]
        picked = columns.pick(rows)
        picked.expires = None
        try:
            found = alone.accept(topic, picked, dedup_ids=ids, now_s=1.0)
        except PenstockError as error:
            refused.update(dict.fromkeys(rows, type(error)))
            continue
        refused.update({rows[at]: type(why) for at, why in found.refused.items()})
        offsets.update({rows[at]: offset for at, offset in placed(found).items()})
    assert {row: type(why) for row, why in outcome.refused.items()} == refused
    assert placed(outcome) == offsets
    together.log.commit()
    alone.log.commit()
    assert together.log.topics() == alone.log.topics()
    for name in alone.log.topics():
        assert payloads(together.log, name) == payloads(alone.log, name)
        ours, theirs = together.log.read(name, 0), alone.log.read(name, 0)
        assert [e for b in ours for e in b.expires()] == [
            e for b in theirs for e in b.expires()
        ]
