from __future__ import annotations

import asyncio
from pathlib import Path

from penstock.http.following import FollowTerms
from penstock.http.pull_consumers import PullConsumer, PullConsumers
from penstock.http.stream_consumer import offsets_of
from penstock.log import Columns
from penstock.model.policy import Policy
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.http.streaming import happens
from tests.unit.server.scene import run

DEFAULT = Policy(window=10)


async def published(house: HttpHouse) -> None:
    house.broker.publish("t", Columns([b"1", b"2"], 5))
    await house.house.promises.kept(house.broker.group)


async def taken(
    house: HttpHouse, pullers: PullConsumers, terms: FollowTerms | None = None
) -> PullConsumer:
    return await pullers.taken(
        house.house, "anna", "t", terms or FollowTerms(), DEFAULT, "earliest"
    )


def test_whoever_comes_back_has_the_same_seat(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            pullers = PullConsumers(60)

            first = await taken(house, pullers)
            again = await taken(house, pullers, FollowTerms(window=3))

            assert first is again
            assert first.consumer.subscription.policy.window == 3
            pullers.close()

    run(scene())


def test_two_who_come_at_once_share_one(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            pullers = PullConsumers(60)

            one, two = await asyncio.gather(
                taken(house, pullers), taken(house, pullers)
            )

            assert one is two
            assert len(one.consumer.subscription.consumers) == 1
            pullers.close()

    run(scene())


def test_a_seat_that_nobody_comes_back_to_is_given_up(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            pullers = PullConsumers(0.05)
            puller = await taken(house, pullers)
            assert offsets_of(puller.consumer.take()) == [0, 1]

            await happens(lambda: not len(pullers))

            assert puller.consumer.subscription.consumers == []
            assert puller.consumer.subscription.lag() == 2

    run(scene())


def test_a_seat_in_use_is_kept(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            pullers = PullConsumers(0.02)
            puller = await taken(house, pullers)
            with puller.pulling():
                await asyncio.sleep(0.1)

                assert len(pullers) == 1
            pullers.close()

    run(scene())


def test_a_subscription_that_ended_has_its_seat_no_more(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            pullers = PullConsumers(60)
            puller = await taken(house, pullers)

            house.broker.forget("anna", "t")

            assert await taken(house, pullers) is not puller
            pullers.close()
            assert len(pullers) == 0

    run(scene())
