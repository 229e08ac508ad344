from __future__ import annotations

import pytest

from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.gateway.json_lines import JsonGateway
from penstock.gateway.json_publisher import JsonPublisherGateway


@pytest.mark.parametrize("side", [JsonConsumerGateway, JsonPublisherGateway])
def test_each_side_takes_lines_and_logins_in_the_same_way(
    side: type[JsonGateway[object, object]],
) -> None:
    shared = ("receive", "eof", "logged_in", "_lines", "_line", "_not_in")

    assert [name for name in shared if name in vars(side)] == []
