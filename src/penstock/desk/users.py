"""The desk's users: what they have of what they may have."""

from __future__ import annotations

from heapq import nsmallest

from penstock.access.account import Account
from penstock.broker.broker import Broker
from penstock.desk.arguments import Limit
from penstock.desk.verbs import verb
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.users import UsagePage, UsageRow


class UserDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("users.usage")
    def usage(
        self, *, user: str | None = None, after: str = "", limit: Limit = MAX_ROWS
    ) -> UsagePage:
        """What users have, by name, behind ``after``; or one of them.

        Those who have logged in since the start, or have made a topic or a
        subscription that is still there.
        """
        accounts = self._broker.accounts
        found = [name for name in accounts.users() if name > after]
        if user is not None:
            found = [name for name in found if name == user.lower()]
        chosen = map(accounts.named, nsmallest(limit, found))
        rows = [_row(one) for one in chosen if one is not None]
        return UsagePage(users=rows, more=len(found) > limit)


def _row(account: Account) -> UsageRow:
    return UsageRow(
        user=account.user,
        connections=account.connections,
        topics=account.topics,
        subscriptions=account.subscriptions,
        stored_bytes=account.stored_bytes,
        wait_s=round(account.wait_s(), 3),
        limits={name: most for name, most in account.quota.limits.items()},
    )
