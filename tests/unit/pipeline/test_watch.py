"""What is read from the progress of queries, and from their errors."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.pipeline.watch import IDLE_S, Counts, Ticks, failed


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_counts_are_of_the_tweets_and_batches_of_all() -> None:
    counts = Counts()
    tweets = {
        "batchId": 6,
        "sources": [
            {
                "endOffset": '{"firehose": {"0": 70}, "$penstock": {"query": "x"}}',
                "latestOffset": '{"firehose": {"0": 100}}',
            }
        ],
    }

    counts.see({"tweets": tweets, "running": {"batchId": 2}, "hashtags": None})

    assert (counts.events, counts.lag, counts.batches) == (70, 30, 10)


def test_nothing_is_known_before_the_first_progress() -> None:
    counts = Counts()

    counts.see({"tweets": None})

    assert (counts.events, counts.lag, counts.batches) == (0, None, 0)


def test_a_tick_is_due_once_when_no_sample_comes() -> None:
    clock = Clock()
    ticks = Ticks(clock)

    assert not ticks.due(None)
    assert not ticks.due(progress(batch=1, rows=3))
    clock.now_s += IDLE_S
    assert ticks.due(progress(batch=1, rows=3))
    assert ticks.due(progress(batch=1, rows=3)), "it could not be written"
    ticks.written()
    assert not ticks.due(progress(batch=2, rows=1)), "that was the tick"
    clock.now_s += IDLE_S
    assert not ticks.due(progress(batch=2, rows=1))
    assert not ticks.due(progress(batch=3, rows=1))
    clock.now_s += IDLE_S
    assert ticks.due(progress(batch=3, rows=0))


def test_samples_that_come_with_a_tick_count() -> None:
    clock = Clock()
    ticks = Ticks(clock)
    ticks.written()

    ticks.due(progress(batch=1, rows=2))
    clock.now_s += IDLE_S

    assert ticks.due(progress(batch=1, rows=2))


def test_no_tick_is_due_when_no_window_is_open() -> None:
    assert not Ticks(Clock()).due(progress(batch=1, rows=0, open=0))


TRACE = """\
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error: Traceback (most recent call last):
  File "x.py", line 3, in call
penstock.errors.NotRunning: no server at h:1

  at org.apache.spark.X(Y.scala:3)

=== Streaming Query ===
org.apache.Identifier: tweets
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TRACE, "NotRunning: no server at h:1"),
        ("OSError: no disk", "OSError: no disk"),
        ("\n Job aborted. \nmore: 3", "Job aborted."),
        ("", "no reason is known"),
    ],
)
def test_the_error_of_a_query_is_named_in_a_line(text: str, reason: str) -> None:
    error = failed("tweets", text)

    assert (error.query, error.reason) == ("tweets", reason)


def progress(*, batch: int, rows: int, open: int = 1) -> dict[str, Any]:
    states = [{"numRowsTotal": open}]
    return {"batchId": batch, "numInputRows": rows, "stateOperators": states}
