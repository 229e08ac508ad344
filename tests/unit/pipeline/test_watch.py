"""What is read from the progress of a query, and from its error."""

from __future__ import annotations

import pytest

from penstock.pipeline.run import QueryCounts, Running, failed, is_idle, is_running


def test_counts_are_those_of_the_last_progress() -> None:
    counts = QueryCounts()
    progress = {
        "batchId": 6,
        "durationMs": {"triggerExecution": 812},
        "sources": [
            {
                "endOffset": '{"firehose": {"0": 70}, "$penstock": {"query": "x"}}',
                "latestOffset": '{"firehose": {"0": 100}}',
            }
        ],
    }

    counts.see(progress)

    assert (counts.events, counts.lag) == (70, 30)
    assert (counts.batches, counts.batch_ms) == (7, 812)


def test_nothing_is_known_before_the_first_progress() -> None:
    counts = QueryCounts()

    counts.see(None)

    assert (counts.events, counts.lag, counts.batches) == (0, None, 0)


@pytest.mark.parametrize(
    ("message", "active", "lag", "idle"),
    [
        ("Waiting for next trigger", False, 0, True),
        ("Waiting for data to arrive", False, None, True),  # since it was started
        ("Waiting for next trigger", False, 3, False),
        ("Waiting for data to arrive", True, 0, False),
        ("Initializing sources", False, None, False),
        ("Processing new data", True, 0, False),
    ],
)
def test_a_query_is_idle_when_it_waits_and_nothing_is_left(
    message: str, active: bool, lag: int | None, idle: bool
) -> None:
    status = {"message": message, "isTriggerActive": active, "isDataAvailable": False}

    assert is_idle(status, lag) is idle


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


def test_the_batch_that_runs_is_told_by_its_number_and_for_how_long() -> None:
    running = Running()
    looks = [(7, False, 0.0), (7, True, 1.0), (7, True, 3.5), (8, True, 4.0)]
    looks += [(8, False, 5.0)]

    told = []
    for done, is_at_it, now_s in looks:
        running.see(done, is_running=is_at_it, now_s=now_s)
        told.append((running.batch, running.ms(now_s)))

    assert told == [(None, None), (7, 0), (7, 2500), (8, 0), (None, None)]


@pytest.mark.parametrize(
    ("active", "data", "runs"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_a_query_that_only_looks_for_data_runs_no_batch(
    *, active: bool, data: bool, runs: bool
) -> None:
    status = {"isTriggerActive": active, "isDataAvailable": data, "message": ""}

    assert is_running(status) is runs
