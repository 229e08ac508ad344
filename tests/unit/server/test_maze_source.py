from __future__ import annotations

import asyncio
import logging
from collections import Counter
from pathlib import Path

import pytest

from penstock.broker.publishing import Accepted
from penstock.errors import BeingDeleted
from penstock.gateway.maze import MazeClient, MazeHub, MazeSource, MazeState
from penstock.gateway.options import MazeOptions
from penstock.log import Columns
from penstock.server.ports import MazeSourceConnection
from tests.unit.server.scene import Client, House, house, run, turns


async def open_maze(one: House) -> MazeHub:
    """Port 0 for the source, port 1 for clients."""
    hub = MazeHub(one.broker, MazeState(), MazeOptions())
    await one.listen(lambda: MazeSource(hub), MazeSourceConnection)
    await one.listen(lambda: MazeClient(hub))
    return hub


def test_clients_that_wait_are_registered_before_an_event_is_routed(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await open_maze(one)
            source = await one.connect()
            await one.until(lambda: one.gateways)
            clients = 50

            # All of this is under way before the loop turns once.
            waiting = []
            for number in range(clients):
                client = Client(one.addresses[1])
                one.clients.append(client)
                client.sock.setblocking(True)
                client.sock.connect(one.addresses[1])
                client.sock.sendall(b"%d\n" % number)
                client.sock.setblocking(False)
                waiting.append(client)
            source.sock.send(b"1|B\n")
            source.end()

            for client in waiting:
                assert await client.read(4) == b"1|B\n"

    run(scene())


def test_what_comes_meanwhile_keeps_its_order(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await open_maze(one)
            source, client = await one.connect(), await one.connect(1)
            await client.send(b"1\n")
            events = b"".join(b"%d|B\n" % number for number in range(1, 2001))

            for at in range(0, len(events), 100):
                await source.send(events[at : at + 100])
                await asyncio.sleep(0)
            source.end()

            assert await client.read(len(events)) == events
            assert await source.rest() == b""

    run(scene())


def test_a_source_is_not_read_while_the_log_refuses_what_it_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(topic: str, columns: Columns) -> Accepted:
        raise BeingDeleted(topic)

    async def scene() -> None:
        async with house(tmp_path) as one:
            hub = await open_maze(one)
            source, client = await one.connect(), await one.connect(1)
            await client.send(b"7\n")
            await one.until(lambda: len(one.gateways) == 2 and one.gateways[1].settled)

            with monkeypatch.context() as patched:
                patched.setattr(one.broker, "accept", refuse)
                await source.send(b"1|B\n")
                assert await client.read(4) == b"1|B\n"
                await source.send(b"2|B\n")
                for _ in range(50):
                    one.engine.kick()
                    await turns(1)
                with pytest.raises(BlockingIOError):  # nothing has come
                    client.sock.recv(1)
            one.engine.kick()

            assert await client.read(4) == b"2|B\n"
            await one.until(lambda: not hub.backlogged)
            assert one.broker.log.topic("maze").next_offset == 2

    run(scene())


def test_a_source_that_ends_while_the_log_refuses_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(topic: str, columns: Columns) -> Accepted:
        raise BeingDeleted(topic)

    async def scene() -> None:
        async with house(tmp_path) as one:
            hub = await open_maze(one)
            source = await one.connect()
            with monkeypatch.context() as patched:
                patched.setattr(one.broker, "accept", refuse)
                await source.send(b"1|B\n")
                await one.until(lambda: hub.backlogged)
                await source.send(b"2|B\n3|B")
                source.end()
                await turns(50)
            hub.tick(one.clock.now_s())
            one.engine.kick()

            assert await source.rest() == b""
            assert one.broker.log.topic("maze").next_offset == 3

    run(scene())


def test_sources_and_clients_that_come_again_and_again_do_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scene() -> None:
        async with house(tmp_path) as one:
            await open_maze(one)
            await one.connect()
            await one.until(lambda: one.gateways)
            for _ in range(50):
                refused = await one.connect()
                assert await refused.rest() == b""
                client = await one.connect(1)
                await client.send(b"7\n")
                await one.until(lambda: one.gateways[-1].settled)
            one.broker.tick(0.0)
            one.broker.tick(60.0)

    run(scene())
    said = Counter(vars(record)["action"] for record in caplog.records)
    assert said["maze_source_refused"] == 2
    assert said["maze_client_replaced"] == 2
    assert "refused: another one is connected (the last of 49 more" in caplog.text
