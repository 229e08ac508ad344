"""Two programs with one domain by URL, and the first of them is killed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from penstock.client import connect
from tests.process.embedded_process import program, wait_for
from tests.serving import serving

pytestmark = pytest.mark.slow

COUNT = 200
KEYS = 5


@pytest.mark.parametrize("order", ["key", "strict"])
def test_who_waits_goes_on_in_order_when_the_first_is_killed(
    tmp_path: Path, order: str
) -> None:
    with serving(tmp_path) as server, connect(server.data) as client:
        url = f"penstock://127.0.0.1:{server.ports['native']}"
        with program("embedded_taker", url, "one", order) as one:
            assert one.line() == "started"
            with program("embedded_taker", url, "two", order) as two:
                assert two.line() == "started"
                keys = [b"%d" % (number % KEYS) for number in range(COUNT)]
                client.publish("numbers", [b"x"] * COUNT, keys=keys)
                first = [one.line() for _ in range(40)]
                one.kill()
                first += one.lines()

                def drained() -> bool:
                    place = {"subscriber": "taker", "topic": "numbers", "limit": 1}
                    view = client.ask("subscriptions.show", **place)
                    assert isinstance(view, dict)
                    return bool(view["lag"] == 0)

                wait_for(drained)
                two.kill()
                second = two.lines()

    assert {line.split()[0] for line in first} == {"one"}
    assert {line.split()[0] for line in second} == {"two"}
    begun: dict[int, list[int]] = defaultdict(list)
    for line in [*first, *second]:
        offset = int(line.split()[1])
        lane = begun[offset % KEYS if order == "key" else 0]
        if offset not in lane:  # another try, or its ack was lost
            lane.append(offset)
    assert sum(map(len, begun.values())) == COUNT
    assert all(lane == sorted(lane) for lane in begun.values())
