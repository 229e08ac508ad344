from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.http.options import HttpOptions
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.server.scene import run

EVENTS = "/v1/topics/orders/events"


def payloads(house: HttpHouse, topic: str = "orders") -> list[bytes]:
    batches = house.broker.log.read(topic, 0)
    return [payload for batch in batches for payload in batch.payloads()]


def test_one_event_is_answered_with_its_place(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("POST", EVENTS, {"payload": {"n": 1}, "id": "x"})

            assert answer.status == 201
            assert answer.json() == {"topic": "orders", "offset": 0, "id": "x"}
            assert payloads(house) == [b'{"n": 1}']

    run(scene())


def test_an_id_that_nobody_gave_is_answered(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("POST", EVENTS, {"text": "hello"})

            (batch,) = house.broker.log.read("orders", 0)
            assert answer.json()["id"] == batch.ids()[0]
            assert batch.producers() == ["admin"]

    run(scene())


def test_an_array_is_stored_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            good = await house.ask("POST", EVENTS, [{"payload": n} for n in range(3)])
            bad = await house.ask("POST", EVENTS, [{"payload": 3}, {"priority": 1}])

            answer = good.json()
            assert good.status == 201
            assert (answer["first"], answer["count"]) == (0, 3)
            assert len(answer["ids"]) == 3 and "offsets" not in answer
            assert bad.status == 422
            assert payloads(house) == [b"0", b"1", b"2"]

    run(scene())


def test_an_empty_array_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("POST", EVENTS, [])

            assert (answer.status, answer.json()["error"]) == (422, "InvalidBatch")

    run(scene())


def test_a_dedup_id_stores_once_and_answers_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            event = {"payload": 1, "dedup_id": "d"}

            first = await house.ask("POST", EVENTS, event)
            again = await house.ask("POST", EVENTS, event)
            many = await house.ask("POST", EVENTS, [{"payload": 2}, event])

            assert first.json() == again.json()
            assert many.json()["offsets"] == [1, 0]
            assert payloads(house) == [b"1", b"2"]

    run(scene())


def test_any_other_body_is_the_payload(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask(
                "POST",
                EVENTS,
                b"\xff any bytes",
                headers={
                    "content-type": "image/png",
                    "Penstock-Key": "k",
                    "Penstock-Id": "x",
                    "Penstock-Priority": "7",
                    "Penstock-Parent": "p",
                    "Penstock-Dedup-Id": "d",
                    "Penstock-Header-Type": "picture",
                },
            )

            (batch,) = house.broker.log.read("orders", 0)
            assert answer.json() == {"topic": "orders", "offset": 0, "id": "x"}
            assert batch.payloads() == [b"\xff any bytes"]
            assert (batch.keys(), batch.priorities()) == ([b"k"], [7])
            assert batch.parents() == ["p"]
            assert batch.headers() == [{"type": "picture"}]

    run(scene())


REFUSED = [
    ({"Penstock-Priority": "256"}, 422, "Penstock-Priority"),
    ({"Penstock-Priority": "-1"}, 422, "Penstock-Priority"),
    ({"Penstock-Colour": "red"}, 400, "Penstock-Colour"),
    ({"Penstock-Id": "a\x7fb"}, 422, "id"),
]


@pytest.mark.parametrize(("headers", "status", "text"), REFUSED)
def test_a_header_that_makes_no_sense_is_named(
    tmp_path: Path, headers: dict[str, str], status: int, text: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("POST", EVENTS, b"x", headers=headers)

            assert answer.status == status
            assert text in answer.json()["detail"]
            assert house.broker.log.topics() == []

    run(scene())


def test_a_body_over_the_limit_is_refused_and_the_limit_named(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(max_body_bytes=1024)) as house:
            answer = await house.ask("POST", EVENTS, b"x" * 1025)

            assert answer.status == 413
            assert answer.json()["limit"] == "1024"

    run(scene())


def test_a_token_publishes_where_it_may(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            token = house.new_token("shop", scope="topics", publish=("orders",))

            there = await house.ask("POST", EVENTS, b"x", token=token)
            elsewhere = await house.ask(
                "POST", "/v1/topics/b/events", b"x", token=token
            )

            (batch,) = house.broker.log.read("orders", 0)
            assert (there.status, elsewhere.status) == (201, 403)
            assert batch.producers() == ["shop"]

    run(scene())


def test_a_failed_write_is_never_confirmed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", EVENTS, {"payload": 0})
            house.files.fail("write", "journal")

            answer = await house.ask("POST", EVENTS, {"payload": 1})

            assert (answer.status, answer.json()["error"]) == (507, "DiskFull")
            assert payloads(house) == [b"0"]

    run(scene())


def test_many_publishers_share_a_commit(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", EVENTS, {"payload": 0})
            before = house.broker.group

            await asyncio.gather(
                *(house.ask("POST", EVENTS, {"payload": n}) for n in range(50))
            )

            assert house.broker.group - before <= 5
            assert len(payloads(house)) == 51

    run(scene())
