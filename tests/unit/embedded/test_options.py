from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.embedded.options import HandlerOptions
from penstock.errors import InvalidOption


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("order", "random"),
        ("concurrency", 0),
        ("concurrency", 1001),
        ("timeout_s", 0),
        ("timeout_s", -1.0),
        ("timeout_s", math.inf),
        ("timeout_s", math.nan),
        ("tries", 0),
        ("backoff_s", -1.0),
        ("jitter", 1.5),
        ("batch", -1),
        ("batch", 100_001),
        ("keys", b"key"),
        ("keys", "key"),
        ("keys", ["alice"]),
        ("keys", [b"a", None]),
        ("keys", 5),
        ("headers", {"a": 1}),
        ("headers", {b"a": "1"}),
        ("headers", [("a", "1")]),
        ("tries", None),
        ("tries", 2.5),
        ("tries", True),
        ("concurrency", "4"),
        ("batch", 1.5),
        ("timeout_s", "5"),
        ("backoff_s", None),
        ("jitter", "0.2"),
        ("start", "bogus"),
        ("start", "time:abc"),
        ("start", -5),
        ("start", None),
    ],
)
def test_a_value_outside_its_limits_is_refused(option: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=option):
        HandlerOptions(**{option: value})


@pytest.mark.parametrize("order", ["key", "strict"])
def test_batches_have_no_order(order: Any) -> None:
    with pytest.raises(InvalidOption, match="batches"):
        HandlerOptions(batch=5, order=order)


@pytest.mark.parametrize(
    ("settings", "key", "headers", "takes"),
    [
        ({}, None, {}, True),
        ({"keys": [b"a"]}, b"a", {}, True),
        ({"keys": [b"a"]}, b"b", {}, False),
        ({"keys": [b"a"]}, None, {}, False),
        ({"keys": []}, b"a", {}, False),
        ({"keys": [b""]}, b"", {}, True),
        ({"keys": [b""]}, None, {}, False),
        ({"headers": {"x": "1"}}, None, {"x": "1", "y": "2"}, True),
        ({"headers": {"x": "1"}}, None, {"x": "2"}, False),
        ({"headers": {"x": ""}}, None, {}, False),
        ({"keys": [b"a"], "headers": {"x": "1"}}, b"a", {}, False),
    ],
)
def test_a_filter_takes_what_has_all_of_it(
    settings: Any, key: bytes | None, headers: dict[str, str], takes: bool
) -> None:
    options = HandlerOptions(**settings)

    assert options.takes(key, headers) is takes
    assert options.filtered is bool(settings)


def test_the_policy_says_what_the_options_say() -> None:
    options = HandlerOptions(
        tries=7, backoff_s=1.0, backoff_factor=3.0, max_backoff_s=9.0, jitter=0.5
    )

    policy = options.policy(12)

    assert (policy.window, policy.tries, policy.order) == (12, 7, "log")
    assert (policy.backoff_s, policy.backoff_factor) == (1.0, 3.0)
    assert (policy.max_backoff_s, policy.jitter) == (9.0, 0.5)
    assert HandlerOptions(order="priority").policy(1).order == "priority"


def test_only_key_and_strict_hold_events_back() -> None:
    orders: list[Any] = ["parallel", "priority", "key", "strict"]

    assert [HandlerOptions(order=one).ordered for one in orders] == [
        False,
        False,
        True,
        True,
    ]


def test_a_filter_does_not_change_with_what_was_given() -> None:
    keys, headers = [b"a"], {"x": "1"}
    options = HandlerOptions(keys=keys, headers=headers)

    keys.append(b"b")
    headers.clear()

    assert not options.takes(b"b", {"x": "1"})
    assert not options.takes(b"a", {})
    assert options.takes(b"a", {"x": "1"})
