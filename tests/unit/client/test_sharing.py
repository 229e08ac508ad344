"""Concurrent calls that publish share messages; each has its own outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.client import aio, sharing
from penstock.client.aio import AsyncClient
from penstock.client.deliveries import Offsets
from penstock.client.outgoing import Outgoing
from penstock.errors import (
    Backlogged,
    ConnectionLost,
    InvalidBatch,
    InvalidPayload,
    LocalProtocolError,
    RemoteProtocolError,
    ReservedName,
)
from penstock.gateway import native
from penstock.gateway.native_pub import NativePublishing, problem
from penstock.gateway.options import NativeOptions
from penstock.wire.native import Publish, Published, Received, decode_client
from tests.local_server import LocalServer, local_server

# What a server got, one entry for each Publish.
Got = list[Publish]


@pytest.fixture
def got(monkeypatch: pytest.MonkeyPatch) -> Got:
    found: Got = []

    def decode(body: bytes | memoryview) -> Received:
        message = decode_client(body)
        if isinstance(message, Publish):
            found.append(message)
        return message

    monkeypatch.setattr(native, "decode_client", decode)
    monkeypatch.setattr(native, "decode_run", lambda bodies: (None, 0))
    return found


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Got:
    """The same of a server that knows no units."""
    found: Got = []

    def decode(body: bytes | memoryview) -> Received:
        message = decode_client(body)
        if isinstance(message, Publish):
            message = msgspec.structs.replace(message, units=None)
            found.append(message)
        return message

    monkeypatch.setattr(native, "decode_client", decode)
    monkeypatch.setattr(native, "decode_run", lambda bodies: (None, 0))
    return found


def go(server: LocalServer, test: Callable[[AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(20), await aio.connect(server.data) as client:
            await test(client)

    asyncio.run(run())


async def arrived(got: Got) -> None:
    """Wait until a server got something."""
    for _ in range(10_000):
        if got:
            return
        await asyncio.sleep(0.001)


def places(outcome: Offsets | BaseException) -> list[int]:
    assert isinstance(outcome, Offsets), outcome
    return list(outcome)


def ids(outcome: Offsets | BaseException) -> list[str | None]:
    assert isinstance(outcome, Offsets), outcome
    return outcome.ids()


def stored(server: LocalServer, topic: str = "t") -> list[bytes]:
    return [
        payload
        for batch in server._broker.log.read(topic, 0)
        for payload in batch.payloads()
    ]


def integers(server: LocalServer) -> None:
    """Let the topic take integers only."""
    schema = {"type": "integer"}
    with server.between:
        server._broker.create_topic("t")
        server._broker.registry.register("t", schema, type_="", at_ms=0, by="")


def test_calls_of_one_turn_are_one_message_a_topic(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        topics = ["t", "u", "t", "t"] * 25
        done = await asyncio.gather(
            *(client.publish(topic, b"%d" % n) for n, topic in enumerate(topics))
        )

        assert [(one.topic, len(one.payloads)) for one in got] == [("t", 75), ("u", 25)]
        numbers = {"t": 0, "u": 0}
        for topic, offsets in zip(topics, done, strict=True):
            assert list(offsets) == [numbers[topic]]
            numbers[topic] += 1

    go(server, test)


def test_a_call_alone_is_the_message_that_it_always_was(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        await client.publish("t", [b"a", b"b"], keys=[b"k", None])

        assert got == [Publish(1, "t", [b"a", b"b"], keys=[b"k", None])]

    go(server, test)


def test_each_call_learns_offsets_and_ids_of_its_own(server: LocalServer) -> None:
    async def test(client: AsyncClient) -> None:
        one, two, three = await asyncio.gather(
            client.publish("t", [b"a", b"b"]),
            client.publish("t", [b"c", b"d"], ids=[None, "mine"], priorities=[3, 0]),
            client.publish("t", b"e", headers=[{"h": "v"}]),
        )
        async with await client.subscribe("t", start="earliest") as it:
            events = [(await it.next()).event for _ in range(5)]

        assert [list(one), list(two), list(three)] == [[0, 1], [2, 3], [4]]
        ids = [one.id(0), one.id(1), two.id(0), two.id(1), three.id(0)]
        assert ids == [one.id for one in events]
        assert [*one.ids(), *two.ids(), *three.ids()] == ids
        assert ids[3] == "mine"
        assert [one.priority for one in events] == [0, 0, 3, 0, 0]
        assert [one.headers for one in events] == [{}, {}, {}, {}, {"h": "v"}]

    go(server, test)


def test_what_is_said_between_calls_keeps_its_place(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        before, asked, _, _ = await asyncio.gather(
            client.publish("a", b"0"),
            client.ask("topics.show", name="a"),
            client.publish("a", b"1"),
            client.publish("a", b"2"),
        )

        assert list(before) == [0]
        assert isinstance(asked, dict)
        assert asked["name"] == "a"
        assert [len(one.payloads) for one in got] == [1, 2]

    go(server, test)


@pytest.mark.parametrize("knows_units", [True, False])
def test_a_call_that_is_refused_harms_no_other(
    server: LocalServer, knows_units: bool, request: pytest.FixtureRequest
) -> None:
    got: Got = request.getfixturevalue("got" if knows_units else "before")
    integers(server)

    async def test(client: AsyncClient) -> None:
        done = await asyncio.gather(
            client.publish("t", b"0"),
            client.publish("t", [b"1", b"no"]),
            client.publish("t", b"2"),
            client.publish("t", b"3", ids=["\n"]),
            client.publish("t", [b"4", b"5"], ids=["four", None]),
            return_exceptions=True,
        )

        assert places(done[0]) == [0]
        assert isinstance(done[1], InvalidPayload)
        assert done[1].index == 1
        assert places(done[2]) == [1]
        assert isinstance(done[3], InvalidBatch)
        assert places(done[4]) == [2, 3]
        assert stored(server) == [b"0", b"2", b"4", b"5"]
        batches = server._broker.log.read("t", 0)
        known = [id_ for batch in batches for id_ in batch.ids()]
        assert [*ids(done[0]), *ids(done[2]), *ids(done[4])] == known
        assert known[2] == "four"
        assert len(got) == (1 if knows_units else 1 + 5)

    go(server, test)


def test_a_topic_that_cannot_be_is_an_error_for_each(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        found = await asyncio.gather(
            *(client.publish("$t", b"x") for _ in range(3)), return_exceptions=True
        )

        assert all(isinstance(one, ReservedName) for one in found)
        assert len(set(map(id, found))) == 3
        assert len(got) == 1

    go(server, test)


def test_what_cannot_be_sent_is_an_error_where_it_was_given(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        huge: list[int] = [1 << 80]
        good, bad, after = await asyncio.gather(
            client.publish("t", b"a"),
            client.publish("t", b"b", priorities=huge),
            client.publish("t", b"c"),
            return_exceptions=True,
        )

        assert isinstance(bad, LocalProtocolError)
        assert [places(good), places(after)] == [[0], [1]]
        assert stored(server) == [b"a", b"c"]

    go(server, test)


def test_a_call_that_is_cancelled_before_it_leaves_is_not_stored(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        tasks = [asyncio.create_task(client.publish("t", b"%d" % n)) for n in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[3].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)

        assert [places(done[n]) for n in (0, 2, 4)] == [[0], [1], [2]]
        assert [type(done[n]) for n in (1, 3)] == [asyncio.CancelledError] * 2
        assert stored(server) == [b"0", b"2", b"4"]
        assert len(got) == 1

    go(server, test)


def test_calls_that_are_all_cancelled_say_nothing(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        task = asyncio.create_task(client.publish("t", b"x"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await client.ask("topics")

        assert got == []
        assert not client._sharing._waiting

    go(server, test)


def test_a_call_that_is_cancelled_later_leaves_the_others_alone(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        server.mute = True
        tasks = [asyncio.create_task(client.publish("t", b"%d" % n)) for n in range(3)]
        await arrived(got)
        tasks[1].cancel()
        server.mute = False
        await client.ask("topics")
        done = await asyncio.gather(*tasks, return_exceptions=True)

        assert [places(done[0]), places(done[2])] == [[0], [2]]
        assert isinstance(done[1], asyncio.CancelledError)
        assert stored(server) == [b"0", b"1", b"2"]

    go(server, test)


def test_a_message_is_bounded_by_bytes_and_by_events(
    server: LocalServer, got: Got, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "SHARED_EVENTS", 10)
    monkeypatch.setattr(sharing, "SHARED_BYTES", 1000)

    async def test(client: AsyncClient) -> None:
        done = await asyncio.gather(
            *(client.publish("t", b"x") for _ in range(25)),
            *(client.publish("u", b"x" * 400) for _ in range(5)),
            client.publish("u", b"x" * 5000),
        )

        assert [len(one.payloads) for one in got if one.topic == "t"] == [10, 10, 5]
        assert [len(one.payloads) for one in got if one.topic == "u"] == [2, 2, 1, 1]
        assert [list(one) for one in done[:25]] == [[n] for n in range(25)]

    go(server, test)


def test_a_message_is_no_larger_than_the_server_takes(
    tmp_path: Path, got: Got, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = NativeOptions(max_message_bytes=2000)
    monkeypatch.setattr("tests.local_server.NativeOptions", lambda: small)

    async def test(client: AsyncClient) -> None:
        done = await asyncio.gather(
            *(client.publish("t", b"x" * 900, keys=[b"k" * 90]) for _ in range(9))
        )

        assert [list(one) for one in done] == [[n] for n in range(9)]
        assert {len(one.payloads) for one in got} <= {1, 2}

    with local_server(tmp_path / "data") as server:
        go(server, test)


def test_dedup_ids_are_kept_apart_as_their_answer_tells_less(
    server: LocalServer, got: Got
) -> None:
    async def test(client: AsyncClient) -> None:
        one, two, three = await asyncio.gather(
            client.publish("t", b"a", dedup_ids=["x"]),
            client.publish("t", b"b"),
            client.publish("t", b"a", dedup_ids=["x"]),
        )

        assert list(one) == list(three)
        assert (one.id(0), three.id(0)) == (None, None)
        assert two.id(0) is not None
        assert len(got) == 2
        assert sorted(stored(server)) == [b"a", b"b"]

    go(server, test)


def test_a_server_that_is_busy_is_asked_again_with_all_of_it(
    server: LocalServer, got: Got, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, busy = NativePublishing.publish, [Backlogged(1, 2), Backlogged(1, 2)]

    def later(self: NativePublishing, messages: list[Publish], now_s: float) -> None:
        if not busy:
            publish(self, messages, now_s)
            return
        error = busy.pop()
        for one in messages:
            self._outbox.now(problem(one.seq, error))

    monkeypatch.setattr(NativePublishing, "publish", later)

    async def test(client: AsyncClient) -> None:
        done = await asyncio.gather(*(client.publish("t", b"%d" % n) for n in range(4)))

        assert [list(one) for one in done] == [[0], [1], [2], [3]]
        assert [len(one.payloads) for one in got] == [4, 4, 4]
        assert not client._sharing._waiting

    go(server, test)


def test_a_server_that_stays_busy_is_given_up(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(self: NativePublishing, messages: list[Publish], now_s: float) -> None:
        for one in messages:
            self._outbox.now(problem(one.seq, Backlogged(1, 2)))

    monkeypatch.setattr(NativePublishing, "publish", later)

    async def run() -> None:
        async with await aio.connect(server.data, timeout_s=0.1) as client:
            found = await asyncio.gather(
                *(client.publish("t", b"x") for _ in range(2)), return_exceptions=True
            )

            assert [isinstance(one, Backlogged) for one in found] == [True, True]
            assert not client._sharing._waiting

    asyncio.run(run())


def test_who_gets_no_answer_is_told_so_in_time_and_one_timer_is_enough(
    server: LocalServer,
) -> None:
    async def run() -> None:
        client = await aio.connect(server.data, timeout_s=0.1)
        server.mute = True
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        early = [asyncio.create_task(client.publish("t", b"x")) for _ in range(3)]
        await asyncio.sleep(0.05)
        late = asyncio.create_task(client.publish("t", b"y"))
        await asyncio.wait(early)
        assert not late.done()
        await asyncio.wait([late])

        assert loop.time() - begun_s >= 0.15
        for one in [*early, late]:
            assert isinstance(one.exception(), ConnectionLost)
            assert "no answer within 0.1 s" in str(one.exception())
        assert client._sharing._timer is None
        server.mute = False
        await client.close()

    asyncio.run(run())


def test_what_was_given_up_before_it_leaves_is_not_sent_later(
    server: LocalServer, got: Got, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(client: AsyncClient) -> None:
        monkeypatch.setattr(client._sharing, "_timeout_s", 0.0)
        tasks = [asyncio.create_task(client.publish("t", b"x")) for _ in range(3)]
        await asyncio.sleep(0)
        client._sharing._late()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        await client.ask("topics")

        assert [type(one) for one in done] == [ConnectionLost] * 3
        assert got == []
        assert not client._sharing._waiting

    go(server, test)


def test_a_connection_that_is_lost_ends_every_call(
    server: LocalServer, got: Got
) -> None:
    async def run() -> None:
        client = await aio.connect(server.data)
        server.mute = True
        sent = [asyncio.create_task(client.publish("t", b"x")) for _ in range(3)]
        await arrived(got)
        server.stop()
        await asyncio.wait(sent)

        assert [type(one.exception()) for one in sent] == [ConnectionLost] * 3
        assert len(got) == 1
        with pytest.raises(ConnectionLost):
            await client.publish("t", b"y")
        await client.close()

    asyncio.run(run())


def test_closing_ends_calls_that_wait(server: LocalServer) -> None:
    async def run() -> None:
        client = await aio.connect(server.data)
        server.mute = True
        task = asyncio.create_task(client.publish("t", b"x"))
        await asyncio.sleep(0)
        await client.close()

        with pytest.raises(ConnectionLost, match="it was closed"):
            await task

    asyncio.run(run())


def test_an_answer_that_makes_no_sense_is_the_fault_of_the_server(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(client: AsyncClient) -> None:
        take = client._session.take

        def wrong(seq: int) -> object:
            take(seq)
            return Published(seq, [1, 2, 3])

        monkeypatch.setattr(client._session, "take", wrong)
        found = await asyncio.gather(
            client.publish("t", b"x"), client.publish("t", b"y"), return_exceptions=True
        )

        assert [type(one) for one in found] == [RemoteProtocolError] * 2

    go(server, test)


def test_a_call_costs_no_task_and_no_timer(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(client: AsyncClient) -> None:
        loop, event = asyncio.get_running_loop(), Outgoing.of(b"x")
        counts = {"call_soon": 0, "call_at": 0, "create_task": 0, "create_future": 0}
        done: list[Offsets] = []

        async def publishers(count: int) -> None:
            for one in [client._publish("t", event) for _ in range(count)]:
                done.append(await one)

        def counting(name: str) -> None:
            call = getattr(loop, name)

            def counted(*arguments: object, **named: object) -> object:
                counts[name] += 1
                return call(*arguments, **named)

            monkeypatch.setattr(loop, name, counted)

        await publishers(1)
        for name in counts:
            counting(name)
        await publishers(1000)

        assert len(done) == 1001
        assert (counts["create_task"], counts["call_at"]) == (0, 0)
        assert counts["create_future"] < 1010

    go(server, test)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sharing, "RETRY_S", 0.001)
    yield
