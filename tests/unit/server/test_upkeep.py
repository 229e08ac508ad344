from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.chains import Chains
from penstock.clock import ManualClock
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.server.upkeep import BUSY_TURNS, MAINTAIN_S, SCRUB_PAUSE_S, Upkeep
from tests.upkeep import keep_up


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[Log]:
    with Log.open(tmp_path, LogOptions(), clock=clock) as log:
        yield log


@pytest.mark.parametrize(
    "options",
    [
        TopicOptions(retention_age_s=10.0),
        TopicOptions(retention_bytes=1 << 20),
        TopicOptions(segment_age_s=10.0),
        TopicOptions(compact=True),
    ],
)
def test_a_topic_that_wants_it_is_looked_after_every_half_minute(
    log: Log,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    options: TopicOptions,
) -> None:
    log.create_topic("t", options)
    looks: list[float] = []
    monkeypatch.setattr(log, "maintain_soon", lambda: looks.append(clock.now_s()))
    upkeep, start_s = Upkeep(log), clock.now_s()

    for _ in range(61):
        upkeep.step(clock.now_s(), idle=True)
        clock.advance(1.0)

    assert looks == [start_s, start_s + MAINTAIN_S, start_s + 2 * MAINTAIN_S]


def test_old_events_go_when_their_time_has_come(log: Log, clock: ManualClock) -> None:
    log.create_topic("t", TopicOptions(retention_age_s=100.0, segment_age_s=10.0))
    log.append("t", Columns([b"old"], log.now_ms()))
    log.checkpoint()
    upkeep, starts = Upkeep(log), []

    for _ in range(6):
        upkeep.step(clock.now_s(), idle=True)
        keep_up(log)
        starts.append(log.topic("t").start_offset)
        clock.advance(MAINTAIN_S)

    assert starts == [0, 0, 0, 0, 1, 1]


def test_topics_that_keep_everything_are_left_alone(
    log: Log, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create_topic("t")
    monkeypatch.setattr(log, "maintain_soon", lambda: pytest.fail("nobody wants it"))

    Upkeep(log).step(clock.now_s(), idle=True)


def test_a_busy_server_is_looked_after_and_its_old_bytes_are_left_alone(
    log: Log, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create_topic("t", TopicOptions(compact=True))
    looks: list[float] = []
    monkeypatch.setattr(log, "maintain_soon", lambda: looks.append(clock.now_s()))
    monkeypatch.setattr(log, "scrub", lambda size: pytest.fail("it is busy"))

    Upkeep(log).step(clock.now_s(), idle=False)

    assert looks == [clock.now_s()]


def test_old_bytes_are_verified_little_by_little_once_a_day(
    log: Log, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = [False, False, True, False]
    looks: list[float] = []

    def scrub(max_bytes: int) -> bool:
        looks.append(clock.now_s())
        return ends[len(looks) - 1]

    monkeypatch.setattr(log, "scrub", scrub)
    upkeep, start_s = Upkeep(log), clock.now_s()

    for _ in range(10):
        upkeep.step(clock.now_s(), idle=True)
        clock.advance(1.0)
    clock.advance(SCRUB_PAUSE_S - 8.0)
    upkeep.step(clock.now_s(), idle=True)

    day_s = start_s + 2.0 + SCRUB_PAUSE_S
    assert looks == [start_s, start_s + 1.0, start_s + 2.0, day_s]


def test_chains_are_indexed_at_every_idle_turn_and_at_some_busy_ones(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains = Chains(log)
    turns: list[int] = []
    turn = 0
    monkeypatch.setattr(chains, "step", lambda: turns.append(turn))
    upkeep = Upkeep(log, chains)

    for turn in range(3 * BUSY_TURNS):
        upkeep.index(idle=turn < 3)

    assert turns == [0, 1, 2, 2 + BUSY_TURNS, 2 + 2 * BUSY_TURNS]


def test_a_server_that_commits_between_all_turns_is_busy(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains = Chains(log)
    turns: list[int] = []
    turn = 0
    monkeypatch.setattr(chains, "step", lambda: turns.append(turn))
    upkeep = Upkeep(log, chains)
    log.create_topic("t")

    for turn in range(2 * BUSY_TURNS + 2):
        if turn < 2 * BUSY_TURNS:
            log.append("t", Columns([b"x"], 0))
            log.commit()
        upkeep.index(idle=True)

    assert turns == [BUSY_TURNS - 1, 2 * BUSY_TURNS - 1, *range(20, 22)]


def test_without_chains_nothing_is_indexed(log: Log) -> None:
    Upkeep(log).index(idle=True)


def test_a_mistake_ends_indexing_and_nothing_else(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chains = Chains(log)
    monkeypatch.setattr(chains, "step", lambda: 1 // 0)
    upkeep = Upkeep(log, chains)

    upkeep.index(idle=True)
    upkeep.index(idle=True)

    (record,) = caplog.records
    assert getattr(record, "action", "") == "chains_failed"
