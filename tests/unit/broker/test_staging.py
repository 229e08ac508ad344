from __future__ import annotations

import logging

import pytest

from penstock.broker.log_throttle import LogThrottle
from penstock.broker.staging import PIECE_BYTES, StagedPiece, Staging
from penstock.errors import InvalidOption, LimitReached, MissingStage
from penstock.log import Batch, Columns, frame_of


def piece(*payloads: bytes, topic: str = "t") -> StagedPiece:
    return StagedPiece(Batch.of(topic, frame_of(Columns(payloads), 0, bytes(16))))


def staged(staging: Staging, query: str = "q", epoch: int = 1) -> list[list[bytes]]:
    """The payloads of attempt 0 of partition 0, piece by piece."""
    found = staging.pieces(query, epoch, (0, 0))
    return [[] if one.batch is None else one.batch.payloads() for one in found]


@pytest.fixture
def staging() -> Staging:
    return Staging(10_000, 60.0)


def test_pieces_of_a_part_follow_each_other(staging: Staging) -> None:
    staging.put("q", 1, (0, 0), 0, piece(b"a"), 0.0)
    staging.put("q", 1, (0, 0), 1, piece(b"b", b"c"), 0.0)

    assert staged(staging) == [[b"a"], [b"b", b"c"]]


def test_a_piece_that_is_there_may_come_again(staging: Staging) -> None:
    for number in (0, 1, 0, 1, 2):
        staging.put("q", 1, (0, 0), number, piece(b"%d" % number), 0.0)

    assert staged(staging) == [[b"0"], [b"1"], [b"2"]]
    assert staging.bytes == 3 * piece(b"0").size


@pytest.mark.parametrize(
    "other", [piece(b"b"), piece(b"a", b"a"), StagedPiece(None), piece(b"a", topic="u")]
)
def test_an_attempt_belongs_to_one_try(staging: Staging, other: StagedPiece) -> None:
    staging.put("q", 1, (0, 7), 0, piece(b"a"), 0.0)

    with pytest.raises(InvalidOption, match="attempt is 7: must be one that no other"):
        staging.put("q", 1, (0, 7), 0, other, 0.0)


@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_piece_out_of_turn_is_refused(staging: Staging, number: int) -> None:
    for known in range(2 if number > 1 else 0):
        staging.put("q", 1, (0, 0), known, piece(b"a"), 0.0)

    with pytest.raises(MissingStage):
        staging.put("q", 1, (0, 0), number, piece(b"z"), 0.0)


def test_an_empty_part_is_there(staging: Staging) -> None:
    staging.put("q", 1, (0, 0), 0, StagedPiece(None), 0.0)

    assert staged(staging) == [[]]
    assert staging.bytes == PIECE_BYTES


@pytest.mark.parametrize(
    "place", [("r", 1, (0, 0)), ("q", 2, (0, 0)), ("q", 1, (0, 1))]
)
def test_what_is_not_staged_is_missing(
    staging: Staging, place: tuple[str, int, tuple[int, int]]
) -> None:
    staging.put("q", 1, (0, 0), 0, piece(b"a"), 0.0)

    with pytest.raises(MissingStage) as caught:
        staging.pieces(*place)

    error = caught.value
    found = (error.query, error.epoch, (error.partition, error.attempt))
    assert found == place


def test_memory_is_limited_over_all_queries(staging: Staging) -> None:
    staging.put("q", 1, (0, 0), 0, piece(bytes(4000)), 0.0)
    staging.put("r", 1, (0, 0), 0, piece(bytes(3000)), 0.0)

    with pytest.raises(LimitReached, match="max_staged_bytes"):
        staging.put("q", 1, (1, 0), 0, piece(bytes(2500)), 0.0)

    assert list(staging.of_query("q")[1].parts) == [(0, 0)]


def test_a_piece_that_is_refused_leaves_nothing(staging: Staging) -> None:
    with pytest.raises(LimitReached):
        staging.put("q", 1, (0, 0), 0, piece(bytes(20_000)), 0.0)

    assert (list(staging.queries()), staging.bytes) == ([], 0)


def test_dropping_sets_the_bytes_free(staging: Staging) -> None:
    staging.put("q", 1, (0, 0), 0, piece(b"a"), 0.0)

    assert staging.drop("q", 1) == piece(b"a").size
    assert staging.drop("q", 1) == 0
    assert (list(staging.queries()), staging.bytes) == ([], 0)


def test_an_epoch_whose_commit_is_under_way_is_kept(staging: Staging) -> None:
    staging.put("q", 1, (0, 0), 0, piece(b"a"), 0.0)
    staging.hold("q", 1, held=True)

    assert staging.drop("q", 1) == 0
    staging.expire(1000.0, LogThrottle())
    assert staging.get("q", 1) is not None

    staging.hold("q", 1, held=False)
    staging.hold("q", 9, held=True)  # of one that nobody knows
    staging.expire(1000.0, LogThrottle())
    assert staging.get("q", 1) is None


def test_epochs_up_to_a_committed_one_go(staging: Staging) -> None:
    for epoch in (1, 2, 3):
        staging.put("q", epoch, (0, 0), 0, piece(b"a"), 0.0)

    staging.drop_until("q", 2)

    assert list(staging.of_query("q")) == [3]


def test_epochs_that_nobody_adds_to_go_after_a_while(
    staging: Staging, caplog: pytest.LogCaptureFixture
) -> None:
    staging.put("q", 1, (0, 0), 0, piece(b"a"), 0.0)
    staging.put("q", 2, (0, 0), 0, piece(b"a"), 0.0)
    staging.put("q", 2, (0, 0), 1, piece(b"a"), 30.0)

    with caplog.at_level(logging.WARNING):
        staging.expire(60.0, LogThrottle())

    assert list(staging.of_query("q")) == [2]
    (record,) = caplog.records
    assert (record.__dict__["action"], record.__dict__["epoch"]) == ("stage_expired", 1)
