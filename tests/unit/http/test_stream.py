from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.http import stream as module
from penstock.http.options import HttpOptions
from penstock.http.stream import MEDIA_TYPE, last_seen
from penstock.wire.sse import SseParser
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.http.streaming import Streamed, streamed
from tests.unit.server.scene import run

STREAM = "/v1/topics/t/stream"


async def published(house: HttpHouse, *numbers: int) -> None:
    rows = [{"payload": {"n": number}} for number in numbers]
    answer = await house.ask("POST", "/v1/topics/t/events", rows)
    assert answer.status == 201


def seen(answer: Streamed) -> list[int]:
    """The offsets that a client has got, each as the id of its event."""
    found = []
    for block in answer.body.split(b"\n\n"):
        if b"data: " not in block:
            continue
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n"))
        event = json.loads(fields[b"data"])
        assert fields[b"event"] == b"event"
        assert int(fields[b"id"]) == event["offset"]
        found.append(event["offset"])
    return found


async def got(answer: Streamed, *offsets: int) -> None:
    await answer.until(lambda: len(seen(answer)) >= len(offsets))
    assert seen(answer) == list(offsets)


STARTS = [
    ("start=earliest", [0, 1, 2, 3]),
    ("start=2", [2, 3]),
    ("start=latest", [3]),
    ("", [3]),
    ("start=earliest&search=n%3E0", [1, 2, 3]),
]


@pytest.mark.parametrize(("query", "offsets"), STARTS)
def test_a_stream_begins_where_it_is_told_and_goes_on(
    tmp_path: Path, query: str, offsets: list[int]
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1, 2)
            async with streamed(house, "GET", f"{STREAM}?{query}") as answer:
                await answer.until(lambda: b"retry" in answer.body)

                await published(house, 3)

                await got(answer, *offsets)
                assert answer.headers["content-type"].startswith(MEDIA_TYPE)
            assert len(house.broker.subscriptions) == 0
            assert house.house.opened.count == 0

    run(scene())


def test_our_own_parser_reads_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1)
            async with streamed(house, "GET", f"{STREAM}?start=0") as answer:
                await got(answer, 0, 1)

                events = SseParser(1 << 20).feed(answer.body)

                assert [one.id for one in events] == ["0", "1"]
                assert [json.loads(one.data)["payload"]["n"] for one in events] == [
                    0,
                    1,
                ]

    run(scene())


def test_many_events_are_one_write(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, *range(500))
            async with streamed(house, "GET", f"{STREAM}?start=0") as answer:
                await answer.until(lambda: len(seen(answer)) == 500)

                assert len(answer.writes) <= 3

    run(scene())


@pytest.mark.parametrize("name", ["", "&subscriber=anna"])
def test_a_client_goes_on_behind_the_last_event_it_has_seen(
    tmp_path: Path, name: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, *range(6))
            path = f"{STREAM}?start=earliest{name}"
            async with streamed(house, "GET", path) as answer:
                await got(answer, *range(6))

            again = {"Last-Event-ID": "2"}  # the others were lost on the way
            async with streamed(house, "GET", path, again) as answer:
                await published(house, 6)
                await got(answer, 3, 4, 5, 6)

    run(scene())


def test_a_named_subscriber_keeps_its_place(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1)
            path = f"{STREAM}?start=earliest&subscriber=anna"
            async with streamed(house, "GET", path) as answer:
                await got(answer, 0, 1)
            await published(house, 2)

            async with streamed(house, "GET", path) as answer:
                await got(answer, 2)
            assert house.broker.subscription("anna", "t").lag() == 0

    run(scene())


def test_what_a_named_subscriber_was_not_written_is_not_settled(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1)
            path = f"{STREAM}?start=earliest&subscriber=anna"
            async with streamed(house, "GET", path) as answer:
                answer.reads.clear()
                await asyncio.sleep(0.02)
                answer.disconnect()
                await asyncio.sleep(0.02)
                answer.reads.set()
                await answer.until_done()

            assert house.broker.subscription("anna", "t").lag() == 2

    run(scene())


def test_an_id_from_before_the_topic_was_made_anew_means_all_of_it(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1)

            async with streamed(
                house, "GET", STREAM, {"Last-Event-ID": "99"}
            ) as answer:
                await got(answer, 0, 1)

    run(scene())


def test_an_id_moves_no_subscription_that_has_failed_tries(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1, 2)
            pull = "/v1/subscriptions/anna/t/pull"
            await house.ask("POST", pull, {"start": "earliest", "max": 1})
            await house.ask("POST", pull, {"max": 0, "nack": [{"offset": 0}]})
            house.house.pullers.close()

            path = f"{STREAM}?subscriber=anna"
            async with streamed(house, "GET", path, {"Last-Event-ID": "1"}) as answer:
                await got(answer, 0, 1, 2)

    run(scene())


def test_silence_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.01)

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            async with streamed(house, "GET", STREAM) as answer:
                await answer.until(lambda: b"\n\n:\n\n" in answer.body)

    run(scene())


def test_a_search_that_finds_nothing_tells_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.01)

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0, 1, 2)
            path = f"{STREAM}?start=0&search=n=0"
            async with streamed(house, "GET", path) as answer:
                await answer.until(lambda: b"\nid: 2\n\n" in answer.body)

                assert seen(answer) == [0]

    run(scene())


@pytest.mark.slow
def test_a_slow_reader_costs_no_memory(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            async with streamed(house, "GET", f"{STREAM}?start=0") as answer:
                await got(answer, 0)
                answer.reads.clear()
                for _ in range(30):
                    rows = [{"payload": "x" * 1000}] * 200
                    await house.ask("POST", "/v1/topics/t/events", rows)
                writes = len(answer.writes)
                (one,) = house.broker.subscriptions

                # One write waits; all the rest was not even taken from the log.
                assert one.cursor.unsent() > 5000
                answer.reads.set()
                await answer.until(lambda: answer.body.count(b"data: ") == 6001)
                assert len(answer.writes) > writes

    run(scene())


def test_who_reads_nothing_for_too_long_is_cut_off(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(stream_idle_s=0.05)) as house:
            await published(house, 0)
            async with streamed(house, "GET", f"{STREAM}?start=0") as answer:
                await got(answer, 0)
                answer.reads.clear()
                await published(house, 1)

                await answer.until_done()

                assert house.house.opened.count == 0

    run(scene())


def test_a_page_that_draws_gets_fewer_writes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            path = f"{STREAM}?start=0&pace_ms=100"
            async with streamed(house, "GET", path) as answer:
                await got(answer, 0)
                for number in range(1, 21):
                    await published(house, number)
                await got(answer, *range(21))

                assert len(answer.writes) < 10

    run(scene())


def test_a_stream_that_is_behind_is_not_paced(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            for _ in range(10):
                rows = [{"payload": "x" * 10_000}] * 50
                await house.ask("POST", "/v1/topics/t/events", rows)
            path = f"{STREAM}?start=0&pace_ms=10000"
            async with streamed(house, "GET", path) as answer:
                # 5 MB, a quarter at a time: with pauses it would take minutes.
                await answer.until(lambda: answer.body.count(b"data: ") == 500)

    run(scene())


ENDS: list[Any] = [
    lambda house: house.house.opened.end(),
    lambda house: house.broker.forget("anna", "t"),
]


@pytest.mark.parametrize("end", ENDS)
def test_a_stream_ends_with_its_server_or_subscription(
    tmp_path: Path, end: Any
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            path = f"{STREAM}?start=0&subscriber=anna"
            async with streamed(house, "GET", path) as answer:
                await got(answer, 0)

                end(house)

                await answer.until_done()
                assert answer.ended

    run(scene())


def test_the_head_of_a_stream_has_no_end_to_wait_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)

            answer = await house.ask("HEAD", STREAM)

            assert (answer.status, answer.body) == (200, b"")

    run(scene())


REFUSED = [
    (f"{STREAM}?start=soon", 422, "start"),
    (f"{STREAM}?colour=red", 422, "colour"),
    (f"{STREAM}?subscriber=%24x", 403, "$x"),
    (f"{STREAM}?pace_ms=10001", 422, "10000"),
    ("/v1/topics/absent/stream", 404, "absent"),
]


@pytest.mark.parametrize(("path", "status", "text"), REFUSED)
def test_a_stream_that_cannot_be_is_refused(
    tmp_path: Path, path: str, status: int, text: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)

            answer = await house.ask("GET", path)

            assert answer.status == status
            assert text in answer.json()["detail"]
            assert house.house.opened.count == 0
            assert len(house.broker.subscriptions) == 0

    run(scene())


def test_reading_does_not_make_subscriptions(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 0)
            reader = house.new_token("r", scope="read")

            refused = await house.ask("GET", f"{STREAM}?subscriber=a", token=reader)

            assert refused.status == 403
            async with streamed(house, "GET", f"{STREAM}?start=0", token=reader) as one:
                await got(one, 0)

    run(scene())


def test_open_streams_have_a_limit(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(max_streams=1)) as house:
            await published(house, 0)
            async with streamed(house, "GET", f"{STREAM}?start=0") as answer:
                await got(answer, 0)

                refused = await house.ask("GET", STREAM)

                assert (refused.status, refused.json()["limit"]) == (429, "1")
            assert house.house.opened.count == 0

    run(scene())


def test_a_page_is_rendered_once_for_all_streams(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, *range(20))
            path = f"{STREAM}?start=0"
            async with (
                streamed(house, "GET", path) as one,
                streamed(house, "GET", path) as two,
            ):
                await got(one, *range(20))
                await got(two, *range(20))

                page = house.broker.pages.at("t", 0)
                assert page is not None
                (rendered,) = page.rendered["http stream"]
                assert rendered in one.writes and rendered in two.writes

    run(scene())


def test_what_is_no_offset_was_never_seen() -> None:
    assert last_seen(" 17 ") == 17
    for text in ("", "-1", "x", "1" * 30, "²"):
        assert last_seen(text) is None
