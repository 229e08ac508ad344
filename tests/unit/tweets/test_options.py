from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import InvalidOption
from penstock.tweets.options import TweetOptions


def test_defaults_are_those_of_the_original() -> None:
    options = TweetOptions()

    assert (options.host, options.port, options.count) == ("127.0.0.1", 4000, None)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"rate": -1}, "option rate is -1: must be 0 (no limit) or more"),
        ({"panic_rate": 2}, "option panic_rate is 2: must be from 0 to 1"),
        ({"malformed_rate": -1}, "option malformed_rate is -1: must be from 0 to 1"),
        ({"panic_rate": 1, "malformed_rate": 1}, "must be at most 1"),
        ({"count": -1}, "option count is -1: must be 0 or more"),
        ({"last": {"3": 1}}, "option last is '3=1': must be STREAM=N, of the streams"),
        ({"last": {"1": -1}}, "option last is '1=-1': must be STREAM=N"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        TweetOptions(**wrong)

    assert text in str(caught.value)
