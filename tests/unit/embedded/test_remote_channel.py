"""What every broker with handlers does is in tests/contract; here is the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.embedded import Context, Domain, Event
from penstock.embedded.outgoing import Intent
from penstock.embedded.remote_channel import RemoteChannel, outgoing
from penstock.errors import ConnectionLost, InvalidOption
from penstock.gateway import native
from penstock.model.remote_errors import remote_error
from penstock.wire.native import Received, Welcome, decode_client
from tests.local_server import LocalServer, local_server
from tests.unit.embedded.scene import Stage, job, until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


def go(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


def url(server: LocalServer) -> str:
    return f"penstock://{server.data}"


async def handle(event: Any) -> None: ...


@pytest.mark.parametrize(
    ("settings", "prefetch"),
    [
        ({"concurrency": 5}, 5),
        ({"order": "strict", "concurrency": 5}, 1),
        ({"order": "key", "concurrency": 5}, 40),
        ({"batch": 10, "concurrency": 2}, 40),
    ],
)
def test_what_is_on_its_way_is_what_can_be_begun(settings: Any, prefetch: int) -> None:
    async def run() -> None:
        link: Any = None
        channel = RemoteChannel(link, Stage(handle, **settings).runner)

        assert channel._prefetch() == prefetch

    go(run)


class FakeSubscription:
    def __init__(self, *answers: bool | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    def when_moved(self, moved: Callable[[], None]) -> None: ...

    async def next_batch(self) -> Any:
        await asyncio.Event().wait()

    async def close(self) -> None: ...

    async def finish(self, offsets: list[int], events: Any) -> bool:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answers", "handled", "failed"),
    [
        ([True], 1, 0),
        ([False], 1, 0),
        ([remote_error("Backlogged", "busy"), True], 1, 0),
        ([remote_error("WriteFailed", "full")], 0, 0),
        ([remote_error("InvalidBatch", "no")], 0, 1),
        ([ConnectionLost("there", "gone")], 0, 0),
    ],
    ids=["done", "not-here", "busy", "not-written", "refused", "lost"],
)
def test_what_becomes_of_an_event_that_publishes(
    answers: list[bool | Exception], handled: int, failed: int
) -> None:
    async def run() -> None:
        stage = Stage(handle)
        link: Any = None
        channel = RemoteChannel(link, stage.runner)
        subscription: Any = FakeSubscription(*answers)
        channel._subscription = subscription
        channel._up = True
        stage.runner.at_hand = 1

        channel.finish([job(0)], [Intent("out", b"x")])
        await stage.idle()
        await asyncio.gather(*channel._tasks)

        assert subscription.asked == len(answers)
        assert (stage.runner.handled, stage.runner.failed) == (handled, failed)

    go(run)


def test_handler_that_ended_just_before_a_move_counts_for_nothing() -> None:
    async def run() -> None:
        stage = Stage(handle)
        link: Any = None
        channel = RemoteChannel(link, stage.runner)
        subscription: Any = FakeSubscription(True)
        channel._subscription, channel._up = subscription, True
        stage.runner.at_hand = 1

        channel.finish([job(0)], [Intent("out", b"x")])
        channel._moved()
        await asyncio.gather(*channel._tasks)

        assert (subscription.asked, stage.runner.at_hand) == (0, 0)
        assert stage.runner.idle

    go(run)


class ServerOfBefore:
    """A connection to a server that does not know the order ``key``."""

    def __init__(self) -> None:
        self.subscribed: list[tuple[str, bool]] = []
        self.refuses: Exception | None = None

    async def ask(self, verb: str, arguments: Any) -> None: ...

    async def subscribe(self, topic: str, subscriber: str, **options: Any) -> Any:
        self.subscribed.append((options["order"], options["in_order"]))
        if self.refuses is not None:
            raise self.refuses
        if options["order"] == "key":
            text = "option order is 'key': must be 'priority' or 'log'"
            raise remote_error("InvalidOption", text)
        return FakeSubscription()

    async def connected(self) -> ServerOfBefore:
        return self


def test_a_server_of_before_has_keys_handled_in_one_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        server: Any = ServerOfBefore()
        channel = RemoteChannel(server, Stage(handle, order="key").runner)

        await channel.open()
        await channel._subscribe(server)  # as after a lost connection

        assert server.subscribed == [("key", True), ("log", True)] * 2
        said = [one for one in caplog.records if hasattr(one, "action")]
        assert [one.action for one in said] == ["handler_alone"]
        await channel.close()

    go(run)


def test_other_options_that_are_refused_are_raised() -> None:
    async def run() -> None:
        server: Any = ServerOfBefore()
        server.refuses = remote_error("InvalidOption", "option window is 0: must be")
        channel = RemoteChannel(server, Stage(handle, order="key").runner)

        with pytest.raises(InvalidOption, match="window"):
            await channel.open()

    go(run)


def test_nobody_is_told_while_there_is_no_connection() -> None:
    async def run() -> None:
        stage = Stage(handle)
        link: Any = None
        channel = RemoteChannel(link, stage.runner)
        stage.runner.at_hand = 1

        channel.finish([job(0)], [Intent("out", b"x")])
        channel.finish([job(0)], [])
        channel.put_back([job(0)])

        assert stage.runner.idle
        assert channel.owes(0)

    go(run)


def test_a_topic_that_does_not_exist_is_made(server: LocalServer) -> None:
    async def run() -> None:
        domain, seen = Domain("a"), []

        @domain.on("t")
        async def hear(event: Event[bytes], context: Context) -> None:
            seen.append((event.payload, event.headers, context.tries))

        async with penstock.open(url(server)) as broker:
            await broker.start(domain)
            await broker.publish("t", b"x", headers={"a": "b"})
            await broker.publish("t", b"y")
            await broker.wait_until_settled(60)

        assert sorted(seen) == [(b"x", {"a": "b"}, 1), (b"y", {}, 1)]

    go(run)


def test_a_subscription_that_is_forgotten_ends(server: LocalServer) -> None:
    async def run() -> None:
        domain = Domain("a")
        domain.on("t")(handle)

        async with penstock.open(url(server)) as broker:
            await broker.start(domain)
            await broker.ask("subscriptions.forget", subscriber="a", topic="t")
            [runner] = broker._runners
            await until(lambda: runner.gone is not None)

            assert "forgotten" in str(runner.gone)
            await broker.wait_until_settled(60)

    go(run)


def test_a_server_that_went_away_does_not_hold_up_the_end(server: LocalServer) -> None:
    async def run() -> None:
        domain = Domain("a")
        domain.on("t")(handle)

        async with penstock.open(url(server)) as broker:
            await broker.start(domain)
            server.stop()

    go(run)


def test_intents_become_columns() -> None:
    intents = [
        Intent("t", b"x", key=b"", priority=2, headers={"a": "b"}, id="i", parent="p"),
        Intent("t", b"y"),
    ]

    made = outgoing(intents)

    assert made.payloads == [b"x", b"y"]
    assert made.columns.given() == {
        "ids": ["i", None],
        "parents": ["p", None],
        "keys": [b"", None],
        "priorities": [2, 0],
        "headers": [{"a": "b"}, {}],
    }
    assert made.dedup_ids is None


# How much is on its way


def counting(
    monkeypatch: pytest.MonkeyPatch, *, knows_prefetch: bool
) -> dict[str, int]:
    """How many messages of a kind a server gets, which may be one of before."""
    counts: dict[str, int] = {}

    def decode(body: bytes | memoryview) -> Received:
        message = decode_client(body)
        name = type(message).__name__
        counts[name] = counts.get(name, 0) + 1
        return message

    monkeypatch.setattr(native, "decode_client", decode)
    if not knows_prefetch:
        monkeypatch.setattr(native, "Welcome", lambda version, limit: Welcome(version))
    return counts


@pytest.mark.parametrize("knows_prefetch", [True, False])
def test_a_fast_handler_gets_more_at_once_and_settles_it_at_once(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, knows_prefetch: bool
) -> None:
    counts = counting(monkeypatch, knows_prefetch=knows_prefetch)
    handled: list[int] = []
    domain = Domain("me")

    @domain.on("t", concurrency=4)
    async def take(event: Event[bytes]) -> None:
        handled.append(event.offset)

    async def run() -> None:
        async with penstock.open(url(server)) as broker:
            await broker.publish_many("t", [b"x"] * 10_000)
            await broker.start(domain)
            await broker.wait_until_settled()

    go(run)

    assert handled == list(range(10_000))
    if knows_prefetch:
        assert counts["Settle"] < 10_000 / 20
        assert 1 <= counts["Prefetch"] <= 10
    else:
        assert counts["Settle"] >= 10_000 / 4
        assert "Prefetch" not in counts


@pytest.mark.parametrize("options", [{"order": "strict"}, {"order": "key"}])
def test_what_has_an_order_is_not_looked_ahead_for(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, options: Any
) -> None:
    counts = counting(monkeypatch, knows_prefetch=True)
    domain = Domain("me")

    @domain.on("t", **options)
    async def take(event: Event[bytes]) -> None: ...

    async def run() -> None:
        async with penstock.open(url(server)) as broker:
            await broker.publish_many("t", [b"x"] * 500)
            await broker.start(domain)
            await broker.wait_until_settled()

    go(run)

    assert counts["Settle"] > 1
    assert "Prefetch" not in counts


def test_a_handler_that_becomes_slow_gets_less_again() -> None:
    async def run() -> None:
        stage = Stage(handle, concurrency=4)
        link: Any = None
        channel = RemoteChannel(link, stage.runner)
        said: list[int] = []
        subscription: Any = FakeSubscription()
        subscription.prefetch = said.append
        channel._subscription = subscription

        for mean_s in (10.0, 0.0, 0.0001, 0.002, 0.003, 1.0):
            stage.runner._mean_s = mean_s
            channel._look_ahead()

        assert said == [1024, 40, 4]

    go(run)


def test_what_a_fast_handler_had_not_begun_is_no_try_when_it_leaves(
    server: LocalServer,
) -> None:
    tries: list[int] = []
    first, second = Domain("me"), Domain("me")
    handled: list[int] = []

    async def run() -> None:
        gate = asyncio.Event()

        @first.on("t", concurrency=4)
        async def take(event: Event[bytes]) -> None:
            handled.append(event.offset)
            if event.offset >= 5000:
                gate.set()
                await asyncio.Event().wait()

        @second.on("t", concurrency=4)
        async def take_rest(event: Event[bytes], context: Context) -> None:
            handled.append(event.offset)
            tries.append(context.tries)

        async with penstock.open(url(server)) as broker:
            await broker.publish_many("t", [b"x"] * 8000)
            await broker.start(first)
            await gate.wait()
            await broker.close(0.01)
        async with penstock.open(url(server)) as broker:
            await broker.start(second)
            await broker.wait_until_settled()

    go(run)

    assert set(handled) == set(range(8000))
    begun = len(handled) - 8000
    assert 1 <= begun <= 4
    assert sorted(tries) == [1] * (len(tries) - begun) + [2] * begun


def test_what_is_done_needs_no_task_to_be_told() -> None:
    async def run() -> None:
        stage = Stage(handle)
        link: Any = None
        channel = RemoteChannel(link, stage.runner)
        settled: list[int] = []
        subscription: Any = FakeSubscription()
        subscription.settle, subscription.flush_soon = settled.extend, lambda: None
        channel._subscription = subscription
        channel._up = True

        for number in range(100):
            channel.finish([job(number)], [])

        assert settled == list(range(100))
        assert not channel._tasks

    go(run)
