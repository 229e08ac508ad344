from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import LimitReached
from penstock.http.opened import OpenStreams
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.http.streaming import streamed
from tests.unit.server.scene import run


def test_streams_are_counted_while_they_are_open() -> None:
    opened = OpenStreams(2)

    with opened.one(), opened.one():
        assert opened.count == 2
        with pytest.raises(LimitReached, match=r"2 open streams.*http\.max_streams"):
            opened.one().__enter__()
        assert opened.count == 2

    assert opened.count == 0


def test_a_stream_that_fails_is_counted_out() -> None:
    opened = OpenStreams(1)

    with pytest.raises(RuntimeError), opened.one():
        raise RuntimeError

    assert opened.count == 0


def test_all_streams_end_with_the_server() -> None:
    opened = OpenStreams(2)
    with opened.one() as guest:
        assert (opened.ending, guest.over) == (False, False)

        opened.end()

        assert (opened.ending, guest.over, guest.revoked) == (True, True, None)
        with opened.one() as late:
            assert late.over


def test_a_stream_ends_with_its_login_and_others_go_on() -> None:
    opened, counts = OpenStreams(2), True
    with opened.one(lambda: counts) as guest, opened.one() as other:
        opened.check()
        assert (guest.over, other.over) == (False, False)

        counts = False
        opened.check()

        assert (guest.over, other.over, opened.ending) == (True, False, False)
        assert "does not count any more" in str(guest.revoked)


DAY_S = 24 * 3600.0
STREAMS = {
    "stream": ("GET", "/v1/topics/t/stream", "http"),
    "live": ("GET", "/v1/live", "http"),
    "lines": ("POST", "/v1/topics/t/events", "http"),
    "socket": ("GET", "/v1/topics/t/socket", "websocket"),
}
ENDS: dict[str, Callable[[HttpHouse], object]] = {
    "removed": lambda house: house.key_file.remove("mine"),
    "made anew": lambda house: (
        house.key_file.remove("mine"),
        house.new_token("mine"),
    ),
    "expired": lambda house: house.clock.advance(DAY_S + 1),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("what", STREAMS)
def test_what_is_open_ends_with_its_token(tmp_path: Path, what: str, how: str) -> None:
    method, path, kind = STREAMS[what]

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})
            expires_ms = int((house.clock.now_s() + DAY_S) * 1000)
            token = house.new_token("mine", expires_ms=expires_ms)
            headers = {"content-type": "application/x-ndjson"}
            async with streamed(
                house, method, path, headers, kind=kind, token=token, body=True
            ) as stream:
                await stream.until(lambda: bool(stream.messages))
                house.house.opened.check()
                await asyncio.sleep(0)
                assert house.house.opened.count == 1

                ENDS[how](house)
                house.house.opened.check()

                await stream.until_done()
                assert house.house.opened.count == 0
                if what == "socket":
                    last = stream.messages[-1]
                    assert (last["code"], "login" in last["reason"]) == (1008, True)
                if what == "lines":
                    assert b'"LoginRefused"' in stream.body

    run(scene())


def test_a_range_that_ends_with_its_token_does_not_look_whole(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            rows = [{"text": "x" * 1000}] * 2000
            await house.ask("POST", "/v1/topics/t/events", rows)
            token = house.new_token("mine", scope="read")
            lines = {"accept": "application/x-ndjson"}
            async with streamed(
                house, "GET", "/v1/topics/t/events", lines, token=token
            ) as stream:
                await stream.until(lambda: bool(stream.writes))
                stream.reads.clear()
                house.key_file.remove("mine")
                house.house.opened.check()
                stream.reads.set()

                await stream.until_done()

                assert not stream.ended

    run(scene())


def test_what_a_page_has_open_ends_when_it_logs_out(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            login = await house.ask(
                "POST", "/v1/session", {"token": house.token}, token=None
            )
            cookie = {"cookie": login.headers["set-cookie"].split(";")[0]}
            csrf = {"x-csrf-token": login.json()["csrf"]}
            async with streamed(house, "GET", "/v1/live", cookie) as stream:
                await stream.until(lambda: b"data:" in stream.body)

                gone = await house.ask(
                    "DELETE", "/v1/session", token=None, headers=cookie | csrf
                )
                house.house.opened.check()

                assert gone.status == 204
                await stream.until_done()

    run(scene())
