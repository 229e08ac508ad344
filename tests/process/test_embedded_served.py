"""One data directory: a program has it, then a server, then a program again."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest

import penstock
from penstock import Context, Domain, Event, Topic, desk
from penstock.client import aio, connect
from penstock.client.aio import AsyncClient
from penstock.errors import ConnectionLost
from tests.http_client import token_of
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

TIMEOUT_S = 60.0
KILLS = 3
PUBLISHERS = 32
NUMBERS = Topic("numbers", int)
SQUARES = Topic("squares", int)


class Maths:
    """A domain that squares numbers, and refuses odd ones until it is fixed."""

    def __init__(self, *, fixed: bool = False) -> None:
        self.handled: list[int] = []
        self.domain = Domain("maths")

        @self.domain.on(NUMBERS, tries=2, backoff_s=0.01)
        async def square(event: Event[int], context: Context) -> None:
            if event.payload % 2 and not fixed:
                raise ValueError("odd")
            self.handled.append(event.payload)
            context.publish(SQUARES, event.payload**2)


def test_a_server_goes_on_with_the_files_of_a_program_and_a_program_with_its(
    tmp_path: Path,
) -> None:
    data, before, after = tmp_path / "data", Maths(), Maths(fixed=True)
    with penstock.open(data) as broker:
        broker.start(before.domain)
        broker.publish_many(NUMBERS, [0, 1, 2, 3])
        broker.wait_until_settled(TIMEOUT_S)

    with serving(tmp_path, "--no-maze") as server, connect(server.data) as client:
        with client.subscribe("squares", "reader", start="earliest") as reader:
            batch = reader.next_batch(TIMEOUT_S)
            assert batch is not None
            assert sorted(batch.payloads) == [b"0", b"4"]
            reader.settle(batch.offsets)
        # By URL the domain goes on where it was; its dead letters came along.
        url = f"penstock://127.0.0.1:{server.ports['native']}"
        with penstock.open(url, token=token_of(server)) as broker:
            assert broker.ask(desk.republish_all()).done == 2
            broker.start(after.domain)
            broker.publish_many(NUMBERS, [4, 5])
            broker.wait_until_settled(TIMEOUT_S)
            assert sorted(after.handled) == [1, 3, 4, 5]
        client.publish("numbers", [b"6"])
        assert server.stop() == 0

    with penstock.open(data) as broker:
        last = Maths()
        broker.start(last.domain)
        broker.wait_until_settled(TIMEOUT_S)
        rows = broker.ask(desk.subscriptions(topic="squares"))
        assert [(row.subscriber, row.lag) for row in rows] == [("reader", 5)]
        assert [topic.events for topic in broker.ask(desk.topics())] == [7, 7]
        assert list(broker.ask(desk.list_all())) == []
    assert (sorted(before.handled), last.handled) == ([0, 2], [6])


def test_a_program_takes_up_what_a_server_has_stored_when_it_was_killed(
    tmp_path: Path,
) -> None:
    maths = Maths()
    with serving(tmp_path, "--no-maze") as server:
        with connect(server.data) as client:
            client.publish("numbers", [b"%d" % (2 * number) for number in range(100)])
        server.kill()

    with penstock.open(server.data) as broker:
        broker.start(maths.domain)
        broker.wait_until_settled(TIMEOUT_S)

    assert sorted(maths.handled) == list(range(0, 200, 2))
    found: list[int] = []
    with (
        serving(tmp_path, "--no-maze") as server,
        connect(server.data) as client,
        client.subscribe("squares", "reader", start="earliest") as reader,
    ):
        while len(found) < 100:
            batch = reader.next_batch(TIMEOUT_S)
            assert batch is not None
            found += map(int, batch.payloads)
    assert sorted(found) == [number**2 for number in range(0, 200, 2)]


def test_calls_that_share_a_message_each_learn_what_a_kill_left(tmp_path: Path) -> None:
    """What was confirmed is there, at its offset; what was not is there once or not."""
    confirmed: dict[bytes, int] = {}
    unsure: set[bytes] = set()

    async def publisher(client: AsyncClient, name: str) -> None:
        for number in count():
            payload = f"{name}-{number}".encode()
            try:
                (confirmed[payload],) = await client.publish("t", payload)
            except ConnectionLost:
                unsure.add(payload)
                return

    async def until_killed(server: Serving, turn: int) -> None:
        async with (
            await aio.connect(server.data) as client,
            asyncio.TaskGroup() as all_,
        ):
            for number in range(PUBLISHERS):
                all_.create_task(publisher(client, f"{turn}-{number}"))
            for number in range(10 * (turn + 1)):
                await client.publish("t", f"{turn}-main-{number}")
            server.kill()

    with serving(tmp_path, "--no-maze") as server:
        for turn in range(KILLS):
            asyncio.run(until_killed(server, turn))
            server.start()
        with connect(server.data) as client:
            stored: list[bytes] = []
            for part in client.fetch_all("t", 0, 1 << 62):
                for batch in part.batches:
                    stored += batch.payloads()

    assert len(unsure) == KILLS * PUBLISHERS
    assert len(set(stored)) == len(stored)
    assert {payload: stored[offset] for payload, offset in confirmed.items()} == {
        payload: payload for payload in confirmed
    }
    mains = {one for one in stored if b"main" in one}
    assert len(mains) == sum(10 * (turn + 1) for turn in range(KILLS))
    assert set(stored) - mains <= confirmed.keys() | unsure
    for publisher_of in {payload.rpartition(b"-")[0] for payload in stored}:
        mine = [one for one in stored if one.rpartition(b"-")[0] == publisher_of]
        assert mine == sorted(mine, key=lambda one: int(one.rpartition(b"-")[2]))
