"""What every broker with handlers does is in tests/contract; here is the rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.embedded import Domain, Event, Topic
from penstock.embedded.outgoing import Intent
from penstock.embedded.remote import RemoteLink, Target
from penstock.errors import (
    ConnectionLost,
    InvalidBatch,
    InvalidPayload,
    NotRunning,
    ServerRefused,
    UnknownTopic,
    WrongOrder,
)
from tests.local_server import LocalServer, local_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


def target(server: LocalServer) -> Target:
    return Target(str(server.data), None, None, "me")


def go(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


def test_events_of_several_topics_come_back_in_their_order(server: LocalServer) -> None:
    async def run() -> None:
        link = await RemoteLink.open(target(server))
        stored = await link.publish_many(
            [Intent(name, b"x", id=f"{name}{n}") for n, name in enumerate("abab")]
        )
        await link.close()

        assert [(one.topic, one.offset, one.id) for one in stored] == [
            ("a", 0, "a0"),
            ("b", 0, "b1"),
            ("a", 1, "a2"),
            ("b", 1, "b3"),
        ]

    go(run)


def test_an_error_of_the_server_is_the_one_it_named(server: LocalServer) -> None:
    async def run() -> None:
        link = await RemoteLink.open(target(server))
        try:
            with pytest.raises(InvalidBatch):
                await link.publish(Intent("t", b"x", id="\n"))
            with pytest.raises(UnknownTopic) as caught:
                await link.ask("topics.show", {"name": "t"})
            assert isinstance(caught.value, ServerRefused)
        finally:
            await link.close()

    go(run)


def test_a_connection_that_was_lost_is_made_again(tmp_path: Path) -> None:
    async def run() -> None:
        with local_server(tmp_path / "data") as first:
            link = await RemoteLink.open(target(first))
            await link.publish(Intent("t", b"x"))
        with pytest.raises((ConnectionLost, NotRunning)):
            await link.publish(Intent("t", b"y"))
        (tmp_path / "data" / "penstock.sock").unlink()
        with local_server(tmp_path / "data"):
            stored = await link.publish(Intent("t", b"z"))
            await link.close()

        assert stored.offset == 1

    go(run)


def test_a_server_is_waited_for_with_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        pauses: list[float] = []
        real_sleep = asyncio.sleep
        with local_server(tmp_path / "data") as first:
            link = await RemoteLink.open(target(first))
            lost = await link.connected()
        (tmp_path / "data" / "penstock.sock").unlink()
        link._ticker.cancel()

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 8:
                raise TimeoutError
            await real_sleep(0)

        monkeypatch.setattr(asyncio, "sleep", sleep)
        with caplog.at_level(logging.WARNING), pytest.raises(TimeoutError):
            await link.reconnected(lost)
        await link.close()

        assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
        assert {vars(one)["action"] for one in caplog.records} == {"reconnecting"}

    go(run)


def test_a_link_that_was_closed_makes_no_new_connection(server: LocalServer) -> None:
    async def run() -> None:
        link = await RemoteLink.open(target(server))
        await link.close()

        with pytest.raises(ConnectionLost, match="closed"):
            await link.publish(Intent("t", b"x"))

    go(run)


def test_nothing_to_handle_is_settled(server: LocalServer) -> None:
    async def run() -> None:
        link = await RemoteLink.open(target(server))
        settled = await link.settled([])
        server.stop()
        unknown = await link.settled([])
        await link.close()

        assert (settled, unknown) == (True, False)

    go(run)


def test_where_nobody_is_that_is_said(tmp_path: Path) -> None:
    async def run() -> None:
        with pytest.raises(NotRunning):
            await RemoteLink.open(Target(str(tmp_path), None, None, ""))

    go(run)


def test_a_password_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        with local_server(tmp_path / "data", {"me": "secret"}) as server:
            where: Any = str(server.data)
            with pytest.raises(ServerRefused):
                await RemoteLink.open(Target(where, "me", "wrong", ""))
            link = await RemoteLink.open(Target(where, "me", "secret", ""))
            await link.close()

    go(run)


def test_handlers_are_dropped_if_their_domain_cannot_be_started(
    server: LocalServer,
) -> None:
    async def run() -> None:
        first, second, seen = Domain("a"), Domain("a"), []

        @first.on("t", order="priority")
        async def early(event: Event[bytes]) -> None: ...

        @second.on("s")
        async def fine(event: Event[bytes]) -> None:
            seen.append(event.offset)

        @second.on("t")
        async def late(event: Event[bytes]) -> None: ...

        async with penstock.open(f"penstock://{server.data}") as broker:
            await broker.start(first)
        async with penstock.open(f"penstock://{server.data}") as broker:
            with pytest.raises(WrongOrder):
                await broker.start(second)
            await broker.publish("s", b"x")
            await broker.wait_until_settled(60)

            assert seen == []

    go(run)


def test_a_topic_that_the_program_deletes_gets_its_schema_again(
    server: LocalServer,
) -> None:
    async def run() -> None:
        topic = Topic("n", int)
        async with penstock.open(f"penstock://{server.data}", name="me") as broker:
            await broker.publish(topic, 1)
            await broker.ask("topics.delete", name="n")
            await broker.publish(topic, 2)

            with pytest.raises(InvalidPayload):
                await broker.publish("n", b"anything")

    go(run)


def test_after_another_connection_nothing_is_taken_for_known(tmp_path: Path) -> None:
    async def run() -> None:
        with local_server(tmp_path / "data") as server:
            link = await RemoteLink.open(target(server))
            before = link.mark("t")
            same = link.mark("t") == before
            await link.connected(lost=link._client)
            after = link.mark("t")
            await link.close()

        assert same and after != before

    go(run)
