"""What becomes of handlers that fail, run too long, or behave as nobody expects."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from penstock.embedded import Context, Event, GiveUp, Topic
from tests.contract.embedded_worlds import World

KINDS = ["async", "sync"]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Base(BaseException):
    pass


def boom(error: BaseException) -> None:
    raise error


def failing(kind: str, make: Any) -> Any:
    """A handler that raises what ``make`` makes, sync or async."""

    def sync(event: Event[bytes]) -> None:
        boom(make())

    async def coroutine(event: Event[bytes]) -> None:
        boom(make())

    return sync if kind == "sync" else coroutine


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_that_fails_every_try_is_a_dead_letter(
    world: World, kind: str
) -> None:
    domain = world.domain("a")
    domain.on(world.name("t"), tries=3, backoff_s=0.0)(
        failing(kind, lambda: ValueError("no such\norder"))
    )
    face = world.open()
    face.start(domain)
    stored = face.publish(world.name("t"), b"x", key=b"k", headers={"h": "v"})
    face.settle()

    [letter] = world.letters(face, "a")
    assert letter["topic"] == world.name("t")
    assert (letter["offset"], letter["id"]) == (0, stored.id)
    assert (letter["tries"], letter["kind"]) == (3, "ValueError")
    assert letter["reason"] == "ValueError: no such\norder"
    assert [one["tries"] for one in letter["failures"]] == [1, 2, 3]
    for one in letter["failures"]:
        assert (one["kind"], one["message"]) == ("ValueError", "no such\norder")
        lines = one["traceback"].splitlines()
        assert lines[0].startswith("Traceback (most recent call last)")
        assert "in boom" in one["traceback"]
        assert "embedded/run.py" not in one["traceback"]
        assert 0 <= one["duration_s"] < 5
    assert letter["event"]["headers"] == {"h": "v"}
    errors = world.errors(face, "a")
    assert [one["tries"] for one in errors] == [1, 2, 3]
    assert {one["id"] for one in errors} == {stored.id}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (KeyboardInterrupt, "KeyboardInterrupt"),
        (lambda: SystemExit(3), "SystemExit"),
        (lambda: asyncio.CancelledError("me"), "CancelledError"),
        (lambda: Base("x"), "Base"),
        (GeneratorExit, "GeneratorExit"),
        (StopIteration, None),
        (Unspeakable, "Unspeakable"),
        (lambda: ValueError("\ud800 \x00"), "ValueError"),
        (lambda: ValueError("x" * 1_000_000), "ValueError"),
        (lambda: ExceptionGroup("many", [ValueError("a"), KeyError("b")]), None),
        (RecursionError, "RecursionError"),
    ],
    ids=[
        *["interrupt", "exit", "cancelled", "base", "generator-exit", "stop-iteration"],
        *["unspeakable", "surrogate", "long", "group", "recursion"],
    ],
)
def test_whatever_a_handler_raises_is_a_failed_try_and_no_more(
    world: World, kind: str, make: Any, name: str | None
) -> None:
    domain, good = world.domain("a"), []
    domain.on(world.name("bad"), tries=2, backoff_s=0.0)(failing(kind, make))

    @domain.on(world.name("good"))
    async def handle(event: Event[bytes]) -> None:
        good.append(event.payload)

    face = world.open()
    face.start(domain)
    face.publish(world.name("bad"), b"x")
    face.publish(world.name("good"), b"y")
    face.settle()
    face.publish(world.name("bad"), b"z")
    face.settle()

    assert good == [b"y"]
    letters = world.letters(face, "a")
    assert [one["tries"] for one in letters] == [2, 2]
    if name is not None:
        assert letters[0]["failures"][0]["kind"] == name


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_handler_returns_does_not_matter(world: World, kind: str) -> None:
    domain, got = world.domain("a"), []
    garbage: list[Any] = [False, NotImplemented, ValueError("kept"), 0, object()]

    def sync(event: Event[bytes]) -> Any:
        got.append(event.offset)
        return garbage[event.offset]

    async def coroutine(event: Event[bytes]) -> Any:
        return sync(event)

    handler: Any = sync if kind == "sync" else coroutine
    domain.on(world.name("t"))(handler)
    face = world.open()
    face.publish_many(world.name("t"), [b"x"] * len(garbage))
    face.start(domain)
    face.settle()

    assert sorted(got) == list(range(len(garbage)))
    assert world.letters(face, "a") == []


def test_a_coroutine_that_nobody_awaits_is_a_failure_that_says_so(world: World) -> None:
    domain, ran = world.domain("a"), []

    async def inner() -> None:
        ran.append(1)

    @domain.on(world.name("t"), tries=1)
    def handle(event: Event[bytes]) -> Any:
        return inner()

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b"x")
    face.settle()

    assert "async def" in world.letters(face, "a")[0]["reason"]
    assert ran == []


def test_the_next_try_waits_for_its_pause(world: World) -> None:
    domain, times = world.domain("a"), []

    @domain.on(world.name("t"), tries=3, backoff_s=0.2, backoff_factor=2.0, jitter=0.0)
    async def handle(event: Event[bytes]) -> None:
        times.append(time.monotonic())
        raise ValueError

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b"x")
    face.settle()

    first, second = times[1] - times[0], times[2] - times[1]
    assert first >= 0.19
    assert second >= 0.39


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_that_gives_up_has_no_other_try(world: World, kind: str) -> None:
    domain = world.domain("a")
    domain.on(world.name("t"))(failing(kind, lambda: GiveUp("no such customer")))
    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b"x")
    face.settle()

    [letter] = world.letters(face, "a")
    assert (letter["tries"], letter["kind"]) == (1, "GiveUp")
    assert "no such customer" in letter["reason"]


# Payloads that do not fit


def test_a_payload_that_does_not_fit_is_a_dead_letter_at_once(world: World) -> None:
    domain, got = world.domain("a"), []

    @domain.on(world.name("t"))
    async def handle(event: Event[dict[str, int]]) -> None:
        got.append(event.payload)

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b'{"a": "text"}')
    face.publish(world.name("t"), b"\xff\xfe")
    face.publish(world.name("t"), b'{"a": 1}')
    face.settle()

    assert got == [{"a": 1}]
    first, second = world.letters(face, "a")
    assert (first["offset"], first["tries"], first["kind"]) == (0, 1, "UnfitPayload")
    assert "$[...]" in first["reason"] or "$['a']" in first["reason"]
    assert second["offset"] == 1


def test_a_type_that_fails_in_its_own_way_is_a_dead_letter_too(world: World) -> None:
    import msgspec

    class Checked(msgspec.Struct):
        total: int

        def __post_init__(self) -> None:
            if self.total < 0:
                raise KeyError("negative")

    topic, domain, got = Topic(world.name("t"), Checked), world.domain("a"), []

    @domain.on(topic)
    async def handle(event: Event[Checked]) -> None:
        got.append(event.payload.total)

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b'{"total": -1}')
    face.publish(world.name("t"), b'{"total": 1}')
    face.settle()

    assert got == [1]
    assert "negative" in world.letters(face, "a")[0]["reason"]


# Time


def test_an_async_handler_that_takes_too_long_is_cancelled(world: World) -> None:
    domain, cancelled = world.domain("a"), []

    @domain.on(world.name("t"), timeout_s=0.15, tries=2, backoff_s=0.0)
    async def handle(event: Event[bytes], context: Context) -> None:
        context.publish(world.name("out"), b"never")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(context.tries)
            raise

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b"x")
    face.settle()

    assert cancelled == [1, 2]
    [letter] = world.letters(face, "a")
    assert [one["kind"] for one in letter["failures"]] == ["Timeout", "Timeout"]
    assert "longer than 0.15 s" in letter["reason"]
    assert letter["failures"][0]["duration_s"] >= 0.15


def test_a_sync_handler_that_takes_too_long_goes_on_for_nothing(world: World) -> None:
    domain, go_on, ended = world.domain("a"), threading.Event(), threading.Semaphore(0)
    seen: list[int] = []

    @domain.on(world.name("t"), timeout_s=0.8, tries=2, backoff_s=0.0, concurrency=1)
    def handle(event: Event[bytes], context: Context) -> None:
        if event.payload == b"slow":
            go_on.wait()
            with pytest.raises(RuntimeError, match="the try is over"):
                context.publish(world.name("out"), b"never")
            ended.release()
        seen.append(event.offset)

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b"slow")
    face.publish(world.name("t"), b"fast")
    face.settle()
    before = list(seen)
    go_on.set()
    for _ in range(2):
        assert ended.acquire(timeout=60)
    face.publish(world.name("t"), b"fast")
    face.settle()

    assert before == [1]
    assert sorted(seen) == [0, 0, 1, 2]
    [letter] = world.letters(face, "a")
    assert "cannot be stopped" in letter["reason"]
    assert letter["tries"] == 2


def test_a_handler_that_does_not_listen_is_given_up_all_the_same(world: World) -> None:
    domain, ended, let_go = world.domain("a"), [], threading.Event()

    @domain.on(world.name("t"), timeout_s=0.8, tries=1, backoff_s=0.0, concurrency=1)
    async def handle(event: Event[bytes]) -> None:
        if event.offset == 0:
            while not let_go.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    continue
        ended.append(event.offset)

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b"x")
    face.publish(world.name("t"), b"y")
    try:
        face.settle()
        before = list(ended)
        assert [one["kind"] for one in world.letters(face, "a")] == ["Timeout"]
    finally:
        let_go.set()

    assert before == [1]


def test_a_handler_that_blocks_the_loop_has_failed_when_it_ends_late(
    world: World,
) -> None:
    domain, done = world.domain("a"), []

    @domain.on(world.name("t"), timeout_s=0.8, tries=2, backoff_s=0.0)
    async def handle(event: Event[bytes], context: Context) -> None:
        context.publish(world.name("out"), b"%d" % context.tries)
        if context.tries == 1:
            time.sleep(1.0)  # noqa: ASYNC251 - that is what is tested
        done.append(context.tries)

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b"x")
    face.settle()

    assert done == [1, 2]
    assert [one["kind"] for one in world.errors(face, "a")] == ["Timeout"]
    listener, heard = world.domain("b"), []

    @listener.on(world.name("out"))
    async def hear(event: Event[bytes]) -> None:
        heard.append(event.payload)

    face.start(listener)
    face.settle()
    assert heard == [b"2"]


def test_a_handler_knows_how_much_time_is_left(world: World) -> None:
    domain, left = world.domain("a"), []

    @domain.on(world.name("t"), timeout_s=30.0)
    async def handle(event: Event[bytes], context: Context) -> None:
        left.append((context.remaining_s, context.deadline_s - time.time()))

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), b"x")
    face.settle()

    [(remaining_s, until_s)] = left
    assert 0 < remaining_s <= 30
    assert 0 < until_s <= 30


def test_short_calls_do_not_wait_for_ever_behind_one_that_blocks(world: World) -> None:
    release = threading.Event()
    seen: list[int] = []
    domain = world.domain("a")

    @domain.on(world.name("t"), timeout_s=1.5, tries=1, concurrency=1)
    def handle(event: Event[bytes]) -> None:
        if event.offset == 200:
            release.wait(120)
            return
        seen.append(event.offset)

    face = world.open()
    face.start(domain)
    try:
        face.publish_many(world.name("t"), [b"x"] * 400)
        face.settle()

        assert sorted(seen) == [offset for offset in range(400) if offset != 200]
        [letter] = world.letters(face, "a")
        assert letter["offset"] == 200
    finally:
        release.set()


def test_calls_that_were_not_begun_go_back_when_a_program_ends(world: World) -> None:
    release, begun = threading.Event(), threading.Event()
    seen: list[tuple[int, int]] = []
    domain = world.domain("a")

    @domain.on(world.name("t"), concurrency=1, tries=2)
    def handle(event: Event[bytes], context: Context) -> None:
        seen.append((event.offset, context.tries))
        if event.offset == 200:
            begun.set()
            release.wait(120)

    face = world.open()
    face.start(domain)
    face.publish_many(world.name("t"), [b"x"] * 400)
    assert begun.wait(60)
    closing = threading.Thread(target=face.close)
    closing.start()
    release.set()
    closing.join()
    face = world.open()
    face.start(domain)
    face.settle()

    assert sorted(offset for offset, _ in seen) == list(range(400))
    if world.kind != "url":  # where one may be on its way, which counts
        assert {tries for _, tries in seen} == {1}
