from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.http.options import HttpOptions
from tests.unit.http.scene import Answer, HttpHouse, http_house
from tests.unit.http.streaming import happens, streamed
from tests.unit.server.scene import run

PULL = "/v1/subscriptions/anna/t/pull"


async def published(house: HttpHouse, *numbers: int) -> None:
    rows = [{"payload": number} for number in numbers]
    answer = await house.ask("POST", "/v1/topics/t/events", rows)
    assert answer.status == 201


async def pulled(house: HttpHouse, **wanted: Any) -> list[tuple[int, int]]:
    """Offset and try of what a pull brings."""
    wanted.setdefault("start", "earliest")
    answer = await house.ask("POST", PULL, wanted)
    assert answer.status == 200, answer.body
    return [(one["offset"], one["tries"]) for one in answer.json()["events"]]


def test_a_pull_brings_events_and_takes_acks(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1, 2, 3)

            first = await house.ask("POST", PULL, {"max": 2, "start": "earliest"})
            events = first.json()["events"]
            assert [one["payload"] for one in events] == [1, 2]
            assert [one["tries"] for one in events] == [1, 1]

            second = await house.ask("POST", PULL, {"ack": [0, 1, 77]})
            assert second.json()["settled"] == 2
            assert [one["offset"] for one in second.json()["events"]] == [2]
            assert house.broker.subscription("anna", "t").position() == 2

    run(scene())


def test_an_answer_promises_that_its_acks_are_on_disk(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            await pulled(house)

            await pulled(house, ack=[0])

            assert house.broker.promised <= house.broker.log.written

    run(scene())


def test_a_pull_waits_for_the_first_event(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            waiting = asyncio.create_task(pulled(house, start="latest", wait_s=60))
            await happens(lambda: house.house.opened.count != 0)

            await published(house, 2)

            assert await waiting == [(1, 1)]

    run(scene())


def test_a_pull_that_waited_long_enough_is_empty(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)

            assert await pulled(house, start="latest", wait_s=0.01) == []
            assert house.house.opened.count == 0

    run(scene())


def test_a_nack_is_a_failed_try(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1, 2)
            await pulled(house, tries=2)

            nack = {"offset": 0, "error": "no", "kind": "Bad"}
            again = await pulled(house, nack=[nack], ack=[1])

            assert again == [(0, 2)]
            errors = house.broker.subscription("anna", "t").errors[0]
            assert [one.line for one in errors] == ["Bad: no"]

    run(scene())


def test_pauses_between_tries_are_as_a_pull_wishes_until_another_wishes(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            await pulled(house, backoff_s=60, backoff_factor=3.0, tries=9)

            nacked = await pulled(house, nack=[{"offset": 0}], jitter=0.5)

            policy = house.broker.subscription("anna", "t").policy
            assert nacked == []
            assert (policy.backoff_s, policy.backoff_factor) == (60.0, 3.0)
            assert (policy.max_backoff_s, policy.jitter) == (300.0, 0.5)

    run(scene())


def test_a_final_nack_is_a_dead_letter(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            await pulled(house)

            nack = [{"offset": 0, "error": "never", "final": True}]
            assert await pulled(house, nack=nack) == []

            detail = (await house.ask("GET", "/v1/topics/t/events/0")).json()
            (delivery,) = detail["deliveries"]
            assert (delivery["state"], delivery["letter"]) == ("dead letter", 0)

    run(scene())


def test_what_is_not_acknowledged_in_time_comes_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            assert await pulled(house, ack_timeout_s=5) == [(0, 1)]
            assert await pulled(house) == []

            house.clock.advance(6)
            house.engine.tick()

            assert await pulled(house, wait_s=60) == [(0, 2)]

    run(scene())


def test_events_of_a_client_that_went_while_it_waited_are_not_lost(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            await pulled(house, max=0)
            headers = {"content-type": "application/json"}
            async with streamed(house, "POST", PULL, headers, body=True) as request:
                request.send(b'{"wait_s":60,"max":5,"ack":[7]}', more=False)
                request.disconnect()
                await request.until_done()

            assert await pulled(house) == [(0, 1)]

    run(scene())


def test_the_window_is_kept(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, *range(10))

            assert len(await pulled(house, window=3)) == 3
            assert await pulled(house) == []

    run(scene())


def test_who_does_not_come_back_loses_what_it_holds(tmp_path: Path) -> None:
    async def scene() -> None:
        options = HttpOptions(pull_idle_s=0.05)
        async with http_house(tmp_path, options) as house:
            await published(house, 1)
            assert await pulled(house, ack_timeout_s=0.05) == [(0, 1)]
            subscription = house.broker.subscription("anna", "t")

            await happens(lambda: not subscription.consumers)

            assert await pulled(house) == [(0, 2)]

    run(scene())


def test_who_holds_events_has_the_time_to_acknowledge_them(tmp_path: Path) -> None:
    async def scene() -> None:
        options = HttpOptions(pull_idle_s=0.01)
        async with http_house(tmp_path, options) as house:
            await published(house, 1)
            assert await pulled(house, ack_timeout_s=300) == [(0, 1)]
            subscription = house.broker.subscription("anna", "t")
            pullers = house.house.pullers

            for _ in range(3):
                pullers._sweep()
                await asyncio.sleep(0.02)

            assert subscription.consumers
            answer = await house.ask("POST", PULL, {"ack": [0]})
            assert answer.json()["settled"] == 1

    run(scene())


def test_a_subscription_that_is_forgotten_ends_the_pull(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            wanted = {"wait_s": 60, "start": "latest"}
            waiting = asyncio.create_task(house.ask("POST", PULL, wanted))
            await happens(lambda: house.broker.subscriptions.of_subscriber("anna"))
            await happens(lambda: house.broker.subscription("anna", "t").consumers)

            await house.ask("DELETE", "/v1/subscriptions/anna/t")

            answer = (await waiting).json()
            assert answer["events"] == []
            assert answer["ended"] == "the subscription was forgotten"

    run(scene())


def test_a_server_that_ends_answers_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            waiting = asyncio.create_task(pulled(house, start="latest", wait_s=60))
            await happens(lambda: house.house.opened.count != 0)

            house.house.opened.end()

            assert await waiting == []

    run(scene())


REFUSED = [
    ({"max": 10_001}, 422, "10000"),
    ({"wait_s": 61}, 422, "60"),
    ({"ack": [-1]}, 422, "ack"),
    ({"window": 0}, 422, "window"),
    ({"start": "soon"}, 422, "start"),
    ({"colour": 1}, 422, "colour"),
]


@pytest.mark.parametrize(("wanted", "status", "text"), REFUSED)
def test_a_wish_that_makes_no_sense_is_refused(
    tmp_path: Path, wanted: dict[str, Any], status: int, text: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)

            answer = await house.ask("POST", PULL, wanted)

            assert answer.status == status
            assert text in answer.json()["detail"]
            assert house.house.opened.count == 0

    run(scene())


def test_an_unknown_topic_is_not_found(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("POST", PULL, {})

            assert (answer.status, answer.json()["error"]) == (404, "UnknownTopic")

    run(scene())


def test_reading_is_not_consuming(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            reader = house.new_token("r", scope="read")
            worker = house.new_token("w", scope="topics", subscribe=("t",))

            answers: list[Answer] = [
                await house.ask("POST", PULL, {}, token=token)
                for token in (reader, worker)
            ]

            assert [one.status for one in answers] == [403, 200]

    run(scene())
