from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.embedded.context import Context
from penstock.embedded.event import Event
from penstock.embedded.run import HandlerRun, failure_of, unfit
from penstock.embedded.topic import Topic
from penstock.errors import UnfitPayload
from penstock.model.failure import MAX_MESSAGE_BYTES
from tests.unit.embedded.scene import handler_of, job


def run_of(function: Any, *jobs: Any, clock: ManualClock | None = None, **more: Any):
    handler = handler_of(function, **more)
    return HandlerRun(list(jobs) or [job()], handler, "me", clock or ManualClock(100.0))


def test_the_function_gets_what_it_takes() -> None:
    got: list[Any] = []

    run_of(lambda event: got.append(event)).call()
    run_of(lambda event, context: got.append((event, context))).call()
    run_of(lambda events: got.append(events), job(0), job(1), batch=5).call()

    assert got[0].offset == 0
    assert isinstance(got[1][1], Context)
    assert [one.offset for one in got[2]] == [0, 1]


def test_time_begins_with_the_call() -> None:
    clock, seen = ManualClock(100.0), []
    run = run_of(lambda event, context: seen.append(context.deadline_s), clock=clock)

    begun = run.begun
    clock.advance(50)
    run.call_blocking()

    assert (begun, run.begun) == (False, True)
    assert (run.started_s, run.deadline_s) == (150.0, 155.0)
    assert seen == [155.0]
    assert run.failures(151.0) is None


def test_an_error_is_kept_with_where_it_came_from() -> None:
    def fail(event: Event[bytes]) -> None:
        raise LookupError("nothing there")

    run = run_of(fail, job(3, tries=2))
    run.call_blocking()

    [failure] = run.failures(101.0) or []
    assert (failure.kind, failure.message) == ("LookupError", "nothing there")
    assert (failure.tries, failure.at_ms) == (2, 101_000)
    assert "in fail" in failure.traceback
    assert "call_blocking" not in failure.traceback
    assert failure.traceback.rstrip().endswith("LookupError: nothing there")


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit]
)
def test_whatever_is_raised_stays_with_the_call(error: type[BaseException]) -> None:
    def fail(event: Event[bytes]) -> None:
        raise error

    run = run_of(fail)
    run.call_blocking()

    assert type(run.error) is error


def test_a_coroutine_that_nobody_awaits_is_a_failure() -> None:
    async def inner() -> None: ...

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = run_of(lambda event: inner())
        run.call_blocking()

    assert isinstance(run.error, TypeError)
    assert "async def" in str(run.error)


def test_a_call_that_ends_late_has_failed() -> None:
    clock = ManualClock(100.0)
    run = run_of(lambda event: clock.advance(6), clock=clock)
    run.call_blocking()

    [failure] = run.failures(clock.now_s()) or []

    assert failure.kind == "Timeout"
    assert failure.duration_s == 6.0
    assert "longer than 5 s" in failure.message


def test_an_overrun_says_that_a_thread_goes_on() -> None:
    async def coroutine(event: Event[bytes]) -> None: ...

    blocking = run_of(lambda event: None, job(0), job(1))
    [first, second] = blocking.overrun(107.0)
    [alone] = run_of(coroutine).overrun(107.0)

    assert "may still run" in first.message
    assert first.tries == second.tries == 1
    assert "may still run" not in alone.message


def test_a_payload_that_does_not_fit_never_runs() -> None:
    handler = handler_of(lambda event: None, Topic("t", int))

    with pytest.raises(UnfitPayload) as caught:
        HandlerRun([job(0, b"five")], handler, "me", ManualClock())

    failure = unfit(caught.value, job(0, tries=3), 5.0)
    assert (failure.kind, failure.tries) == ("UnfitPayload", 3)
    assert failure.message == str(caught.value)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


class Mute(Exception):
    def __str__(self) -> Any:
        return 5


@pytest.mark.parametrize("error", [Unspeakable("x"), Mute("x")])
def test_an_error_that_has_no_text_is_told_all_the_same(error: Exception) -> None:
    try:
        raise error
    except Exception as raised:
        failure = failure_of(raised, job(), 5.0, 0.1)

    assert failure.kind == type(error).__qualname__
    assert "cannot be had" in failure.message
    assert "test_run.py" in failure.traceback


def test_a_failure_can_be_stored() -> None:
    failure = failure_of(ValueError("\ud800" + "x" * 1_000_000), job(), 5.0, 0.1)

    assert len(failure.message) == MAX_MESSAGE_BYTES
    failure.message.encode()
    failure.traceback.encode()
