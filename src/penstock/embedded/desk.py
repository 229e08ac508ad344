"""What can be asked of a broker, as plans: ``broker.ask(desk.groups())``.

Each function gives a plan; the broker of an async program and that of a blocking one
carry it out alike, over as many pages as there are.

    await broker.ask(desk.republish_all(desk.Filter(subscriber="billing"), rate=100))
"""

from __future__ import annotations

from penstock.client.chains import Chain, chain
from penstock.client.plan import Plan, all_rows, question
from penstock.client.redrive import (
    Progress,
    drop_all,
    error_groups,
    groups,
    like,
    list_all,
    republish_all,
)
from penstock.client.trails import audit, errors
from penstock.desk.views.audit import AuditFilter
from penstock.desk.views.errors import ErrorFilter, ErrorView
from penstock.desk.views.letters import Done, Filter, LetterView
from penstock.desk.views.subscriptions import SubscriptionPage, SubscriptionRow
from penstock.desk.views.topics import TopicPage, TopicRow

__all__ = [
    "AuditFilter",
    "Chain",
    "ErrorFilter",
    "Filter",
    "Plan",
    "Progress",
    "audit",
    "chain",
    "drop_all",
    "edit",
    "error_groups",
    "errors",
    "groups",
    "like",
    "list_all",
    "republish_all",
    "show",
    "show_error",
    "subscriptions",
    "topics",
]


def show(number: int) -> Plan[LetterView]:
    """Everything about one dead letter: its event, and every try."""
    return question(LetterView, "dead-letters.show", number=number)


def edit(
    number: int,
    payload: bytes,
    *,
    reason: str = "",
    by: str = "",
    dry_run: bool = False,
) -> Plan[Done]:
    """Send an event again with another payload, to the subscription that failed."""
    return question(
        Done,
        "dead-letters.edit",
        number=number,
        payload=payload,
        reason=reason,
        by=by,
        dry_run=dry_run,
    )


def show_error(number: int) -> Plan[ErrorView]:
    """One failed try with its traceback."""
    return question(ErrorView, "errors.show", number=number)


def topics() -> Plan[list[TopicRow]]:
    """All topics, by name."""
    return all_rows(TopicPage, "topics", lambda page: page.topics, lambda row: row.name)


def subscriptions(
    subscriber: str | None = None, topic: str | None = None
) -> Plan[list[SubscriptionRow]]:
    """Subscriptions with their lag, by number."""
    return all_rows(
        SubscriptionPage,
        "subscriptions",
        lambda page: page.subscriptions,
        lambda row: row.number,
        subscriber=subscriber,
        topic=topic,
    )
