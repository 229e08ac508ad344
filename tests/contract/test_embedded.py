"""What a program with handlers is promised, wherever its broker is."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, TypedDict

import msgspec
import pytest

import penstock
from penstock.embedded import Context, Event, Topic
from penstock.errors import (
    InvalidBatch,
    NotSettled,
    PenstockError,
    StartedTwice,
    SubscribedTwice,
    UnfitPayload,
)
from tests.contract.embedded_worlds import Face, World

# Any: it may not be installed.
pydantic: Any = None
with suppress(ImportError):
    pydantic = import_module("pydantic")

KINDS = ["async", "sync"]


class Struct(msgspec.Struct):
    total: int
    note: str = ""


@dataclasses.dataclass
class Data:
    total: int
    note: str = ""


class Typed(TypedDict):
    total: int
    note: str


if pydantic is not None:

    class Model(pydantic.BaseModel):
        total: int
        note: str = ""


def in_kind(kind: str, function: Callable[[Any, Context], None]) -> Any:
    """The function as a handler that is async, or is not."""
    if kind == "sync":
        return function

    async def handler(event: Any, context: Context) -> None:
        await asyncio.sleep(0)
        function(event, context)

    return handler


def reader(world: World, word: str) -> tuple[penstock.Domain, list[Event[bytes]]]:
    """A domain that keeps what it hears of a topic."""
    domain, heard = world.domain(f"reader of {word}"), []

    @domain.on(world.name(word))
    async def hear(event: Event[bytes]) -> None:
        heard.append(event)

    return domain, heard


# Publishing and handling


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_published_is_handled(world: World, kind: str) -> None:
    domain, got = world.domain("a"), []
    on = domain.on(world.name("t"))
    on(in_kind(kind, lambda event, context: got.append(event.payload)))
    face = world.open()
    face.start(domain)

    for number in range(20):
        face.publish(world.name("t"), b"%d" % number)
    face.settle()

    assert sorted(got) == sorted(b"%d" % number for number in range(20))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (bytes, b"\x00raw"),
        (Struct, Struct(5, "x")),
        (Data, Data(5, "x")),
        (Typed, Typed(total=5, note="x")),
        (dict[str, list[int]], {"a": [1, 2]}),
        (int, 7),
        pytest.param(
            Model if pydantic else None,
            Model(total=5, note="x") if pydantic else None,
            marks=pytest.mark.skipif(
                pydantic is None, reason="component: pydantic (not installed)"
            ),
        ),
    ],
    ids=["bytes", "struct", "dataclass", "typeddict", "dict", "int", "pydantic"],
)
def test_a_payload_arrives_as_the_type_it_was(
    world: World, type_: Any, value: object
) -> None:
    topic, domain, got = Topic(world.name("t"), type_), world.domain("a"), []

    @domain.on(topic)
    def handle(event: Event[Any]) -> None:
        got.append(event.payload)

    face = world.open()
    face.start(domain)
    face.publish(topic, value)
    face.settle()

    assert got == [value]
    assert type(got[0]) is type(value)


def test_the_type_of_a_handler_counts_where_the_topic_has_none(world: World) -> None:
    domain, got = world.domain("a"), []

    @domain.on(world.name("t"))
    async def handle(event: Event[Struct]) -> None:
        got.append(event.payload)

    face = world.open()
    face.start(domain)
    face.publish(world.name("t"), {"total": 3})
    face.publish(world.name("t"), Struct(4))
    face.publish(world.name("t"), b'{"total": 5}')
    face.settle()

    assert sorted(one.total for one in got) == [3, 4, 5]


def test_everything_about_an_event_arrives(world: World) -> None:
    face = world.open(name="me")
    domain, heard = reader(world, "t")
    before_ms = int(time.time() * 1000)

    stored = face.publish(
        world.name("t"),
        b"x",
        key=b"k",
        priority=7,
        headers={"a": "b"},
        id="id-1",
        parent="id-0",
    )
    bare = face.publish(world.name("t"), b"y")
    face.start(domain)
    face.settle()

    event, other = sorted(heard, key=lambda one: one.offset)
    assert (stored.topic, stored.offset, stored.id) == (world.name("t"), 0, "id-1")
    assert before_ms <= event.timestamp_ms <= time.time() * 1000
    assert event == Event(
        topic=world.name("t"),
        offset=0,
        id="id-1",
        timestamp_ms=event.timestamp_ms,
        payload=b"x",
        key=b"k",
        priority=7,
        headers={"a": "b"},
        parent="id-0",
        producer="me",
    )
    assert other == Event(
        topic=world.name("t"),
        offset=1,
        id=bare.id,
        timestamp_ms=other.timestamp_ms,
        payload=b"y",
        producer="me",
    )
    assert bare.id


def test_an_empty_key_is_not_none(world: World) -> None:
    face = world.open()
    domain, heard = reader(world, "t")

    face.publish(world.name("t"), b"x", key=b"")
    face.start(domain)
    face.settle()

    assert [event.key for event in heard] == [b""]


def test_many_events_are_published_at_once(world: World) -> None:
    face = world.open()
    domain, heard = reader(world, "t")
    face.start(domain)

    stored = face.publish_many(world.name("t"), [b"%d" % n for n in range(1000)])
    face.settle()

    assert [one.offset for one in stored] == list(range(1000))
    by_id = {event.id: event.payload for event in heard}
    assert [by_id[one.id] for one in stored] == [b"%d" % n for n in range(1000)]
    assert face.publish_many(world.name("t"), []) == []


def test_an_event_with_a_known_dedup_id_is_stored_once(world: World) -> None:
    face = world.open()
    domain, heard = reader(world, "t")
    face.start(domain)

    first = face.publish(world.name("t"), b"x", dedup_id="d")
    again = face.publish(world.name("t"), b"x", dedup_id="d")
    face.settle()

    assert (first.offset, again.offset) == (0, 0)
    assert len(heard) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": 256},
        {"key": "text"},
        {"headers": {"a": 1}},
        {"id": " "},
        {"parent": ""},
    ],
    ids=str,
)
def test_an_event_that_cannot_be_stored_is_refused_at_once(
    world: World, wrong: dict[str, Any]
) -> None:
    face = world.open()

    with pytest.raises(Exception) as caught:
        face.publish(world.name("t"), b"x", **wrong)

    assert isinstance(caught.value, PenstockError | TypeError)
    assert face.publish(world.name("t"), b"good").offset == 0


def test_others_do_not_suffer_from_a_publisher_that_is_refused(world: World) -> None:
    face = world.open()
    done: list[object] = []

    def publish(priority: int) -> None:
        try:
            done.append(face.publish(world.name("t"), b"x", priority=priority).offset)
        except PenstockError as error:
            done.append(type(error))

    threads = [
        threading.Thread(target=publish, args=(priority,))
        for priority in [0, 1, 300, 2, 999, 3]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    good = [one for one in done if isinstance(one, int)]
    assert sorted(good) == [0, 1, 2, 3]
    assert len(done) == 6


def test_a_payload_of_another_type_is_refused(world: World) -> None:
    face = world.open()

    with pytest.raises(UnfitPayload, match="Struct"):
        face.publish(Topic(world.name("t"), Struct), Data(1))
    with pytest.raises(UnfitPayload):
        face.publish(world.name("u"), object())
    with pytest.raises(UnfitPayload):
        face.publish(Topic(world.name("v")), "text")


# Publishing from handlers


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_handler_publishes_is_stored_once_and_with_its_success(
    world: World, kind: str
) -> None:
    source, domain = Topic(world.name("in"), int), world.domain("a")
    listener, heard = reader(world, "out")
    tries: list[tuple[int, int]] = []

    def handle(event: Event[int], context: Context) -> None:
        tries.append((event.payload, context.tries))
        context.publish(world.name("out"), b"%d" % event.payload, key=b"k")
        context.publish(world.name("out"), b"-%d" % event.payload)
        if context.tries <= event.payload:
            raise ValueError(f"try {context.tries}")

    domain.on(source, backoff_s=0.0, tries=3)(in_kind(kind, handle))
    face = world.open()
    face.start(domain, listener)
    stored = [face.publish(source, number) for number in (0, 1, 2, 3)]
    face.settle()

    assert sorted(tries) == [
        *[(0, 1), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)],
    ]
    wanted = [b"0", b"-0", b"1", b"-1", b"2", b"-2"]
    assert Counter(event.payload for event in heard) == Counter(wanted)
    parents = {event.payload: event.parent for event in heard}
    assert [parents[b"%d" % number] for number in (0, 1, 2)] == [
        one.id for one in stored[:3]
    ]
    assert {event.key for event in heard} == {b"k", None}
    assert {event.producer for event in heard} == {world.name("a")}
    letters = world.letters(face, "a")
    assert [letter["id"] for letter in letters] == [stored[3].id]


def test_a_chain_of_handlers_ends_with_nothing_owed(world: World) -> None:
    domain, count = world.domain("a"), 5
    seen: list[str] = []

    def hop(number: int) -> None:
        @domain.on(world.name(f"hop{number}"))
        async def handle(event: Event[bytes], context: Context) -> None:
            seen.append(f"{number}{event.payload.decode()}")
            if number < count - 1:
                context.publish(world.name(f"hop{number + 1}"), event.payload)

    for number in range(count):
        hop(number)
    face = world.open()
    face.start(domain)
    face.publish(world.name("hop0"), b"x")
    face.publish(world.name("hop0"), b"y")
    face.settle()

    assert sorted(seen) == sorted(f"{n}{x}" for n in range(count) for x in "xy")


def test_a_handler_fails_whose_events_are_refused(world: World) -> None:
    domain, runs = world.domain("a"), []

    @domain.on(world.name("in"), tries=2, backoff_s=0.0)
    async def handle(event: Event[bytes], context: Context) -> None:
        runs.append(context.tries)
        context.publish(world.name("out"), b"good")
        context.publish(world.name("out"), b"bad", priority=999)

    face = world.open()
    face.start(domain)
    face.publish(world.name("in"), b"x")
    face.settle()

    assert runs == [1, 2]
    assert len(world.letters(face, "a")[0]["failures"]) == 2
    assert "priority" in world.letters(face, "a")[0]["reason"]
    listener, heard = reader(world, "out")
    face.start(listener)
    face.settle()
    assert heard == []


def test_a_publisher_with_an_invalid_name_hears_of_it_in_the_handler(
    world: World,
) -> None:
    domain, found = world.domain("a"), []

    @domain.on(world.name("in"))
    async def handle(event: Event[bytes], context: Context) -> None:
        for topic in ("", "$errors"):
            try:
                context.publish(topic, b"x")
            except PenstockError as error:
                found.append(type(error).__name__)
        try:
            context.publish("t", b"x", id="")
        except InvalidBatch:
            found.append("InvalidBatch")

    face = world.open()
    face.start(domain)
    face.publish(world.name("in"), b"x")
    face.settle()

    assert found == ["InvalidName", "ReservedName", "InvalidBatch"]


# Which events


def test_a_filter_takes_keys_and_headers(world: World) -> None:
    domain, got = world.domain("a"), []
    settings: Any = {"keys": [b"a", b""], "headers": {"kind": "new"}}

    @domain.on(world.name("t"), **settings)
    async def handle(event: Event[bytes]) -> None:
        got.append(event.payload)

    face = world.open()
    face.start(domain)
    for number, (key, kind) in enumerate(
        [(b"a", "new"), (b"b", "new"), (b"a", "old"), (None, "new"), (b"", "new")]
    ):
        face.publish(
            world.name("t"), b"%d" % number, key=key, headers={"kind": kind, "x": "y"}
        )
    face.publish(world.name("t"), b"5", key=b"a")
    face.settle()

    assert sorted(got) == [b"0", b"4"]


@pytest.mark.parametrize(
    ("start", "wanted"),
    [("earliest", [0, 1, 2, 3]), ("latest", [3]), (1, [1, 2, 3]), ("time:", [2, 3])],
)
def test_a_new_subscription_begins_where_it_is_told(
    world: World, start: Any, wanted: list[int]
) -> None:
    domain, got = world.domain("a"), []
    face = world.open()
    first = face.publish(world.name("t"), b"0")
    face.publish(world.name("t"), b"1")
    if start == "time:":
        start += str(next_millisecond())
    face.publish(world.name("t"), b"2")

    @domain.on(world.name("t"), start=start)
    async def handle(event: Event[bytes]) -> None:
        got.append(event.offset)

    face.start(domain)
    face.publish(world.name("t"), b"3")
    face.settle()

    assert first.offset == 0
    assert sorted(got) == wanted


def next_millisecond() -> int:
    """A millisecond that no event so far has."""
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= now:
        time.sleep(0.001)
    return now + 1


def test_replay_goes_live_without_gap_or_double(world: World) -> None:
    domain, got = world.domain("a"), []

    @domain.on(world.name("t"))
    async def handle(event: Event[bytes]) -> None:
        got.append(event.payload)

    face = world.open()
    face.publish_many(world.name("t"), [b"old-%d" % n for n in range(3000)])
    begun = threading.Barrier(4)

    def publish(who: int) -> None:
        begun.wait()
        for number in range(100):
            face.publish(world.name("t"), b"%d-%d" % (who, number))

    threads = [threading.Thread(target=publish, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    face.start(domain)
    for thread in threads:
        thread.join()
    face.settle()

    wanted = [b"old-%d" % n for n in range(3000)]
    wanted += [b"%d-%d" % (who, n) for who in range(3) for n in range(100)]
    assert Counter(got) == Counter(wanted)


def test_a_subscription_goes_on_where_it_was(world: World) -> None:
    def listen(face: Face) -> list[int]:
        domain, got = world.domain("a"), []

        @domain.on(world.name("t"))
        async def handle(event: Event[bytes]) -> None:
            got.append(event.offset)

        face.start(domain)
        face.settle()
        face.close()
        return sorted(got)

    face = world.open()
    face.publish_many(world.name("t"), [b"0", b"1"])
    first = listen(face)
    face = world.open()
    face.publish(world.name("t"), b"2")
    second = listen(face)

    assert (first, second) == ([0, 1], [2])


# How many at once


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_run_at_once_than_allowed(world: World, kind: str) -> None:
    domain, lock = world.domain("a"), threading.Lock()
    running, most, ended = 0, 0, 0
    all_three = threading.Event()

    def begin() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 3:
                all_three.set()

    def end() -> None:
        nonlocal running, ended
        with lock:
            running -= 1
            ended += 1

    def sync(event: Event[bytes]) -> None:
        begin()
        all_three.wait(30)
        threading.Event().wait(0.002)
        end()

    async def coroutine(event: Event[bytes]) -> None:
        begin()
        await asyncio.to_thread(all_three.wait, 30)
        await asyncio.sleep(0.002)
        end()

    handler: Any = sync if kind == "sync" else coroutine
    domain.on(world.name("t"), concurrency=3)(handler)
    face = world.open()
    face.publish_many(world.name("t"), [b"x"] * 100)
    face.start(domain)
    face.settle()

    assert (most, ended) == (3, 100)


# Batches


@pytest.mark.parametrize("kind", KINDS)
def test_a_handler_of_batches_gets_many_at_once(world: World, kind: str) -> None:
    topic, domain = Topic(world.name("t"), int), world.domain("a")
    sizes: list[int] = []
    got: list[int] = []

    def handle(events: list[Event[int]], context: Context) -> None:
        sizes.append(len(events))
        got.extend(event.payload for event in events)
        context.publish(world.name("sums"), sum(event.payload for event in events))

    domain.on_batch(topic, size=100)(in_kind(kind, handle))
    listener, heard = reader(world, "sums")
    face = world.open()
    face.publish_many(topic, range(500))
    face.start(domain, listener)
    face.settle()

    assert sorted(got) == list(range(500))
    assert max(sizes) == 100
    assert sum(int(event.payload) for event in heard) == sum(range(500))


def test_a_batch_that_fails_is_tried_event_by_event(world: World) -> None:
    topic, domain = Topic(world.name("t"), int), world.domain("a")
    got: list[int] = []

    @domain.on_batch(topic, size=10, tries=3, backoff_s=0.0)
    async def handle(events: list[Event[int]], context: Context) -> None:
        for event in events:
            if event.payload == 13:
                context.publish(world.name("out"), b"never")
                raise ValueError("unlucky")
        if context.tries > 1:
            assert len(events) == 1
        got.extend(event.payload for event in events)

    face = world.open()
    face.publish_many(topic, range(30))
    face.start(domain)
    face.settle()

    assert sorted(got) == [n for n in range(30) if n != 13]
    [letter] = world.letters(face, "a")
    assert (letter["offset"], letter["tries"]) == (13, 3)


def test_a_batch_goes_on_without_what_does_not_fit(world: World) -> None:
    domain = world.domain("a")
    got: list[int] = []

    @domain.on_batch(world.name("t"), size=10)
    async def handle(events: list[Event[int]]) -> None:
        got.extend(event.payload for event in events)

    face = world.open()
    face.publish_many(world.name("t"), [1, 2, "no", 4, {}, 6])
    face.start(domain)
    face.settle()

    assert sorted(got) == [1, 2, 4, 6]
    assert [one["offset"] for one in world.letters(face, "a")] == [2, 4]


# Mistakes


def test_subscribing_twice_says_where_the_first_one_is(world: World) -> None:
    domain = world.domain("a")

    @domain.on(world.name("t"))
    def the_first_one(event: Event[bytes]) -> None: ...

    with pytest.raises(SubscribedTwice, match=r"the_first_one \(.*test_embedded\.py:"):

        @domain.on(world.name("t"))
        def another(event: Event[bytes]) -> None: ...


def test_starting_twice_is_refused_and_changes_nothing(world: World) -> None:
    domain, got = world.domain("a"), []

    @domain.on(world.name("t"))
    async def handle(event: Event[bytes]) -> None:
        got.append(event.offset)

    face = world.open()
    with pytest.raises(StartedTwice):
        face.start(domain, domain)
    with pytest.raises(StartedTwice):
        face.start(domain, world.domain("a"))
    face.start(domain)
    with pytest.raises(StartedTwice, match="handle"):
        face.start(world.domain("b"), domain)
    face.publish(world.name("t"), b"x")
    face.settle()

    assert got == [0]


def test_what_is_not_settled_in_time_is_named(world: World) -> None:
    domain = world.domain("a")

    @domain.on(world.name("t"))
    async def handle(event: Event[bytes]) -> None:
        await asyncio.Event().wait()

    face = world.open()
    face.publish(world.name("t"), b"x")
    face.start(domain)

    with pytest.raises(NotSettled, match=f"{world.name('a')} of {world.name('t')}"):
        face.settle(0.2)


def test_a_closed_broker_says_so_and_may_be_closed_again(world: World) -> None:
    face = world.open()
    domain, heard = reader(world, "t")
    face.start(domain)
    face.stop()

    for _ in range(2):
        with pytest.raises((PenstockError, RuntimeError), match="closed"):
            face.publish("t", b"x")
        face.stop()
    assert heard == []
