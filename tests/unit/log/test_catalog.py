from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import UnknownTopic
from penstock.files import Files
from penstock.log.catalog import Catalog
from penstock.log.checkpoint import TopicRecord
from penstock.log.layout import Layout
from penstock.log.options import TopicOptions


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(Files(), Layout(str(tmp_path)), lambda _: None)


def record(topic_id: int, name: str, end: int = 0) -> TopicRecord:
    return TopicRecord(
        id=topic_id,
        name=name,
        options=TopicOptions(compact=True),
        start_offset=2,
        end_offset=end,
    )


def test_topic_is_found_by_name_and_by_id(catalog: Catalog) -> None:
    topic = catalog.add(record(5, "orders", end=9))

    assert catalog.get("orders") is catalog.by_id(5) is topic
    assert "orders" in catalog
    assert (len(catalog), list(catalog)) == (1, [topic])
    assert (topic.start_offset, topic.end_offset, topic.next_offset) == (2, 9, 9)
    assert topic.options.compact


def test_ids_go_on_behind_the_largest(catalog: Catalog) -> None:
    before = catalog.next_id
    catalog.add(record(5, "a"))
    catalog.add(record(3, "b"))

    assert (before, catalog.next_id) == (1, 6)


def test_removed_topic_is_unknown_and_its_id_is_not_given_out_again(
    catalog: Catalog,
) -> None:
    catalog.remove(catalog.add(record(5, "orders")))

    assert "orders" not in catalog
    assert catalog.by_id(5) is None
    assert catalog.next_id == 6
    with pytest.raises(UnknownTopic, match="orders"):
        catalog.get("orders")
