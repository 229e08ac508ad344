"""Several programs with one domain: they share its events, or one waits for another."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Context, Domain, Event, desk
from tests.contract.embedded_worlds import AsyncFace
from tests.serving import Serving

TIMEOUT_S = 60.0


@pytest.fixture(params=["server", "host"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Where the programs meet: a server, or a program that has the directory."""
    if request.param == "server":
        server: Serving = request.getfixturevalue("one_server")
        yield f"penstock://127.0.0.1:{server.ports['native']}"
        return
    with penstock.open(tmp_path / "data"):
        yield f"penstock://{tmp_path / 'data'}"


def named(word: str) -> str:
    return f"{word}-{time.monotonic_ns()}"


def until(done: Any) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not done():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_events_are_handled_by_all_programs_at_once(place: str) -> None:
    subscriber, topic = named("d"), named("t")
    lock, counts = threading.Lock(), Counter[str]()
    running, most = 0, 0
    four = threading.Barrier(4)

    def domain(who: str) -> Domain:
        made = Domain(subscriber)

        @made.on(topic, concurrency=2)
        def handle(event: Event[bytes]) -> None:
            nonlocal running, most
            with lock:
                first = sum(counts.values()) < 20
                counts[who] += 1
                running += 1
                most = max(most, running)
            if first:  # by fours, which takes two of each program
                four.wait(TIMEOUT_S)
            with lock:
                running -= 1

        return made

    with penstock.open(place) as one, penstock.open(place) as two:
        one.start(domain("one"))
        two.start(domain("two"))
        one.publish_many(topic, [b"x"] * 60)
        one.wait_until_settled(TIMEOUT_S)

    assert sum(counts.values()) == 60
    assert min(counts["one"], counts["two"]) >= 10
    assert most == 4


def test_events_that_wait_for_another_try_stop_nobody(place: str) -> None:
    subscriber, topic = named("d"), named("t")
    good: list[bytes] = []
    domain = Domain(subscriber)

    @domain.on(topic, concurrency=2, backoff_s=60.0)
    async def handle(event: Event[bytes]) -> None:
        if event.payload == b"bad":
            raise ValueError("no")
        good.append(event.payload)

    with penstock.open(place) as broker:
        broker.publish_many(topic, [b"bad"] * 8 + [b"good"] * 5)
        broker.start(domain)
        until(lambda: len(good) == 5)


@pytest.mark.parametrize("order", ["key", "strict"])
def test_events_in_order_go_to_one_program_at_a_time_and_then_to_the_other(
    place: str, order: Any
) -> None:
    subscriber, topic = named("d"), named("t")
    log: list[tuple[str, int]] = []

    def domain(who: str) -> Domain:
        made = Domain(subscriber)

        @made.on(topic, order=order, backoff_s=0.01, concurrency=4)
        async def handle(event: Event[bytes], context: Context) -> None:
            if event.offset % 7 == 3 and context.tries == 1:
                raise ValueError("not at first")
            log.append((who, event.offset))

        return made

    def publish(face: AsyncFace, count: int) -> None:
        for number in range(count):
            face.publish(topic, b"x", key=b"%d" % (number % 5))

    one, two = AsyncFace(place), AsyncFace(place)
    try:
        one.start(domain("one"))
        two.start(domain("two"))  # it does not wait for that
        publish(two, 50)
        two.settle(TIMEOUT_S)
        # Keys are shared; otherwise only one of them may handle events.
        busy = {who for who, _ in log}
        assert busy == ({"one", "two"} if order == "key" else {"one"})

        one.close()
        publish(two, 50)
        two.settle(TIMEOUT_S)
    finally:
        one.close()
        two.close()

    assert {who for who, _ in log[50:]} == {"two"}
    lanes: dict[int, list[int]] = defaultdict(list)
    for _, offset in log:
        lanes[offset % 5 if order == "key" else 0].append(offset)
    assert sum(map(len, lanes.values())) == 100
    assert all(lane == sorted(lane) for lane in lanes.values())


@pytest.mark.parametrize("order", ["parallel", "key", "strict"])
@pytest.mark.parametrize("start", ["earliest", 2, "latest"])
@pytest.mark.parametrize("by_url", [False, True])
def test_a_subscription_is_moved_under_its_handler(
    tmp_path: Path, order: Any, start: Any, by_url: bool
) -> None:
    log: list[int] = []
    running = most = 0
    gate = threading.Event()
    domain = Domain("d")

    @domain.on("t", order=order, concurrency=2)
    def handle(event: Event[bytes], context: Context) -> None:
        nonlocal running, most
        log.append(event.offset)
        running += 1
        most = max(most, running)
        context.publish("out", b"%d" % event.offset)
        gate.wait(TIMEOUT_S)
        running -= 1

    url = f"penstock://{tmp_path / 'data'}"
    with penstock.open(tmp_path / "data") as host, penstock.open(url) as remote:
        broker = remote if by_url else host
        for _ in range(6):
            host.publish("t", b"x", key=b"k")
        broker.start(domain)
        begun = 2 if order == "parallel" else 1
        until(lambda: len(log) == begun)
        host.ask("subscriptions.seek", subscriber="d", topic="t", start=start)
        gate.set()
        broker.wait_until_settled(TIMEOUT_S)
        until(lambda: running == 0)
        out = [one.end_offset for one in host.ask(desk.topics()) if one.name == "out"]

    first = {"earliest": 0, "latest": 6}.get(start, start)
    assert sorted(log[begun:]) == list(range(first, 6))
    assert most == begun
    assert sum(out) == 6 - first
