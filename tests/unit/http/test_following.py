from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InvalidName, InvalidOption, ReservedName, UnknownTopic
from penstock.http.following import FollowTerms, follow, start_in
from penstock.http.stream_consumer import StreamConsumer, offsets_of
from penstock.log import Columns
from penstock.model.policy import Policy
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.server.scene import run

DEFAULT = Policy(window=7)


async def following(
    house: HttpHouse, name: str | None, terms: FollowTerms | None = None
) -> StreamConsumer:
    return await follow(
        house.house,
        "t",
        name,
        start="earliest",
        terms=terms or FollowTerms(),
        default=DEFAULT,
    )


async def published(house: HttpHouse) -> None:
    house.broker.publish("t", Columns([b"1", b"2"], 5))
    await house.house.promises.kept(house.broker.group)


def test_a_named_subscriber_is_on_disk_before_it_gets_anything(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)

            consumer = await following(house, "anna", FollowTerms(window=3))

            assert house.broker.promised <= house.broker.log.written
            assert consumer.subscription.policy == Policy(window=3)
            assert offsets_of(consumer.take()) == [0, 1]

    run(scene())


def test_without_a_name_nothing_is_left_behind(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            consumer = await following(house, None)
            assert consumer.subscription.temporary

            consumer.close()

            assert len(house.broker.subscriptions) == 0

    run(scene())


def test_what_is_not_said_stays_as_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            before = Policy(window=99, order="priority", tries=3, qos=0)
            house.broker.subscribe("anna", "t", before, "earliest")

            consumer = await following(house, "anna", FollowTerms(ack_timeout_s=5.0))

            policy = consumer.subscription.policy
            assert (policy.window, policy.order, policy.tries) == (99, "priority", 3)
            assert (policy.ack_timeout_s, policy.qos) == (5.0, 1)

    run(scene())


@pytest.mark.parametrize(
    ("name", "error"), [("$x", ReservedName), ("", InvalidName), (" x", InvalidName)]
)
def test_a_name_that_cannot_be_one_is_refused(
    tmp_path: Path, name: str, error: type[Exception]
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await published(house)
            with pytest.raises(error):
                await following(house, name)

    run(scene())


def test_an_unknown_topic_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            with pytest.raises(UnknownTopic):
                await following(house, "anna")
            with pytest.raises(UnknownTopic):
                await following(house, None)

    run(scene())


def test_a_start_is_a_word_an_offset_or_a_time() -> None:
    assert start_in(None) == "latest"
    assert start_in("earliest") == "earliest"
    assert start_in("17") == 17
    assert start_in("time:1700000000000") == "time:1700000000000"
    for wrong in ("", "-1", "soon", "9" * 30, "time:x"):
        with pytest.raises(InvalidOption):
            start_in(wrong)
