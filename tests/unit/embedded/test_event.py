from __future__ import annotations

import pytest

from penstock.embedded.event import Event
from tests.unit.embedded.scene import event


def test_an_event_is_what_it_is_and_stays_it() -> None:
    made = event(3, b"x", key=b"k")

    with pytest.raises(AttributeError):
        made.offset = 4  # type: ignore[misc]

    assert made == event(3, b"x", key=b"k")


def test_events_do_not_share_their_headers() -> None:
    first, second = event(1), event(2)

    first.headers["a"] = "b"

    assert second.headers == {}
    assert Event.__struct_fields__[:3] == ("topic", "offset", "id")
