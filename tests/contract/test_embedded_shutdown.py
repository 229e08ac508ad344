"""What becomes of events when a program ends, or its broker does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.embedded import Context, Event
from penstock.errors import DirectoryLocked, NotRunning
from tests.contract.embedded_worlds import World
from tests.serving import serving

KINDS = ["async", "sync"]


def tries_after(world: World, **settings: Any) -> dict[int, int]:
    """Which try comes next, of every event that is left."""
    domain, tries = world.domain("a"), {}

    @domain.on(world.name("t"), **settings)
    async def handle(event: Event[bytes], context: Context) -> None:
        tries[event.offset] = context.tries

    face = world.open()
    face.start(domain)
    face.settle()
    return tries


@pytest.mark.parametrize("kind", KINDS)
def test_closing_waits_for_what_runs_and_begins_nothing_more(
    world: World, kind: str
) -> None:
    domain, begun, go_on = world.domain("a"), threading.Event(), threading.Event()
    done: list[int] = []

    def sync(event: Event[bytes], context: Context) -> None:
        begun.set()
        go_on.wait(60)
        context.publish(world.name("out"), b"%d" % event.offset)
        done.append(event.offset)

    async def coroutine(event: Event[bytes], context: Context) -> None:
        await asyncio.to_thread(sync, event, context)

    handler: Any = sync if kind == "sync" else coroutine
    domain.on(world.name("t"), order="strict")(handler)
    face = world.open()
    face.publish_many(world.name("t"), [b"0", b"1", b"2"])
    face.start(domain)
    assert begun.wait(60)
    closer = threading.Thread(target=face.close)
    closer.start()
    go_on.set()
    closer.join(60)

    assert done == [0]
    assert tries_after(world, order="strict") == {1: 1, 2: 1}
    out, heard = world.domain("b"), []

    @out.on(world.name("out"))
    async def hear(event: Event[bytes]) -> None:
        heard.append(event.payload)

    face = world.open() if world.kind == "url" else world._faces[-1]
    face.start(out)
    face.settle()
    assert heard == [b"0"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_try_that_a_shutdown_ends_is_counted_and_others_are_not(
    world: World, kind: str
) -> None:
    domain, begun, let_go = world.domain("a"), threading.Event(), threading.Event()

    def sync(event: Event[bytes], context: Context) -> None:
        begun.set()
        let_go.wait()
        context.publish(world.name("out"), b"never")

    async def coroutine(event: Event[bytes], context: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    handler: Any = sync if kind == "sync" else coroutine
    settings: Any = {"order": "key", "concurrency": 1}
    domain.on(world.name("t"), **settings)(handler)
    face = world.open()
    for key in (b"a", b"a", b"b", b"b"):
        face.publish(world.name("t"), b"x", key=key)
    face.start(domain)
    assert begun.wait(60)

    try:
        face.close(0.1)
        again = tries_after(world, **settings)
    finally:
        let_go.set()

    assert again == {0: 2, 1: 1, 2: 1, 3: 1}


def test_nothing_is_counted_of_what_was_never_begun(world: World) -> None:
    domain, begun = world.domain("a"), threading.Event()

    @domain.on_batch(world.name("t"), size=5)
    async def handle(events: list[Event[bytes]]) -> None:
        begun.set()
        await asyncio.Event().wait()

    face = world.open()
    face.publish_many(world.name("t"), [b"x"] * 100)
    face.start(domain)
    assert begun.wait(60)
    face.close(0.1)
    again = tries_after(world)

    assert set(again) == set(range(100))
    assert Counter(again.values()) == {1: 95, 2: 5}


@pytest.mark.parametrize("kind", KINDS)
def test_every_try_that_is_counted_was_begun(world: World, kind: str) -> None:
    begun: Counter[int] = Counter()
    let_go = threading.Event()

    def sync(event: Event[bytes]) -> None:
        begun[event.offset] += 1
        let_go.wait()

    async def coroutine(event: Event[bytes]) -> None:
        begun[event.offset] += 1
        await asyncio.Event().wait()

    handler: Any = sync if kind == "sync" else coroutine
    face = world.open()
    face.publish_many(world.name("t"), [b"x"] * 10)
    face.close()
    try:
        for _ in range(4):
            domain = world.domain("a")
            domain.on(world.name("t"), concurrency=3, tries=20)(handler)
            face = world.open()
            face.start(domain)
            face.close(0.0)
    finally:
        let_go.set()
    again = tries_after(world, concurrency=3, tries=20)

    assert again == {offset: 1 + begun[offset] for offset in range(10)}


# Two processes


HOLD = """
import sys, penstock
with penstock.open(sys.argv[1]) as broker:
    broker.publish("t", b"x")
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_who_has_the_directory(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"ready\n"

        with (
            pytest.raises(DirectoryLocked, match=str(holder.pid)),
            penstock.open(tmp_path / "data"),
        ):
            pass

        url = f"penstock://{tmp_path / 'data'}"
        with penstock.open(url) as broker:
            assert broker.publish("t", b"y").offset == 1
    finally:
        holder.communicate()
    with penstock.open(tmp_path / "data") as broker:
        assert broker.publish("t", b"z").offset == 2


def test_a_url_without_a_server_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotRunning), penstock.open(f"penstock://{tmp_path}"):
        pass


# A server that is killed


@pytest.mark.slow
@pytest.mark.parametrize("order", ["parallel", "key", "strict"])
def test_handlers_go_on_when_a_server_comes_back(tmp_path: Path, order: Any) -> None:
    domain, lock = penstock.Domain("a"), threading.Lock()
    counts: Counter[int] = Counter()
    running: Counter[bytes | None] = Counter()
    firsts: list[int] = []
    overlaps = 0
    some = threading.Event()

    @domain.on("t", order=order, tries=20, backoff_s=0.01)
    def handle(event: Event[bytes], context: Context) -> None:
        nonlocal overlaps
        with lock:
            overlaps += running[event.key]
            running[event.key] += 1
            counts[event.offset] += 1
            if counts[event.offset] == 1:
                firsts.append(event.offset)
            if len(counts) >= 30:
                some.set()
        context.publish("out", b"%d" % event.offset)
        threading.Event().wait(0.002)
        with lock:
            running[event.key] -= 1

    with serving(tmp_path) as server:
        url = f"penstock://{server.data}"
        with penstock.open(url) as broker:
            for number in range(300):
                broker.publish("t", b"x", key=b"%d" % (number % 3))
            broker.start(domain)
            assert some.wait(60)
            server.kill()
            server.start()
            broker.wait_until_settled(120)
        heard: list[bytes] = []
        out = penstock.Domain("b")

        @out.on("out")
        async def hear(event: Event[bytes]) -> None:
            heard.append(event.payload)

        with penstock.open(url) as broker:
            broker.start(out)
            broker.wait_until_settled(60)
            letters = broker.ask("dead-letters")

    assert letters == {"letters": [], "next": None}
    assert Counter(heard) == Counter(b"%d" % number for number in range(300))
    assert set(counts) == set(range(300))
    if order == "strict":
        assert firsts == list(range(300))
    if order == "key":
        for key in range(3):
            own = [offset for offset in firsts if offset % 3 == key]
            assert own == sorted(own)
    if order != "parallel":
        assert overlaps == 0
