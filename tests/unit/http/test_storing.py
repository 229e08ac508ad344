from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.broker.publishing import ids_at
from penstock.errors import InvalidBatch, InvalidPayload, ReservedName
from penstock.http.incoming import Incoming, arrived
from penstock.http.storing import store, store_in_time
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.server.scene import run


def test_events_are_where_the_answer_says(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            new = arrived([Incoming(text="a", id="x"), Incoming(text="b")], 5, None)

            stored = await store_in_time(house.house, "t", new)
            await house.house.promises.kept(stored.group)

            assert list(stored.offsets) == [0, 1]
            assert stored.ids(house.broker) == ids_at(house.broker, "t", [0, 1])
            assert stored.ids(house.broker)[0] == "x"

    run(scene())


def test_a_repeated_event_keeps_its_place_and_its_id(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            first = await _once(house, Incoming(text="a", id="x", dedup_id="d"))
            again = await _once(
                house,
                Incoming(text="a", id="y", dedup_id="d"),
                Incoming(text="b", id="z", dedup_id="e"),
            )

            assert first == ([0], ["x"])
            assert again == ([0, 1], ["x", "z"])
            assert house.broker.log.topic("t").end_offset == 2

    run(scene())


def test_what_is_refused_makes_no_topic(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            most = house.broker.log.options.max_event_bytes
            new = arrived([Incoming(text="x" * (most + 1))], 5, None)

            with pytest.raises(InvalidBatch, match=str(most)):
                store(house.broker, "t", new, 5.0)
            with pytest.raises(ReservedName):
                store(house.broker, "$t", arrived([Incoming(text="x")], 5, None), 5.0)

            assert house.broker.log.topics() == []

    run(scene())


def test_a_payload_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.house.desk.ask("topics.create", {"name": "t"})
            schema = {"schema": {"type": "integer"}, "topic": "t"}
            house.house.desk.ask("schemas.register", schema)

            with pytest.raises(InvalidPayload):
                store(house.broker, "t", arrived([Incoming(text="x")], 5, None), 5.0)

    run(scene())


@pytest.mark.slow
def test_publishers_wait_while_the_disk_is_behind(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            options = house.broker.log.options
            size = options.max_event_bytes // 2
            wanted = 6 * options.group_bytes // size

            async def one() -> None:
                new = arrived([Incoming(text="x" * size)], 5, None)
                stored = await store_in_time(house.house, "t", new)
                await house.house.promises.kept(stored.group)

            await asyncio.gather(*(one() for _ in range(wanted)))

            assert house.broker.log.topic("t").end_offset == wanted

    run(scene())


def test_ids_of_events_that_are_gone_are_none(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await _once(house, Incoming(text="a", id="x", dedup_id="d"))

            assert ids_at(house.broker, "t", [0, 7]) == ["x", None]
            assert ids_at(house.broker, "gone", [0]) == [None]

    run(scene())


async def _once(
    house: HttpHouse, *rows: Incoming
) -> tuple[list[int], list[str | None]]:
    stored = await store_in_time(house.house, "t", arrived(rows, 5, None))
    await house.house.promises.kept(stored.group)
    return list(stored.offsets), stored.ids(house.broker)
