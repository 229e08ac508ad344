from __future__ import annotations

from dataclasses import fields

import pytest

from penstock.broker.options import BrokerOptions
from penstock.errors import InvalidOption


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_topics", 0),
        ("max_subscriptions", 0),
        ("dedup_count", -1),
        ("dedup_age_s", 0),
        ("max_pending", 0),
        ("max_pending_bytes", 0),
        ("pending_ttl_s", 0),
        ("max_sinks", 0),
        ("max_staged_bytes", 0),
        ("max_staged_bytes", (1 << 30) + 1),
        ("staged_ttl_s", 0),
        ("page_cache_bytes", 1),
    ],
)
def test_setting_outside_its_limits_is_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidOption) as caught:
        BrokerOptions(**{name: value})  # type: ignore[arg-type]  # by name

    assert (caught.value.name, caught.value.value) == (name, value)


def test_every_setting_has_a_help_text() -> None:
    assert [one.name for one in fields(BrokerOptions) if not one.metadata["help"]] == []
