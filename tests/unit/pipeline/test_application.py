"""What is there before the queries; these are in tests/spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.client import connect
from penstock.errors import InvalidStore
from penstock.pipeline.application import OpenStore, checkpoint_of, make_topics
from penstock.pipeline.options import BrokerAddress
from tests.local_server import local_server


def test_topics_are_made_unless_they_are_there(tmp_path: Path) -> None:
    with local_server(tmp_path):
        with connect(tmp_path) as client:
            client.publish("there", [b"one"])

        for _ in range(2):
            make_topics(BrokerAddress(data=str(tmp_path)), ["there", "new"])

        with connect(tmp_path) as client:
            known: Any = client.ask("topics")
    assert [(one["name"], one["end_offset"]) for one in known["topics"]] == [
        ("new", 0),
        ("there", 1),
    ]


@pytest.mark.parametrize(
    ("directory", "checkpoint"),
    [
        ("check", "check/firehose"),
        ("/a/check/", "/a/check/firehose"),
        ("hdfs://host:9000/check", "hdfs://host:9000/check/firehose"),
    ],
)
def test_a_checkpoint_may_lie_where_a_cluster_has_its_files(
    directory: str, checkpoint: str
) -> None:
    assert checkpoint_of(directory) == checkpoint


def test_a_store_is_opened_by_its_url() -> None:
    assert OpenStore("x") == OpenStore("x"), "a worker keeps it by that"
    with pytest.raises(InvalidStore):
        OpenStore("ftp://h/d")()
    assert "secret" not in repr(OpenStore("mongodb://me:secret@h/d")), "it may be told"
