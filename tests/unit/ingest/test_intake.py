from __future__ import annotations

import asyncio

from penstock.ingest.intake import BATCHES, StreamBuffer
from penstock.wire.sse import ServerSentEvent

PATIENCE_S = 10.0


def events(count: int, size: int = 1) -> list[ServerSentEvent]:
    return [ServerSentEvent(b"x" * size, str(number)) for number in range(count)]


def test_a_batch_waits_for_more_but_not_for_long() -> None:
    async def run() -> list[ServerSentEvent]:
        intake = StreamBuffer(linger_s=0.01)
        await intake.put(events(1))
        return await asyncio.wait_for(intake.take(), PATIENCE_S)

    assert asyncio.run(run()) == events(1)


def test_what_comes_meanwhile_is_in_the_same_batch() -> None:
    async def run() -> list[ServerSentEvent]:
        intake = StreamBuffer(max_events=3, linger_s=PATIENCE_S)
        taking = asyncio.create_task(intake.take())
        for one in events(3):
            await asyncio.sleep(0)
            await intake.put([one])
        return await asyncio.wait_for(taking, PATIENCE_S / 2)

    assert asyncio.run(run()) == events(3)


def test_a_batch_has_so_many_events_at_most() -> None:
    async def run() -> list[int]:
        intake = StreamBuffer(max_events=3, linger_s=PATIENCE_S)
        await intake.put(events(7))
        intake.end()
        return [len(await intake.take()) for _ in range(4)]

    assert asyncio.run(run()) == [3, 3, 1, 0]


def test_a_batch_has_so_many_bytes_at_most_but_one_event_at_least() -> None:
    async def run() -> list[int]:
        intake = StreamBuffer(max_bytes=10, linger_s=PATIENCE_S)
        await intake.put([*events(2, 5), *events(1, 15), *events(1, 3)])
        intake.end()
        return [len(await intake.take()) for _ in range(3)]

    assert asyncio.run(run()) == [2, 1, 1]


def test_who_reads_waits_while_there_is_no_room() -> None:
    async def run() -> tuple[bool, bool, int]:
        intake = StreamBuffer(max_events=2, linger_s=0)
        putting = asyncio.create_task(intake.put(events(2 * BATCHES)))
        await asyncio.sleep(0)
        before = putting.done()
        await intake.take()
        await asyncio.wait_for(putting, PATIENCE_S)
        return before, putting.done(), len(intake)

    assert asyncio.run(run()) == (False, True, 2 * BATCHES - 2)


def test_large_events_fill_it_as_well() -> None:
    async def run() -> bool:
        intake = StreamBuffer(max_bytes=10, linger_s=0)
        putting = asyncio.create_task(intake.put(events(1, 10 * BATCHES)))
        await asyncio.sleep(0)
        was_waiting = not putting.done()
        await intake.take()
        await asyncio.wait_for(putting, PATIENCE_S)
        return was_waiting

    assert asyncio.run(run())


def test_it_ends_when_somebody_waits() -> None:
    async def run() -> list[ServerSentEvent]:
        intake = StreamBuffer()
        taking = asyncio.create_task(intake.take())
        await asyncio.sleep(0)
        await intake.put([])
        intake.end()
        return await asyncio.wait_for(taking, PATIENCE_S)

    assert asyncio.run(run()) == []


def test_the_end_does_not_wait_for_a_full_batch() -> None:
    async def run() -> list[ServerSentEvent]:
        intake = StreamBuffer(linger_s=PATIENCE_S)
        await intake.put(events(2))
        taking = asyncio.create_task(intake.take())
        await asyncio.sleep(0)
        intake.end()
        return await asyncio.wait_for(taking, PATIENCE_S / 2)

    assert asyncio.run(run()) == events(2)
