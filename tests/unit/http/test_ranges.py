from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from penstock.http import scanning
from penstock.http.ndjson import MEDIA_TYPE as NDJSON
from penstock.http.options import HttpOptions
from penstock.http.ranges import ARROW, accepted
from penstock.log import Columns
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.http.streaming import streamed
from tests.unit.server.scene import run

EVENTS = "/v1/topics/t/events"
LINES = {"accept": NDJSON}


async def filled(house: HttpHouse, count: int = 50, size: int = 1) -> None:
    columns = Columns(
        [b'{"n":%d,"x":"%b"}' % (n, b"x" * size) for n in range(count)], 5
    )
    house.broker.publish("t", columns)
    await house.house.promises.kept(house.broker.group)


RANGES = [
    ("", list(range(50))),
    ("offset=45", [45, 46, 47, 48, 49]),
    ("offset=3&until=6", [3, 4, 5]),
    ("limit=2", [0, 1]),
    ("tail=2", [48, 49]),
    ("offset=10&limit=2", [10, 11]),
    ("search=n%3E47", [48, 49]),
    ("search=n%3E3&limit=1", [4]),
    ("offset=99", []),
    ("until=999&offset=49", [49]),
]


@pytest.mark.parametrize(("query", "found"), RANGES)
def test_a_range_is_lines(tmp_path: Path, query: str, found: list[int]) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house)

            answer = await house.ask("GET", f"{EVENTS}?{query}", headers=LINES)

            events = [json.loads(line) for line in answer.body.splitlines()]
            assert answer.status == 200
            assert answer.headers["content-type"].startswith(NDJSON)
            assert [one["payload"]["n"] for one in events] == found
            assert house.house.opened.count == 0

    run(scene())


def test_a_range_may_be_longer_than_a_page(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house, 5000)

            answer = await house.ask("GET", f"{EVENTS}?limit=4000", headers=LINES)

            assert answer.body.count(b"\n") == 4000

    run(scene())


def test_a_range_has_a_limit_that_is_named(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(max_query_events=10)) as house:
            await filled(house)

            most = await house.ask("GET", EVENTS, headers=LINES)
            more = await house.ask("GET", f"{EVENTS}?limit=11", headers=LINES)

            assert most.body.count(b"\n") == 10
            assert more.status == 422
            assert "10" in more.json()["detail"]

    run(scene())


def test_long_payloads_of_a_range_are_whole(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house, 1, 100_000)

            whole = await house.ask("GET", EVENTS, headers=LINES)
            cut = await house.ask("GET", f"{EVENTS}?whole=false", headers=LINES)

            assert "cut" not in json.loads(whole.body)
            assert json.loads(cut.body)["cut"]

    run(scene())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [NDJSON, ARROW])
def test_a_slow_reader_slows_the_reading_and_costs_no_memory(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == ARROW:
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(scanning, "READ_BYTES", 1)

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            for _ in range(100):
                await filled(house, 10, 1000)
            async with streamed(house, "GET", EVENTS, {"accept": kind}) as stream:
                await stream.until(lambda: len(stream.writes) >= 3)
                stream.reads.clear()
                await asyncio.sleep(0.05)
                seen = len(stream.writes)

                await asyncio.sleep(0.05)

                # Nothing was made beyond the one piece that waits to be taken.
                assert len(stream.writes) == seen < 20
                stream.reads.set()
                await stream.until_done()
                assert stream.ended
                assert len(stream.writes) >= 100

    run(scene())


def test_who_reads_nothing_for_too_long_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "READ_BYTES", 1)

    async def scene() -> None:
        options = HttpOptions(stream_idle_s=0.05)
        async with http_house(tmp_path, options) as house:
            for _ in range(50):
                await filled(house, 1)
            async with streamed(house, "GET", EVENTS, LINES) as stream:
                await stream.until(lambda: bool(stream.writes))
                stream.reads.clear()

                await stream.until_done()

                assert not stream.ended  # it must not look whole
                assert house.house.opened.count == 0

    run(scene())


def test_a_range_ends_with_its_reader(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house, 3000, 1000)
            async with streamed(house, "GET", EVENTS, LINES) as stream:
                await stream.until(lambda: bool(stream.writes))
                stream.disconnect()
                await stream.until_done()

                assert house.house.opened.count == 0

    run(scene())


def test_the_head_of_a_range_has_no_body(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house)

            answer = await house.ask("HEAD", EVENTS, headers=LINES)

            assert (answer.status, answer.body) == (200, b"")

    run(scene())


ACCEPTED = [
    ("", ""),
    ("*/*", ""),
    ("application/json", "application/json"),
    ("text/html, application/x-ndjson;q=0.5", NDJSON),
    ("application/json, application/x-ndjson", "application/json"),
    ("application/vnd.apache.arrow.stream", ARROW),
]


@pytest.mark.parametrize(("header", "kind"), ACCEPTED)
def test_the_first_form_that_we_have_is_taken(header: str, kind: str) -> None:
    assert accepted(header) == kind
