from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import InvalidOption
from penstock.model.policy import MAX_WINDOW, Policy


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("order", "newest"),
        ("exhausted", "panic"),
        ("qos", 3),
        ("window", 0),
        ("window", MAX_WINDOW + 1),
        ("tries", 0),
        ("tries", 1 << 63),
        ("ack_timeout_s", 0),
        ("ack_timeout_s", float("nan")),
        ("ack_timeout_s", 1e300),
        ("backoff_s", -1),
        ("backoff_s", 1e300),
        ("backoff_factor", 1e300),
        ("max_backoff_s", float("inf")),
        ("backoff_s", float("nan")),
        ("jitter", -0.1),
        ("jitter", 1.1),
        ("jitter", float("nan")),
    ],
)
def test_rule_outside_its_limits_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        Policy(**{name: value})

    assert caught.value.name == name


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"window": 1, "tries": 1, "ack_timeout_s": 0.001, "backoff_s": 0},
        {"window": MAX_WINDOW, "tries": None, "ack_timeout_s": None},
        {"order": "priority", "exhausted": "suspend", "qos": 2},
    ],
)
def test_rules_within_their_limits_are_taken(rules: dict[str, Any]) -> None:
    policy = Policy(**rules)

    assert all(getattr(policy, name) == value for name, value in rules.items())


@pytest.mark.parametrize(
    ("rules", "counts"),
    [
        ({}, False),
        ({"tries": 3}, True),
        ({"tries": 3, "exhausted": "suspend"}, False),
    ],
)
def test_losses_count_where_tries_end_in_a_dead_letter(
    rules: dict[str, Any], counts: bool
) -> None:
    assert Policy(**rules).counts_losses == counts
