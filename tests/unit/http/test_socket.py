from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.http.options import HttpOptions
from penstock.http.socket import BAD_MESSAGE, ENDED, GOING_AWAY, MOVED
from penstock.http.stream_consumer import StreamConsumer
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.http.streaming import Streamed, happens, streamed
from tests.unit.server.scene import run

SOCKET = "/v1/topics/t/socket"


async def published(house: HttpHouse, *numbers: int) -> None:
    rows = [{"payload": {"n": number}} for number in numbers]
    answer = await house.ask("POST", "/v1/topics/t/events", rows)
    assert answer.status == 201


def opened(house: HttpHouse, query: str, **more: Any) -> Any:
    return streamed(house, "GET", f"{SOCKET}?{query}", kind="websocket", **more)


def deliveries(socket: Streamed) -> list[tuple[int, int]]:
    """Offset and try of what has come."""
    texts = [one["text"] for one in socket.messages if one["type"] == "websocket.send"]
    events = [event for text in texts for event in json.loads(text)["events"]]
    return [(one["offset"], one["tries"]) for one in events]


async def got(socket: Streamed, *wanted: tuple[int, int]) -> None:
    await socket.until(lambda: len(deliveries(socket)) >= len(wanted))
    assert deliveries(socket) == list(wanted)


def say(socket: Streamed, **message: Any) -> None:
    text = json.dumps(message)
    socket.coming.put_nowait({"type": "websocket.receive", "text": text})


async def closed(socket: Streamed) -> Any:
    """Why the server has closed it."""
    await socket.until_done()
    last = socket.messages[-1]
    assert last["type"] == "websocket.close"
    return last["code"], last["reason"]


def test_events_come_within_the_window_and_acks_make_room(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, *range(5))
            async with opened(house, "subscriber=anna&window=2&start=0") as socket:
                await got(socket, (0, 1), (1, 1))
                await asyncio.sleep(0.02)
                assert len(deliveries(socket)) == 2

                say(socket, ack=[1])
                await got(socket, (0, 1), (1, 1), (2, 1))
                say(socket, ack=[0, 2])
                await got(socket, (0, 1), (1, 1), (2, 1), (3, 1), (4, 1))
                say(socket, ack=[3, 4])
                await happens(lambda: not house.broker.subscription("anna", "t").lag())

    run(scene())


def test_all_of_a_turn_is_one_message(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, *range(300))
            async with opened(house, "start=0") as socket:
                await socket.until(lambda: len(deliveries(socket)) == 300)

                assert len(socket.messages) <= 3  # the first one accepts

    run(scene())


def test_a_nack_brings_it_again_and_a_final_one_does_not(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1)
            async with opened(house, "subscriber=anna&start=0") as socket:
                await got(socket, (0, 1), (1, 1))

                say(socket, nack=[{"offset": 0, "error": "no"}])
                await got(socket, (0, 1), (1, 1), (0, 2))
                say(socket, nack=[{"offset": 0, "error": "never", "final": True}])
                say(socket, ack=[1])
                await happens(lambda: not house.broker.subscription("anna", "t").lag())

            await house.house.promises.kept(house.broker.promised)
            letters = (await house.ask("GET", "/v1/dead-letters")).json()["letters"]
            assert [one["reason"] for one in letters] == ["never"]

    run(scene())


def test_what_is_not_acknowledged_comes_again_to_the_next(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1)
            async with opened(house, "subscriber=anna&start=0") as socket:
                await got(socket, (0, 1), (1, 1))
                say(socket, ack=[0])
                await happens(lambda: house.broker.subscription("anna", "t").lag() != 2)

            async with opened(house, "subscriber=anna") as socket:
                await got(socket, (1, 2))

    run(scene())


def test_without_a_name_nothing_is_left_behind(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            async with opened(house, "start=earliest") as socket:
                await got(socket, (0, 1))

            assert len(house.broker.subscriptions) == 0
            assert house.house.opened.count == 0

    run(scene())


ENDS: list[Any] = [
    (lambda house: house.house.opened.end(), GOING_AWAY, "the server ends"),
    (lambda house: house.broker.forget("anna", "t"), ENDED, "forgotten"),
    (lambda house: house.broker.seek("anna", "t", 0), MOVED, "connect again"),
]


@pytest.mark.parametrize(("end", "code", "text"), ENDS)
def test_a_socket_is_closed_with_the_reason(
    tmp_path: Path, end: Any, code: int, text: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            async with opened(house, "subscriber=anna&start=0") as socket:
                await got(socket, (0, 1))

                end(house)

                found, reason = await closed(socket)
                assert found == code
                assert text in reason

    run(scene())


NONSENSE = ["{", "[]", '{"ack":["x"]}', '{"ack":[-1]}', '{"hello":1}', '{"nack":[{}]}']


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_closes_the_socket_and_settles_nothing(
    tmp_path: Path, text: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            async with opened(house, "subscriber=anna&start=0") as socket:
                await got(socket, (0, 1))

                socket.coming.put_nowait({"type": "websocket.receive", "text": text})

                code, reason = await closed(socket)
                assert code == BAD_MESSAGE
                assert reason
            assert house.broker.subscription("anna", "t").lag() == 1

    run(scene())


def test_acks_may_be_bytes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            async with opened(house, "subscriber=anna&start=0") as socket:
                await got(socket, (0, 1))

                message = {"type": "websocket.receive", "bytes": b'{"ack":[0]}'}
                socket.coming.put_nowait(message)

                await happens(lambda: not house.broker.subscription("anna", "t").lag())

    run(scene())


def test_who_does_not_read_is_cut_off_and_loses_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(stream_idle_s=0.05)) as house:
            await published(house, 0)
            async with opened(house, "subscriber=anna&start=0") as socket:
                await got(socket, (0, 1))
                socket.reads.clear()
                await published(house, 1)

                await socket.until_done()

            assert house.broker.subscription("anna", "t").lag() == 2

    run(scene())


REFUSED = [
    ("window=0", 422),
    ("start=soon", 422),
    ("colour=red", 422),
    ("subscriber=%24x", 403),
]


@pytest.mark.parametrize(("query", "status"), REFUSED)
def test_a_socket_that_cannot_be_is_refused_with_a_problem(
    tmp_path: Path, query: str, status: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            async with opened(house, query) as socket:
                await socket.until_done()

                assert socket.messages[0]["type"] == "websocket.http.response.start"
                assert socket.status == status
            assert house.house.opened.count == 0

    run(scene())


def test_reading_does_not_make_subscriptions(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            reader = house.new_token("r", scope="read")
            async with opened(house, "subscriber=anna", token=reader) as socket:
                await socket.until_done()

                assert socket.status == 403

    run(scene())


def test_who_may_only_read_cannot_refuse_events(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            token = house.new_token("reader", scope="read")
            async with opened(house, "start=0", token=token) as socket:
                await got(socket, (0, 1))

                say(socket, nack=[{"offset": 0, "final": True}])

                assert await closed(socket) == (
                    BAD_MESSAGE,
                    "this token may not refuse events",
                )
            letters = await house.ask("GET", "/v1/dead-letters")
            assert letters.json()["letters"] == []

    run(scene())


def test_a_mistake_of_ours_closes_the_socket_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            async with opened(house, "subscriber=anna&start=0") as socket:
                await got(socket, (0, 1))
                monkeypatch.setattr(StreamConsumer, "settle", _broken)

                say(socket, ack=[0])

                await socket.until_done()
                assert socket.messages[-1]["code"] == 1011

    run(scene())

    (record,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert record.exc_info is not None
    assert "broken for a test" in str(record.exc_info[1])


def _broken(*_: object) -> None:
    raise RuntimeError("broken for a test")
