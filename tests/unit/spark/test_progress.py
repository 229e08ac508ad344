from __future__ import annotations

import time
from typing import Any

import pytest

from penstock.errors import ServerRefused, Unreachable
from penstock.model.remote_errors import remote_error
from penstock.spark import stream
from penstock.spark.stream import ProgressReporter


class Asked:
    """A place that is only asked; it may have an error ready."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, int]] = []
        self.error: Exception | None = None

    def ask(self, verb: str, **arguments: Any) -> object:
        assert verb == "subscriptions.progress"
        if self.error is not None:
            raise self.error
        self.said.append(
            (arguments["subscriber"], arguments["topic"], arguments["offset"])
        )
        return {}


@pytest.fixture
def place() -> Any:
    return Asked()


def test_what_is_new_is_told_once(place: Any) -> None:
    one = ProgressReporter("spark:q", needs_broker=True)

    one.report(place, {"t": 5, "u": 1}, now=True)
    one.report(place, {"t": 5, "u": 1}, now=True)
    one.report(place, {"t": 6, "u": 1}, now=True)

    assert place.said == [("spark:q", "t", 5), ("spark:q", "u", 1), ("spark:q", "t", 6)]


def test_a_query_in_a_hurry_tells_seldom(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    one = ProgressReporter("spark:q", needs_broker=True)

    for offset in range(10):
        one.report(place, {"t": offset}, now=False)
        now_s[0] += 0.2

    assert [offset for _, _, offset in place.said] == [0, 3, 6, 9]


def test_nobody_is_told_under_no_name(place: Any) -> None:
    ProgressReporter("", needs_broker=True).report(place, {"t": 5}, now=True)

    assert place.said == []


def test_files_are_read_without_a_broker_and_told_to_it_when_it_is_there(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    one = ProgressReporter("spark:q", needs_broker=False)

    place.error = Unreachable("data", 0, "nobody")
    one.report(place, {"t": 5}, now=True)
    place.error = None
    one.report(place, {"t": 5}, now=True)
    assert place.said == []
    now_s[0] += stream.AWAY_S
    one.report(place, {"t": 5}, now=True)

    assert place.said == [("spark:q", "t", 5)]


def test_a_broker_that_is_needed_has_to_be_there(place: Any) -> None:
    place.error = Unreachable("h:1", 60, "nobody")

    with pytest.raises(Unreachable):
        ProgressReporter("spark:q", needs_broker=True).report(place, {"t": 5}, now=True)


def test_a_name_that_others_use_is_an_error(place: Any) -> None:
    place.error = remote_error("NotMoved", "2 consume it")

    with pytest.raises(ServerRefused, match="2 consume it"):
        ProgressReporter("spark:q", needs_broker=False).report(
            place, {"t": 5}, now=True
        )


def test_a_topic_that_went_stops_nobody(
    place: Any, caplog: pytest.LogCaptureFixture
) -> None:
    place.error = remote_error("UnknownTopic", "topic t does not exist")

    ProgressReporter("spark:q", needs_broker=True).report(place, {"t": 5}, now=True)

    assert "progress of spark:q in t is not reported: topic t does not" in caplog.text
