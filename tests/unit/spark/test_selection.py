from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import DataLost, InvalidOption, UnknownTopic
from penstock.spark.options import source_options
from penstock.spark.selection import is_selected, placed, present, selected
from penstock.table.place import DataDirectory
from tests.unit.spark.scene import NEW_YEAR, connection, filled


@pytest.fixture
def place(tmp_path: Path) -> Iterator[DataDirectory]:
    filled(tmp_path, orders=10, **{"orders.eu": 5, "other": 0, "$errors": 1})
    files = DataDirectory(connection(tmp_path))
    yield files
    files.close()


def options(**given: str):
    return source_options({"path": "d", **given}, streaming=False)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"subscribe": "other,orders,none"}, {"other", "orders"}),
        ({"subscribe": "$errors"}, {"$errors"}),
        ({"subscribePattern": "orders.*"}, {"orders", "orders.eu"}),
        ({"subscribePattern": "order"}, set()),
        ({"subscribePattern": ".*"}, {"orders", "orders.eu", "other"}),
        ({"assign": '{"orders.eu": [0]}'}, {"orders.eu"}),
    ],
)
def test_which_topics_are_meant(
    place: DataDirectory, given: dict[str, str], names: set[str]
) -> None:
    topics = options(**given).topics

    assert selected(place, topics).keys() == names
    there = ("orders", "orders.eu", "other", "$errors")
    assert {one for one in there if is_selected(one, topics)} == names


def test_a_name_in_vain_is_an_error_unless_losses_are_none(
    place: DataDirectory,
) -> None:
    with pytest.raises(UnknownTopic, match="topic none does not exist"):
        present(place, options(subscribe="orders,none"))

    found = present(place, options(subscribe="orders,none", failOnDataLoss="false"))

    assert found.keys() == {"orders"}


def place_of(place: DataDirectory, **given: str) -> dict[str, int]:
    said = options(subscribe="orders,orders.eu", **given)
    extents = present(place, said)
    fail = said.fail_on_data_loss
    return placed(place, said.starting, extents, fail_on_data_loss=fail)


def test_where_topics_begin(place: DataDirectory) -> None:
    time = str(NEW_YEAR + 3)

    assert place_of(place) == {"orders": 0, "orders.eu": 0}
    assert place_of(place, startingOffsets='{"orders": {"0": 7}}')["orders"] == 7
    assert place_of(place, startingTimestamp=time) == {"orders": 3, "orders.eu": 3}


def test_an_offset_outside_of_its_topic(place: DataDirectory) -> None:
    beyond = '{"orders": {"0": 11}}'

    with pytest.raises(DataLost, match="orders: startingOffsets is 11, it has 0 to 10"):
        place_of(place, startingOffsets=beyond)

    found = place_of(place, startingOffsets=beyond, failOnDataLoss="false")
    assert found["orders"] == 10


def test_an_offset_of_a_topic_that_is_not_read(place: DataDirectory) -> None:
    stray = '{"other": {"0": 0}}'

    with pytest.raises(InvalidOption, match="startingOffsets is 'other': must be of"):
        place_of(place, startingOffsets=stray)
