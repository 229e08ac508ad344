from __future__ import annotations

from pathlib import Path

from penstock.http.stream_consumer import StreamConsumer, offsets_of, temporary_name
from penstock.log import Columns
from penstock.model.policy import Policy
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.server.scene import run


async def published(house: HttpHouse, count: int) -> None:
    house.broker.publish("t", Columns([b"%d" % n for n in range(count)], 5))
    await house.house.promises.kept(house.broker.group)


def tap_of(house: HttpHouse, window: int = 10, name: str = "anna") -> StreamConsumer:
    policy = Policy(window=window)
    return StreamConsumer(
        house.house, house.broker.subscribe(name, "t", policy, "earliest")
    )


def test_events_are_taken_within_the_window_and_settled(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 10)
            consumer = tap_of(house, window=4)

            first = offsets_of(consumer.take())
            assert (first, consumer.take()) == ([0, 1, 2, 3], [])
            assert consumer.settle([3, 1, 1, 99]) == 2
            assert offsets_of(consumer.take()) == [4, 5]

    run(scene())


def test_a_turn_rings_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 1)
            consumer = tap_of(house)
            consumer.take()
            while await consumer.notifier.wait(0.01):
                pass

            await published(house, 1000)

            assert await consumer.notifier.wait(10)
            assert not await consumer.notifier.wait(0)

    run(scene())


def test_what_is_put_back_comes_again_as_the_same_try(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 2)
            consumer = tap_of(house)

            consumer.put_back(offsets_of(consumer.take()))

            again = consumer.take()
            assert offsets_of(again) == [0, 1]
            assert {one.tries for one in again} == {1}

    run(scene())


def test_closing_gives_everything_back(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 2)
            consumer, other = tap_of(house), tap_of(house)
            assert offsets_of(consumer.take(1)) == [0]

            consumer.close()
            consumer.close()

            assert offsets_of(other.take()) == [0, 1]
            assert consumer not in house.engine.members

    run(scene())


def test_a_subscription_that_ends_says_why(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 2)
            consumer = tap_of(house)
            taken = offsets_of(consumer.take())

            house.broker.forget("anna", "t")

            assert consumer.ended_by == "the subscription was forgotten"
            assert await consumer.notifier.wait(0)
            assert (consumer.take(), consumer.settle(taken)) == ([], 0)
            consumer.put_back(taken)
            consumer.close()

    run(scene())


def test_a_subscription_that_is_moved_is_noticed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house, 5)
            consumer = tap_of(house)
            consumer.take()

            house.broker.seek("anna", "t", 3)

            assert consumer.moves == 1
            assert offsets_of(consumer.take()) == [3, 4]

    run(scene())


def test_nobody_has_the_name_of_another() -> None:
    assert temporary_name() != temporary_name()
    assert temporary_name().startswith("$http-")
