"""What the pipeline is told, and how it reaches the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.client.tls import Tls
from penstock.errors import InvalidOption
from penstock.pipeline.options import BrokerAddress, PipelineOptions
from tests.local_server import local_server


@pytest.mark.parametrize(
    ("broker", "options"),
    [
        (BrokerAddress(server="h:1"), {"servers": "h:1"}),
        (BrokerAddress(data="d"), {"path": "d"}),
        (
            BrokerAddress(server="h:1", user="u", password="p"),
            {"servers": "h:1", "user": "u", "password": "p"},
        ),
        (
            BrokerAddress(
                server="penstock+tls://h:1", tls=Tls(ca_file="c", cert_file="d")
            ),
            {"servers": "penstock+tls://h:1", "caFile": "c", "certFile": "d"},
        ),
    ],
)
def test_a_broker_is_told_to_spark_as_options(
    broker: BrokerAddress, options: dict[str, str]
) -> None:
    assert broker.format_options() == options


@pytest.mark.parametrize("given", [{}, {"server": "h:1", "data": "d"}])
def test_a_broker_is_at_one_place(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        BrokerAddress(**given)


def test_a_broker_is_reached_by_its_directory(tmp_path: Path) -> None:
    with local_server(tmp_path):
        broker = BrokerAddress(data=str(tmp_path))

        with broker.connect() as client, broker.feed("pipeline:x") as feed:
            client.publish("t", [b"one"])
            assert feed.note == ""


@pytest.mark.parametrize("wrong", [{"trigger_s": -1.0}, {"max_per_trigger": 0}])
def test_values_outside_their_limits_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        PipelineOptions(
            broker=BrokerAddress(data="d"), store="", checkpoint="c", **wrong
        )
