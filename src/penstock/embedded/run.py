"""One call of a handler: what it is for, how long it may take, how it ended."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from penstock.clock import Clock
from penstock.embedded.context import Context
from penstock.embedded.handler import Handler
from penstock.embedded.job import Job
from penstock.errors import UnfitPayload
from penstock.model.failure import TIMEOUT, Failure

if TYPE_CHECKING:
    from penstock.tracing.spans import Handling, Tracing


class HandlerRun:
    """A call for one event, or for a batch of them."""

    __slots__ = (
        "_clock",
        "_handler",
        "_span",
        "_tracing",
        "context",
        "deadline_s",
        "ended_s",
        "error",
        "given_up",
        "jobs",
        "moves",
        "started_s",
        "stop",
    )

    def __init__(
        self,
        jobs: list[Job],
        handler: Handler,
        subscriber: str,
        clock: Clock,
        tracing: Tracing | None = None,
    ) -> None:
        """Raises UnfitPayload if a payload is not of the handler's type."""
        self.jobs = jobs
        self.moves = 0
        """How often the subscription had been moved when this began; see Runner."""
        self.started_s = 0.0
        self.deadline_s = inf
        """When its time is over; it begins with the call."""
        self.ended_s: float | None = None
        """When it ended, where that is noticed later."""
        self.error: BaseException | None = None
        self.given_up = False
        """Whether its time was over before it was."""
        self.stop: Callable[[], object] | None = None
        """Has the call cancelled, where that can be done."""
        codec = handler.codec
        if codec.raw:
            events = [job.event for job in jobs]
        else:
            events = [job.typed(codec) for job in jobs]
        tries = jobs[0].tries
        self.context = Context(subscriber, events, tries, inf, clock, tracing)
        self._clock = clock
        self._tracing = tracing
        self._span: Handling | None = None
        self._handler = handler

    @property
    def begun(self) -> bool:
        return self.deadline_s < inf

    def call(self) -> Any:
        """Call the function; what it returns has to be awaited if it is async."""
        handler = self._handler
        self.started_s = self._clock.now_s()
        self.deadline_s = self.started_s + handler.options.timeout_s
        self.context.deadline_s = self.deadline_s
        events = self.context.events
        if self._tracing is not None:
            context = self.context
            self._span = self._tracing.begin(context.subscriber, events, context.tries)
            self._span.enter()
        argument = events if handler.options.batch else events[0]
        if handler.with_context:
            return handler.function(argument, self.context)
        return handler.function(argument)

    def left(self) -> None:
        """The call has ended; said in the task or thread that it was made in."""
        if self._span is not None:
            self._span.leave(self.error)
            self._span = None

    def call_blocking(self) -> None:
        """Call a function that is not async; an error is kept."""
        try:
            returned = self.call()
            if inspect.iscoroutine(returned):
                returned.close()
                raise TypeError("returned a coroutine: declare it with async def")
        except BaseException as error:  # what a handler raises stays with it
            self.error = error
        self.left()
        self.ended_s = self._clock.now_s()

    def failures(self, now_s: float) -> list[Failure] | None:
        """Why the try failed, for each event; None if it did not."""
        duration_s = now_s - self.started_s
        if self.error is not None:
            return [failure_of(self.error, job, now_s, duration_s) for job in self.jobs]
        if now_s > self.deadline_s:
            return self.overrun(now_s)
        return None

    def overrun(self, now_s: float) -> list[Failure]:
        """The failures of a call whose time is over."""
        limit_s = self._handler.options.timeout_s
        text = f"ran longer than {limit_s:g} s"
        if not self._handler.is_async:
            text += "; a thread cannot be stopped, so it may still run"
        duration_s = now_s - self.started_s
        at_ms = int(now_s * 1000)
        return [
            Failure(at_ms, job.tries, TIMEOUT, text, "", duration_s)
            for job in self.jobs
        ]


class TracedCalls:
    """A maker of calls, which are traced if the program wants that."""

    tracer: Tracing | None = None


def failure_of(
    error: BaseException, job: Job, now_s: float, duration_s: float
) -> Failure:
    """What is kept of an error that a handler raised."""
    return Failure(
        int(now_s * 1000),
        job.tries,
        type(error).__qualname__,
        _text(error),
        _trace(error),
        duration_s,
    ).noted(job.tries, now_s)


def unfit(error: UnfitPayload, job: Job, now_s: float) -> Failure:
    """The failure of an event that never reached the handler."""
    at_ms = int(now_s * 1000)
    failure = Failure(at_ms, job.tries, type(error).__name__, str(error), "", 0.0)
    return failure.noted(job.tries, now_s)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as unspeakable:  # the error's own __str__
        return f"(its text cannot be had: {type(unspeakable).__name__})"


def _trace(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _OWN:
        trace = trace.tb_next
    try:
        lines = traceback.format_exception(type(error), error, trace or None)
    except Exception:  # the error's own __str__ or __repr__
        lines = traceback.format_tb(trace)
    return "".join(lines)


# Frames that say nothing to the writer of a handler.
_OWN = frozenset(
    {__name__, "penstock.embedded.worker_pool", "penstock.embedded.threads"}
)
