"""On whose account the broker works: one for each user who has logged in.

What a user said is carried out within ``acting``: the broker then asks the account
before it makes a topic or a subscription or stores events, remembers who made it, and
charges what was published. Without a login there is no account. The broker is
synchronous, so what happens within the block is that user's doing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from penstock.access.account import Account
from penstock.access.grants import Grants
from penstock.access.quota import NONE, Quota, QuotaName
from penstock.log import BrokerLog, Columns


class Makers(Protocol):
    """Who has made which of the topics that there are."""

    def makers(self) -> Iterable[str]: ...
    def made_by(self, user: str) -> Collection[str]: ...


class Accounts:
    def __init__(
        self, log: BrokerLog, makers: Makers, subscribed: tuple[Mapping[str, int], ...]
    ) -> None:
        self.log = log
        self.makers = makers
        self.subscribed = subscribed
        """How many subscriptions each user has made, kind by kind."""
        self.payer: Account | None = None
        """Of whom the broker does now what it does."""
        self.defaults = NONE
        """Of users whose own quota says nothing."""
        self.look_up: Callable[[str], Quota] = lambda user: NONE
        """What is said about a user who need not be here."""
        self.refusals: Counter[QuotaName] = Counter()
        self.waits: Counter[QuotaName] = Counter()
        self._accounts: dict[str, Account] = {}

    def now_s(self) -> float:
        return self.log.now_ms() / 1000

    def of(self, grants: Grants | None) -> Account | None:
        """The account of a user who has logged in; None of all others."""
        if grants is None or not grants.user:
            return None
        return self._account(grants.user, grants.quota)

    def named(self, user: str) -> Account | None:
        """The account of a user who need not be here; None without a name."""
        return self._account(user, self.look_up(user)) if user else None

    def users(self) -> set[str]:
        """Who was here since the start, or has made a topic or a subscription."""
        return set(self._accounts).union(self.makers.makers(), *self.subscribed)

    @contextmanager
    def acting(self, account: Account | None) -> Iterator[None]:
        """What is done within the block, which must not wait, is done for this user."""
        before, self.payer = self.payer, account
        try:
            yield
        finally:
            self.payer = before

    def subscribes(self, more: int = 1) -> str:
        """Whose so many new subscriptions are; empty without a login.

        Raises QuotaReached.
        """
        if self.payer is None:
            return ""
        self.payer.check_subscriptions(more)
        return self.payer.user

    def admitted(self, topic: str, events: Columns) -> int:
        """The size of events that the payer may publish; 0 without a quota.

        Raises QuotaReached, InvalidBatch.
        """
        payer = self.payer
        if payer is None or not payer.limited:
            return 0
        size = events.check(self.log.options.max_event_bytes)
        payer.admit({topic: size})
        return size

    def admitted_rows(
        self, rows: Callable[[], Mapping[str, Columns]]
    ) -> dict[str, tuple[int, int]]:
        """The same for events of several topics: how many of each, and their size."""
        payer = self.payer
        if payer is None or not payer.limited:
            return {}
        limit = self.log.options.max_event_bytes
        found = {
            topic: (len(events), events.check(limit))
            for topic, events in rows().items()
        }
        payer.admit({topic: size for topic, (_, size) in found.items()})
        return found

    def admit_pending(self, topic: str, size: int) -> None:
        """Whether the payer might publish that by now; raises QuotaReached."""
        if self.payer is not None and self.payer.limited:
            self.payer.admit({topic: size})

    def published(self, topic: str, events: int, size: int) -> None:
        """The payer has published what was admitted."""
        self.kept(topic, size)
        self.charge(events, size)

    def kept(self, topic: str, size: int) -> None:
        """What was admitted is in its topic."""
        if self.payer is not None:
            self.payer.keep({topic: size})

    def charge(self, events: int, size: int) -> None:
        """The payer has sent that much, wherever it is kept until it is published."""
        if self.payer is not None:
            self.payer.charge(events, size)

    def _account(self, user: str, said: Quota) -> Account:
        account = self._accounts.get(user)
        if account is None:
            account = self._accounts[user] = Account(self, user)
        if said is not account.said:  # nearly always it is
            account.said = said
            account.adopt(said.over(self.defaults))
        return account
