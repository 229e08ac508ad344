"""Which events wait for which: order by key, strict, priority."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from typing import Any

import pytest

from penstock.embedded import Context, Event
from tests.contract.embedded_worlds import World

KINDS = ["async", "sync"]


class Diary:
    """Who began and ended when; whether two of a lane ran at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.done: dict[bytes | None, list[int]] = defaultdict(list)
        self.tried: dict[bytes | None, list[int]] = defaultdict(list)
        self.overlaps = 0
        self._running: set[bytes | None] = set()

    def begin(self, lane: bytes | None, offset: int) -> None:
        with self._lock:
            self.overlaps += lane in self._running
            self._running.add(lane)
            self.tried[lane].append(offset)

    def end(self, lane: bytes | None, offset: int, *, good: bool) -> None:
        with self._lock:
            self._running.discard(lane)
            if good:
                self.done[lane].append(offset)


def handler(kind: str, diary: Diary, *, by_key: bool, fails: Any) -> Any:
    def begin(event: Event[bytes]) -> bytes | None:
        lane = event.key if by_key else None
        diary.begin(lane, event.offset)
        return lane

    def end(lane: bytes | None, event: Event[bytes], context: Context) -> None:
        bad = fails(event.offset, context.tries)
        diary.end(lane, event.offset, good=not bad)
        if bad:
            raise ValueError(event.offset)
        context.publish(f"{event.topic}-out", b"%d" % event.offset)

    def sync(event: Event[bytes], context: Context) -> None:
        lane = begin(event)
        end(lane, event, context)

    async def coroutine(event: Event[bytes], context: Context) -> None:
        lane = begin(event)
        await asyncio.sleep(0)
        end(lane, event, context)

    return sync if kind == "sync" else coroutine


@pytest.mark.parametrize("backoff_s", [0.0, 0.05])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["key", "strict"])
def test_events_of_a_lane_follow_one_another_also_over_retries(
    world: World, order: Any, kind: str, backoff_s: float
) -> None:
    domain, diary = world.domain("a"), Diary()

    def fails(offset: int, tries: int) -> bool:
        return offset % 7 == 3 and tries < 3

    domain.on(world.name("t"), order=order, backoff_s=backoff_s, concurrency=4)(
        handler(kind, diary, by_key=order == "key", fails=fails)
    )
    face = world.open()
    keys = [b"a", b"b", b"c", b""]  # which is a key too
    for offset in range(40):
        face.publish(world.name("t"), b"x", key=keys[offset % 4])
    face.start(domain)
    for offset in range(40, 60):
        face.publish(world.name("t"), b"x", key=keys[offset % 4])
    face.settle()

    assert diary.overlaps == 0
    if order == "strict":
        assert diary.done[None] == list(range(60))
    else:
        for at, key in enumerate(keys):
            assert diary.done[key] == list(range(at, 60, 4))
    for lane in diary.tried.values():
        assert lane == sorted(lane)


@pytest.mark.parametrize("order", ["key", "strict"])
def test_a_lane_goes_on_behind_a_dead_letter(world: World, order: Any) -> None:
    domain, diary = world.domain("a"), Diary()
    domain.on(world.name("t"), order=order, tries=2, backoff_s=0.02)(
        handler("async", diary, by_key=True, fails=lambda offset, _: offset == 1)
    )
    face = world.open()
    for _ in range(4):
        face.publish(world.name("t"), b"x", key=b"k")
    face.start(domain)
    face.settle()

    assert diary.done[b"k"] == [0, 2, 3]
    assert diary.tried[b"k"] == [0, 1, 1, 2, 3]
    assert [one["offset"] for one in world.letters(face, "a")] == [1]


def test_events_without_a_key_do_not_wait_for_each_other(world: World) -> None:
    domain, gate, begun, seen = world.domain("a"), threading.Event(), [], []

    def handle(event: Event[bytes], context: Context) -> None:
        begun.append(event.offset)
        if len(begun) == 3:
            gate.set()  # three run at once, or none of them ends
        assert gate.wait(60)
        if event.offset == 0 and context.tries == 1:
            raise ValueError
        seen.append(event.offset)

    domain.on(world.name("t"), order="key", concurrency=3, timeout_s=120)(handle)
    face = world.open()
    for _ in range(6):
        face.publish(world.name("t"), b"x")
    face.start(domain)
    face.settle()

    assert sorted(seen) == [0, 1, 2, 3, 4, 5]
    assert seen[-1] == 0


def test_other_keys_go_on_while_one_waits_for_its_next_try(world: World) -> None:
    domain, done, gate = world.domain("a"), [], threading.Event()

    @domain.on(world.name("t"), order="key", backoff_s=30.0, jitter=0.0)
    async def handle(event: Event[bytes], context: Context) -> None:
        if event.key == b"bad":
            raise ValueError
        done.append(event.offset)
        if len(done) == 50:
            gate.set()

    face = world.open()
    for number in range(100):
        key = b"bad" if number % 2 == 0 else b"good-%d" % (number % 5)
        face.publish(world.name("t"), b"x", key=key)
    face.start(domain)

    assert gate.wait(60)
    assert sorted(done) == list(range(1, 100, 2))


@pytest.mark.parametrize("order", ["key", "strict"])
def test_a_lane_waits_for_what_its_first_event_publishes(
    world: World, order: Any
) -> None:
    domain, seen = world.domain("a"), []

    @domain.on(world.name("t"), order=order, tries=3, backoff_s=0.02)
    async def handle(event: Event[bytes], context: Context) -> None:
        seen.append((event.offset, context.tries))
        if event.offset == 0:
            context.publish(
                world.name("out"), b"x", priority=999 if context.tries < 3 else 1
            )

    face = world.open()
    for _ in range(3):
        face.publish(world.name("t"), b"x", key=b"k")
    face.start(domain)
    face.settle()

    assert seen == [(0, 1), (0, 2), (0, 3), (1, 1), (2, 1)]


def test_a_lane_goes_on_when_its_event_is_moved_over(world: World) -> None:
    domain, done, failed = world.domain("a"), [], threading.Event()

    @domain.on(world.name("t"), order="strict", backoff_s=60.0, jitter=0.0)
    async def handle(event: Event[bytes]) -> None:
        if event.offset == 0:
            failed.set()
            raise ValueError
        done.append(event.offset)

    face = world.open(token=world.token)
    face.publish_many(world.name("t"), [b"0", b"1", b"2"])
    face.start(domain)
    assert failed.wait(60)
    while not world.errors(face, "a"):  # it is written a moment later
        time.sleep(0.005)
    face.ask(
        "subscriptions.seek",
        subscriber=world.name("a"),
        topic=world.name("t"),
        start=1,
    )
    face.settle()

    assert done == [1, 2]


def test_the_highest_priority_goes_first(world: World) -> None:
    domain, seen = world.domain("a"), []

    @domain.on(world.name("t"), order="priority", concurrency=1)
    async def handle(event: Event[bytes]) -> None:
        seen.append(event.priority)

    face = world.open()
    for priority in [1, 5, 3, 5, 0, 9]:
        face.publish(world.name("t"), b"x", priority=priority)
    face.start(domain)
    face.settle()

    assert seen == [9, 5, 5, 3, 1, 0]
