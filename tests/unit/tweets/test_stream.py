from __future__ import annotations

import asyncio

import pytest

from penstock.tweets import stream as module
from penstock.tweets.generator import Generator
from penstock.tweets.pace import MessagePace
from penstock.tweets.stream import MAX_BATCH, Stream, StreamTally
from penstock.wire.sse import ServerSentEvent, SseParser


class Clock:
    """Goes on by ``step_s`` whenever somebody looks."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self.now_s = 0.0
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        self.now_s += self.step_s
        return self.now_s


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_S", 0)


def made(count: int | None, rate: float = 0, stop_after: int | None = None) -> Stream:
    tally = StreamTally()
    return Stream(
        generator=Generator(1, 1),
        pace=MessagePace(rate, steady=True),
        count=count,
        stopping=lambda: stop_after is not None and tally.events >= stop_after,
        tally=tally,
    )


def read(
    stream: Stream, first: int, clock: Clock
) -> tuple[list[bytes], list[ServerSentEvent]]:
    async def run() -> list[bytes]:
        return [data async for data in stream.frames(first, clock)]

    writes = asyncio.run(run())
    return writes, SseParser(1 << 20).feed(b"".join(writes))


def test_messages_have_their_numbers_as_ids() -> None:
    stream = made(count=500)

    _, events = read(stream, 101, Clock(1))

    assert [int(event.id) for event in events] == list(range(101, 501))
    assert [event.data for event in events] == Generator(1, 1).batch(101, 400)
    # Whoever begins at message 101 by himself has not got those in front of it.
    assert stream.tally == StreamTally(events=400, clients=0, last=0)


@pytest.mark.slow
def test_the_last_message_sent_is_known_over_all_readers_and_restarts() -> None:
    stream = made(count=500)
    lasts = []

    for first, goes_on in ((1, False), (400, True), (701, True)):
        stream = made(count=500) if goes_on else stream
        if goes_on:
            stream.goes_on(first)
        lasts.append(stream.tally.last)
        read(stream, first, Clock(1))
        lasts.append(stream.tally.last)

    assert lasts == [0, 500, 399, 500, 500, 500]


def test_many_messages_are_in_a_write() -> None:
    writes, _ = read(made(count=1000), 1, Clock(1))

    # The first says nothing but that there is a stream.
    assert writes[0] == b":\n\n"
    assert len(writes) == 1 + 1000 // MAX_BATCH


def test_no_more_is_sent_than_is_due() -> None:
    clock = Clock(0.1)

    writes, events = read(made(count=50, rate=100), 1, clock)

    assert len(events) == 50
    assert [write.count(b"id: ") for write in writes] == [0, 10, 10, 10, 10, 10]


def test_it_ends_when_the_server_does() -> None:
    stream = made(count=None, stop_after=300)

    _, events = read(stream, 1, Clock(1))

    assert len(events) == 400
    assert stream.tally.clients == 0


def test_silence_is_filled_with_comments() -> None:
    writes, events = read(made(count=2, rate=0.01), 1, Clock(1.0))

    assert len(events) == 2
    assert writes.count(b":\n\n") > 10


@pytest.mark.slow
def test_a_stream_is_over_behind_its_last_message() -> None:
    assert [made(count=5).is_over(first) for first in (5, 6)] == [False, True]
    assert not made(count=None).is_over(1 << 60)
