"""Every page of the dashboard, with something on it."""

from __future__ import annotations

import json
from typing import Any

from tests.web.site import Site, quoted

TOPIC = "orders"


def fill(site: Site) -> None:
    """Put something on every page: events with a chain, a failure, subscriptions."""
    parent: dict[str, Any] = {}
    site.publish(TOPIC, {"item": "tea", "amount": "4.50", "at": [1, 2, {"x": None}]})
    parent = site.ask(f"/topics/{TOPIC}/events?tail=1")["events"][0]
    site.publish("payments", {"cents": 450}, parent=parent["id"])
    site.ask(
        f"/topics/{TOPIC}/documentation",
        {"text": "# Orders\n\nOne for each *order*."},
        method="PUT",
    )
    site.ask(f"/topics/{TOPIC}/comments", {"text": "who owns this?"})
    site.ask("/subscriptions/books/payments/pull", {"max": 1, "start": "earliest"})
    site.fail("billing", TOPIC, json.dumps("amount is text"))


def addresses(site: Site) -> dict[str, str]:
    """Names of pages, and where they are."""
    letters = site.letters()
    number = letters[0]["number"] if letters else 0
    return {
        "overview": "/ui/",
        "topic": f"/ui/topics/{quoted(TOPIC)}",
        "event": f"/ui/events/{quoted(TOPIC)}/0",
        "subscribers": "/ui/subscribers",
        "connections": "/ui/subscribers?tab=connections",
        "dead letters": "/ui/dead-letters",
        "letter": f"/ui/dead-letters?letter={number}",
        "audit trail": "/ui/dead-letters?tab=audit",
        "flow": "/ui/flow",
        "flow as a list": "/ui/flow?view=list",
        "sql": "/ui/sql?query=SELECT%201",
        "pipeline": "/ui/pipeline",
        "processes": "/ui/processes",
    }


PAGES = (
    "overview",
    "topic",
    "event",
    "subscribers",
    "connections",
    "dead letters",
    "letter",
    "audit trail",
    "flow",
    "flow as a list",
    "sql",
    "pipeline",
    "processes",
)
