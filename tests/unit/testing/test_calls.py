from __future__ import annotations

import asyncio

import pytest

from penstock import Context, Domain, Event
from penstock.embedded.handler import Handler
from penstock.embedded.job import Job
from penstock.embedded.run import HandlerRun
from penstock.testing import InjectedFault, VirtualClock
from penstock.testing.faults import Faults
from penstock.testing.pace import Calls
from penstock.testing.timers import CALL, VirtualTimers

EVENT = Event(topic="t", offset=0, id="e", timestamp_ms=0, payload=b"{}")


class Watch:
    def __init__(self, domain: Domain) -> None:
        self.clock = VirtualClock()
        self.faults = Faults()
        self.timers = VirtualTimers(self.clock, lambda: None)
        self.calls = Calls(self.timers, self.faults)
        found = self.calls.watched(domain).handler("t")
        assert found is not None
        self.handler: Handler = found

    def run(self) -> HandlerRun:
        job = Job(event=EVENT, offset=0, tries=1, lane=None)
        return HandlerRun([job], self.handler, "d", self.clock)


def test_a_handler_is_the_same_otherwise() -> None:
    domain = Domain("d")

    @domain.on("t", tries=7)
    async def handle(event: Event[bytes], context: Context) -> None: ...

    before = domain.handler("t")
    after = Watch(domain).handler

    assert before is not None
    assert (after.is_async, after.with_context) == (True, True)
    assert (after.options, after.where) == (before.options, before.where)
    assert domain.handler("t") is before


def test_calls_are_counted_and_awake_until_they_ended() -> None:
    domain = Domain("d")
    awake: list[int] = []

    @domain.on("t")
    def handle(event: Event[bytes]) -> None:
        awake.append(len(watch.calls.awake([run])))

    watch = Watch(domain)
    run = watch.run()

    run.call_blocking()

    assert run.error is None
    assert (awake, watch.calls.begun) == ([1], 1)
    assert watch.calls.awake([]) == []
    assert watch.calls.awake([run]) == [None], "it has to be noted yet"


def test_a_batch_that_a_handler_empties_is_known_all_the_same() -> None:
    domain = Domain("d")
    awake: list[bool] = []

    @domain.on_batch("t")
    def handle(events: list[Event[bytes]]) -> None:
        events.clear()
        awake.extend(one is not None for one in watch.calls.awake([run]))

    watch = Watch(domain)
    run = watch.run()

    run.call_blocking()

    assert awake == [True]


def test_a_fault_comes_instead_of_the_handler() -> None:
    domain = Domain("d")
    called: list[str] = []

    @domain.on("t")
    def handle(event: Event[bytes]) -> None:
        called.append(event.id)

    watch = Watch(domain)
    watch.faults.fail(("d", "t"), 1, ValueError("no"))
    first, second = watch.run(), watch.run()

    first.call_blocking()
    second.call_blocking()

    assert isinstance(first.error, ValueError)
    assert (second.error, called) == (None, ["e"])


def test_an_async_handler_knows_its_call_only_while_it_runs() -> None:
    domain = Domain("d")
    inside: list[bool] = []

    @domain.on("t")
    async def handle(event: Event[bytes]) -> None:
        inside.append(CALL.get() is not None)

    watch = Watch(domain)
    watch.faults.slow(("d", "t"), 1, 0.0)

    async def test() -> bool:
        await watch.run().call()
        return CALL.get() is None

    assert asyncio.run(test())
    assert inside == [True]


@pytest.mark.parametrize("is_async", [True, False])
def test_nothing_begins_any_more_when_it_is_closed(*, is_async: bool) -> None:
    domain = Domain("d")
    called: list[str] = []
    if is_async:

        @domain.on("t")
        async def handle(event: Event[bytes]) -> None:
            called.append(event.id)
    else:

        @domain.on("t")
        def handle_blocking(event: Event[bytes]) -> None:
            called.append(event.id)

    watch = Watch(domain)
    watch.calls.close()
    run = watch.run()

    if is_async:
        with pytest.raises(InjectedFault):
            asyncio.run(run.call())
    else:
        run.call_blocking()
        assert isinstance(run.error, InjectedFault)

    assert called == []
