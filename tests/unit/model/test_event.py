from __future__ import annotations

import pytest

from penstock.model import Event


def test_event_has_defaults_for_what_is_optional() -> None:
    event = Event(topic="t", offset=1, id="i", timestamp_ms=2, payload=b"p")

    assert (event.key, event.parent, event.producer) == (None, None, None)
    assert (event.priority, dict(event.headers)) == (0, {})


def test_event_cannot_be_changed() -> None:
    event = Event(topic="t", offset=1, id="i", timestamp_ms=2, payload=b"p")

    with pytest.raises(AttributeError):
        event.priority = 3  # type: ignore[misc]


def test_events_do_not_share_their_headers() -> None:
    one, other = (
        Event(topic="t", offset=n, id="i", timestamp_ms=0, payload=b"") for n in (0, 1)
    )

    assert one.headers is not other.headers
