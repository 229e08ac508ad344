from __future__ import annotations

import json

from penstock.http.access import Access
from penstock.http.call import Special
from penstock.http.event_routes import EVENTS


def test_every_route_says_what_it_is_for() -> None:
    for route in EVENTS:
        assert route.describe["summary"], route.path
        assert route.describe["responses"], route.path


def test_reading_events_is_for_followers_and_changing_for_those_who_may() -> None:
    needed = {
        (one.method if isinstance(one, Special) else "WS", one.path): one.access
        for one in EVENTS
    }

    assert needed == {
        ("GET", "/v1/topics/{topic}/events"): Access.FOLLOW,
        ("POST", "/v1/topics/{topic}/events"): Access.PUBLISH,
        ("GET", "/v1/topics/{topic}/events/{offset}"): Access.FOLLOW,
        ("GET", "/v1/events/{id}"): Access.READ,
        ("GET", "/v1/topics/{topic}/stream"): Access.FOLLOW,
        ("POST", "/v1/subscriptions/{subscriber}/{topic}/pull"): Access.CONSUME,
        ("WS", "/v1/topics/{topic}/socket"): Access.FOLLOW,
    }


def test_a_query_is_described_with_its_limits_and_without_null() -> None:
    page = next(one for one in EVENTS if one.path.endswith("/events"))
    parameters = {one["name"]: one["schema"] for one in page.describe["parameters"]}

    assert parameters["limit"]["maximum"] == 1000
    assert parameters["search"]["type"] == "string"
    assert "null" not in json.dumps(list(parameters.values()))
