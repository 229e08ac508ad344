from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.http import ndjson
from penstock.http.ndjson import MEDIA_TYPE
from penstock.http.options import HttpOptions
from tests.unit.http.scene import Answer, HttpHouse, http_house
from tests.unit.http.streaming import Streamed, happens, streamed
from tests.unit.server.scene import run, turns

EVENTS = "/v1/topics/t/events"
LINES = {"content-type": MEDIA_TYPE}


async def post(house: HttpHouse, body: bytes, *, whole: bool) -> Answer:
    """Lines in one body with a length, or cut into pieces without one."""
    if whole:
        return await house.ask("POST", EVENTS, body, headers=LINES)
    parts = [body[at : at + 7] for at in range(0, len(body), 7)]
    return await house.ask("POST", EVENTS, headers=LINES, parts=parts or [b""])


def lines_of(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def payloads(house: HttpHouse) -> list[bytes]:
    if not house.broker.log.has_topic("t"):
        return []
    return [one for batch in house.broker.log.read("t", 0) for one in batch.payloads()]


either_way = pytest.mark.parametrize("whole", [True, False], ids=["whole", "pieces"])


@either_way
def test_every_line_is_answered_in_order(tmp_path: Path, whole: bool) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            body = b"".join(b'{"payload":%d,"id":"i%d"}\n' % (n, n) for n in range(20))

            answer = await post(house, body, whole=whole)

            assert answer.status == 200
            assert answer.headers["content-type"].startswith(MEDIA_TYPE)
            assert lines_of(answer.body) == [
                {"offset": n, "id": f"i{n}"} for n in range(20)
            ]
            assert payloads(house) == [b"%d" % n for n in range(20)]

    run(scene())


@either_way
def test_a_bad_line_is_answered_in_its_place_and_harms_no_other(
    tmp_path: Path, whole: bool
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            body = (
                b'{"payload":0,"id":"a"}\n\n{"payload":}\r\n{"payload":1,"id":"b"}\n'
                b'{"payload":2,"priority":900}\n{"payload":3,"id":"c"}'
            )

            answers = lines_of((await post(house, body, whole=whole)).body)

            assert answers[0] == {"offset": 0, "id": "a"}
            assert (answers[1]["error"], answers[1]["line"]) == ("BadRequest", 3)
            assert answers[2] == {"offset": 1, "id": "b"}
            assert (answers[3]["error"], answers[3]["line"]) == ("InvalidArgument", 5)
            assert "255" in answers[3]["detail"]
            assert answers[4] == {"offset": 2, "id": "c"}
            assert payloads(house) == [b"0", b"1", b"3"]

    run(scene())


@either_way
def test_a_line_that_does_not_fit_the_schema_is_refused_alone(
    tmp_path: Path, whole: bool
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.house.desk.ask("topics.create", {"name": "t"})
            schema = {"topic": "t", "schema": {"type": "integer"}}
            house.house.desk.ask("schemas.register", schema)
            body = b"".join(
                b'{"payload":%b}\n' % value for value in (b"1", b'"x"', b"2", b"[]")
            )

            answers = lines_of((await post(house, body, whole=whole)).body)

            assert ["error" in one for one in answers] == [False, True, False, True]
            assert [one.get("line") for one in answers] == [None, 2, None, 4]
            assert payloads(house) == [b"1", b"2"]

    run(scene())


@either_way
def test_dedup_ids_store_once_and_answer_the_first_place(
    tmp_path: Path, whole: bool
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            body = b"".join(
                b'{"payload":%d,"dedup_id":"d%d"}\n' % (n, n % 5) for n in range(10)
            )

            first = lines_of((await post(house, body, whole=whole)).body)
            again = lines_of((await post(house, body, whole=whole)).body)

            assert [one["offset"] for one in first] == [0, 1, 2, 3, 4] * 2
            assert again == first
            assert len(payloads(house)) == 5

    run(scene())


def test_a_line_over_the_limit_is_refused_and_the_next_is_not(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(max_body_bytes=1024)) as house:
            long = b'{"text":"%b"}\n' % (b"x" * 2000)
            parts = [long[:800], long[800:1600], long[1600:], b'{"payload":1}\n']

            answer = await house.ask("POST", EVENTS, headers=LINES, parts=parts)

            answers = lines_of(answer.body)
            assert (answers[0]["error"], answers[0]["line"]) == ("TooLarge", 1)
            assert "1024" in answers[0]["detail"]
            assert answers[1]["offset"] == 0

    run(scene())


@either_way
def test_no_lines_are_no_answers(tmp_path: Path, whole: bool) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await post(house, b"\n\r\n \n", whole=whole)

            assert (answer.status, answer.body) == (200, b"")

    run(scene())


def test_answers_come_while_the_body_has_no_end(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path) as house,
            streamed(house, "POST", EVENTS, LINES, body=True) as stream,
        ):
            stream.send(b'{"payload":0}\n{"payl')
            await _answered(stream, 1)
            stream.send(b'oad":"x"}\n')
            await _answered(stream, 2)
            await house.ask("POST", "/v1/topics/u/events", b"others go on")

            stream.send(b'{"payload":9}', more=False)
            await stream.until_done()

            assert stream.ended
            assert payloads(house) == [b"0", b'"x"', b"9"]

    run(scene())


async def _answered(stream: Streamed, lines: int) -> None:
    await stream.until(lambda: stream.body.count(b"\n") >= lines)


def test_all_that_one_commit_made_true_is_one_write(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path) as house,
            streamed(house, "POST", EVENTS, LINES, body=True) as stream,
        ):
            for _ in range(5):
                stream.send(b'{"payload":1}\n' * 100)
            await _answered(stream, 500)

            assert len(stream.writes) <= 3

    run(scene())


def test_of_a_torn_body_the_last_line_is_not_guessed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path) as house,
            streamed(house, "POST", EVENTS, LINES, body=True) as stream,
        ):
            stream.send(b'{"payload":1}\n{"payload":2}')
            await _answered(stream, 1)

            stream.disconnect()
            await stream.until_done()

            assert payloads(house) == [b"1"]
            assert house.house.opened.count == 0

    run(scene())


def test_who_reads_no_answers_is_read_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ndjson, "MOST_WAITING", 8)

    async def scene() -> None:
        async with (
            http_house(tmp_path) as house,
            streamed(house, "POST", EVENTS, LINES, body=True) as stream,
        ):
            await stream.until(lambda: bool(stream.messages))
            stream.reads.clear()
            sent = 40
            for _ in range(sent):
                stream.send(b'{"payload":1}\n')
                await turns(5)
            await happens(lambda: house.broker.log.topics())
            await asyncio.sleep(0.05)

            left = stream.coming.qsize()
            assert left > 8

            stream.reads.set()
            await _answered(stream, sent)
            assert len(payloads(house)) == sent

    run(scene())


@either_way
def test_lines_of_a_failed_write_are_refused_by_number(
    tmp_path: Path, whole: bool
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await post(house, b'{"payload":0}\n', whole=True)
            house.files.fail("write", "journal")

            body = b'{"payload":1,"id":"a"}\n'
            (answer,) = lines_of((await post(house, body, whole=whole)).body)

            assert (answer["error"], answer["line"]) == ("DiskFull", 1)
            assert payloads(house) == [b"0"]

    run(scene())


def test_a_server_that_ends_answers_what_it_has_stored(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path) as house,
            streamed(house, "POST", EVENTS, LINES, body=True) as stream,
        ):
            stream.send(b'{"payload":1}\n')
            await _answered(stream, 1)

            house.house.opened.end()
            await stream.until_done()

            first, last = lines_of(stream.body)
            assert first["offset"] == 0
            assert (last["error"], last["line"]) == ("Ending", 2)

    run(scene())


def test_who_reads_no_answers_for_too_long_is_cut_off(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path, HttpOptions(stream_idle_s=0.05)) as house,
            streamed(house, "POST", EVENTS, LINES, body=True) as stream,
        ):
            stream.send(b'{"payload":1}\n')
            await _answered(stream, 1)
            stream.reads.clear()
            stream.send(b'{"payload":2}\n')

            await stream.until_done()

            assert not stream.ended  # it must not look whole
            assert payloads(house) == [b"1", b"2"]
            assert house.house.opened.count == 0

    run(scene())


def test_open_streams_have_a_limit(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path, HttpOptions(max_streams=1)) as house,
            streamed(house, "POST", EVENTS, LINES, body=True) as stream,
        ):
            await stream.until(lambda: bool(stream.messages))

            answer = await house.ask("POST", EVENTS, headers=LINES, parts=[b""])

            assert (answer.status, answer.json()["limit"]) == (429, "1")

    run(scene())


def test_a_body_with_a_length_is_taken_in_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            made = []
            monkeypatch.setattr(ndjson, "LinesResponse", lambda call: made.append(call))

            await post(house, b'{"payload":0}\n', whole=True)

            assert made == []

    run(scene())
