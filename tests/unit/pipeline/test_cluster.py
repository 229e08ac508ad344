"""Executors come one after another; the cluster itself is in tests/spark."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from penstock.pipeline import cluster
from penstock.pipeline.cluster import FEWEST_STATES, PARALLELISM, STATES, settle


class Session:
    """A session whose executors, of two cores each, come when time goes on."""

    def __init__(self, arrivals: list[float]) -> None:
        self.now_s = 0.0
        self.set: dict[str, int] = {}
        self._arrivals = arrivals
        self.conf = self

    @property
    def sparkContext(self) -> Any:
        memory = SimpleNamespace(size=lambda: 1 + self.executors)
        context = SimpleNamespace(getExecutorMemoryStatus=lambda: memory)
        return SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: context),
            defaultParallelism=max(2 * self.executors, 2),
            master="spark://h:1",
        )

    @property
    def executors(self) -> int:
        return sum(at_s <= self.now_s for at_s in self._arrivals)

    def pause(self, seconds: float) -> bool:
        self.now_s += seconds
        return False


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Session:
    one = Session(request.param)
    monkeypatch.setattr("time.monotonic", lambda: one.now_s)
    one.set = {}
    monkeypatch.setattr(one, "conf", SimpleNamespace(set=one.set.__setitem__))
    return one


def settled(one: Session, **given: str) -> None:
    names = {name.replace("_", "."): value for name, value in given.items()}
    settle(cast(SparkSession, one), names, one.pause)


@pytest.mark.parametrize("session", [[2.0, 2.5, 3.2, 9.0]], indirect=True)
def test_executors_are_waited_for_until_no_more_come(session: Session) -> None:
    settled(session)

    assert session.executors == 3
    assert session.set == {STATES: 6}


@pytest.mark.parametrize("session", [[0.0]], indirect=True)
def test_a_small_cluster_may_grow(session: Session) -> None:
    settled(session)

    assert session.set == {STATES: FEWEST_STATES}


@pytest.mark.parametrize("session", [[0.0, 1.0, 2.0]], indirect=True)
def test_what_is_given_stays(session: Session) -> None:
    settled(session, **{PARALLELISM: "64", STATES: "32"})

    assert session.now_s == 0
    assert session.set == {}


@pytest.mark.parametrize("session", [[]], indirect=True)
def test_a_cluster_without_room_is_told_of(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        settled(session)

    assert "no executor of spark://h:1 after 30 s" in caplog.text
    assert session.now_s == pytest.approx(cluster.PATIENCE_S)


@pytest.mark.parametrize("session", [[]], indirect=True)
def test_nobody_waits_who_is_told_to_end(session: Session) -> None:
    settle(cast(SparkSession, session), {}, lambda _: True)

    assert session.now_s == 0
