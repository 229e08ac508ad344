from __future__ import annotations

import pytest

from penstock.desk.start import accepted_start
from penstock.errors import InvalidOption


@pytest.mark.parametrize(
    "start", ["latest", "earliest", 0, 1 << 60, "time:0", "time:17"]
)
def test_places_in_a_topic_are_accepted(start: str | int) -> None:
    assert accepted_start(start) == start


@pytest.mark.parametrize(
    "start",
    [
        "",
        "Latest",
        "17",
        -1,
        "time:",
        "time:x",
        "time:-1",
        "time:٣",
        "time:" + "9" * 19,
    ],
)
def test_others_are_refused(start: str | int) -> None:
    with pytest.raises(InvalidOption, match="^option start is "):
        accepted_start(start)
