from __future__ import annotations

import asyncio
from pathlib import Path

from penstock.http.following import FollowTerms
from penstock.http.seats import Seat, Seats
from penstock.http.tap import offsets_of
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
    house: HttpHouse, seats: Seats, terms: FollowTerms | None = None
) -> Seat:
    return await seats.taken(
        house.house, "anna", "t", terms or FollowTerms(), DEFAULT, "earliest"
    )


def test_whoever_comes_back_has_the_same_seat(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            seats = Seats(60)

            first = await taken(house, seats)
            again = await taken(house, seats, FollowTerms(window=3))

            assert first is again
            assert first.tap.subscription.policy.window == 3
            seats.close()

    run(scene())


def test_two_who_come_at_once_share_one(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            seats = Seats(60)

            one, two = await asyncio.gather(taken(house, seats), taken(house, seats))

            assert one is two
            assert len(one.tap.subscription.consumers) == 1
            seats.close()

    run(scene())


def test_a_seat_that_nobody_comes_back_to_is_given_up(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            seats = Seats(0.05)
            seat = await taken(house, seats)
            assert offsets_of(seat.tap.take()) == [0, 1]

            await happens(lambda: not len(seats))

            assert seat.tap.subscription.consumers == []
            assert seat.tap.subscription.lag() == 2

    run(scene())


def test_a_seat_in_use_is_kept(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            seats = Seats(0.02)
            seat = await taken(house, seats)
            with seat.pulling():
                await asyncio.sleep(0.1)

                assert len(seats) == 1
            seats.close()

    run(scene())


def test_a_subscription_that_ended_has_its_seat_no_more(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            seats = Seats(60)
            seat = await taken(house, seats)

            house.broker.forget("anna", "t")

            assert await taken(house, seats) is not seat
            seats.close()
            assert len(seats) == 0

    run(scene())
