"""What one user has and uses, over all connections and gateways; and whether more fits.

Connections, topics, subscriptions and stored bytes that exceed the user's quota are
refused. Rates are not: what was published is charged, and the connection that let it in
waits until the debt is paid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.access.quota import NONE, Quota, QuotaName
from penstock.errors import QuotaReached
from penstock.log import StoredTopic

if TYPE_CHECKING:
    from penstock.access.accounts import Accounts

# How often the topics of a user are looked at; in between what is published is added.
LOOK_S = 1.0
# What is taken in at once of a user with a rate: about what a second allows, if an
# event has so many bytes, and not so little that reading costs more than what is read.
EVENT_BYTES = 64
LEAST_READ_BYTES = 4096


class Account:
    """Made by Accounts; shared by all peers that have logged in as this user."""

    __slots__ = (
        "_accounts",
        "_buckets",
        "_looked_s",
        "_since",
        "_stored",
        "charges",
        "connections",
        "quota",
        "said",
        "user",
    )

    def __init__(self, accounts: Accounts, user: str) -> None:
        self.user = user
        self.quota = NONE
        self.said: Quota | None = None
        """What the users file says, without the defaults."""
        self.connections = 0
        self.charges = 0
        """Another number whenever something was published."""
        self._accounts = accounts
        self._buckets: dict[QuotaName, Bucket] = {}
        self._looked_s: float | None = None
        self._stored = 0
        self._since = 0
        """Bytes that were published since that was looked at."""

    @property
    def limited(self) -> bool:
        """Whether publishing has to be looked at."""
        return self.quota is not NONE

    def adopt(self, quota: Quota) -> None:
        """These are the limits from now on."""
        if quota == self.quota:
            return
        self.quota = NONE if quota == NONE else quota
        rates: dict[QuotaName, int | None] = {
            "events_per_s": quota.events_per_s,
            "bytes_per_s": quota.bytes_per_s,
        }
        now_s = self._accounts.now_s()
        for name, rate in rates.items():
            known = self._buckets.get(name)
            if rate is None:
                self._buckets.pop(name, None)
            elif known is None or known.rate != rate:
                self._buckets[name] = Bucket(rate, now_s)

    # Connections

    def enter(self) -> None:
        """Count a connection in; raises QuotaReached."""
        most = self.quota.connections
        if most is not None and self.connections >= most:
            raise self._refusal("connections", most)
        self.connections += 1

    def leave(self) -> None:
        self.connections -= 1

    # What is kept

    @property
    def topics(self) -> int:
        """How many of the topics that there are this user has made."""
        return len(self._accounts.makers.made_by(self.user))

    @property
    def subscriptions(self) -> int:
        """How many this user has made of those that there are; filters over MQTT."""
        return sum(kind.get(self.user, 0) for kind in self._accounts.subscribed)

    def check_subscriptions(self, more: int = 1) -> None:
        """Whether so many more subscriptions may be made; raises QuotaReached."""
        most = self.quota.subscriptions
        if most is not None and self.subscriptions + more > most:
            raise self._refusal("subscriptions", most)

    @property
    def stored_bytes(self) -> int:
        """What these topics take, about."""
        now_s = self._accounts.now_s()
        looked_s = self._looked_s
        if looked_s is None or not 0 <= now_s - looked_s < LOOK_S:
            log = self._accounts.log
            made = self._accounts.makers.made_by(self.user)
            found = [log.topic(name) for name in made if log.has_topic(name)]
            self._stored = sum(map(bytes_of, found))
            self._looked_s, self._since = now_s, 0
        return self._stored + self._since

    def check_topics(self, count: int) -> None:
        """Whether so many topics more may be made; raises QuotaReached."""
        most = self.quota.topics
        if most is not None and self.topics + count > most:
            raise self._refusal("topics", most)

    def admit(self, sizes: Mapping[str, int], letters: int = 0) -> None:
        """Whether so many bytes may go into topics, made if need be.

        Topics that others have made do not count; ``letters``, bytes of dead letters,
        have to fit in with the user's own topics. Raises QuotaReached.
        """
        log = self._accounts.log
        new = [name for name in sizes if not log.has_topic(name)]
        if new:
            self.check_topics(len(new))
        most = self.quota.stored_bytes
        if most is None:
            return
        made = self._accounts.makers.made_by(self.user)
        more = sum(sizes[name] for name in sizes if name in made or name in new)
        more += letters
        if more and self.stored_bytes + more > most:
            raise self._refusal("stored_bytes", most)

    def keep(self, sizes: Mapping[str, int]) -> None:
        """So many bytes went into topics that are there by now."""
        if self.quota.stored_bytes is not None:
            made = self._accounts.makers.made_by(self.user)
            self._since += sum(sizes[name] for name in sizes if name in made)

    # Rates

    @property
    def paced(self) -> bool:
        """Whether there is a rate to be kept."""
        return bool(self._buckets)

    @property
    def read_bytes(self) -> int:
        """How much to take in at once, so that no publisher has to wait for long."""
        said = self.quota.bytes_per_s, self.quota.events_per_s
        sizes = [said[0], None if said[1] is None else said[1] * EVENT_BYTES]
        return max(min(one for one in sizes if one is not None), LEAST_READ_BYTES)

    def charge(self, events: int, size: int) -> None:
        """So much was published."""
        if not self._buckets or not events:
            return
        self.charges += 1
        now_s = self._accounts.now_s()
        amounts: dict[QuotaName, int] = {"events_per_s": events, "bytes_per_s": size}
        for name, bucket in self._buckets.items():
            bucket.take(amounts[name], now_s)

    def wait_s(self) -> float:
        """How long a publisher has to wait now; 0 if not at all."""
        return self._debt()[0]

    def waits(self) -> None:
        """A publisher waits; counted by the quota that makes it."""
        self._accounts.waits[self._debt()[1]] += 1

    def too_fast(self) -> QuotaReached:
        """Why a publisher that cannot wait for so long may not publish now."""
        wait_s, name = self._debt()
        return self._refusal(name, int(self._buckets[name].rate), wait_s)

    def _debt(self) -> tuple[float, QuotaName]:
        if not self._buckets:
            return 0.0, "events_per_s"
        now_s = self._accounts.now_s()
        return max((one.wait_s(now_s), name) for name, one in self._buckets.items())

    def _refusal(
        self, name: QuotaName, limit: int, wait_s: float = 0.0
    ) -> QuotaReached:
        self._accounts.refusals[name] += 1
        return QuotaReached(self.user, name, limit, wait_s)


def bytes_of(topic: StoredTopic) -> int:
    """What a topic takes, in segments and in memory on its way there."""
    return topic.bytes + topic.unwritten_bytes


class Bucket:
    """A token bucket that may be in debt: what exceeds a rate waits for it.

    It fills at ``rate`` a second, up to one second's worth. Whatever comes while it is
    not in debt is taken, however much that is; then it is in debt, and who took has to
    wait until that is paid. So the rate holds over time whatever the size of a batch.
    """

    __slots__ = ("_at_s", "_level", "rate")

    def __init__(self, rate: float, now_s: float) -> None:
        self.rate = rate
        self._level = float(rate)
        self._at_s = now_s

    def take(self, amount: float, now_s: float) -> None:
        """Take that much, into debt if need be."""
        self._fill(now_s)
        self._level -= amount

    def wait_s(self, now_s: float) -> float:
        """How long until the debt is paid; 0 if there is none."""
        self._fill(now_s)
        return max(-self._level / self.rate, 0.0)

    def _fill(self, now_s: float) -> None:
        # If the clock was set back, nothing has passed, and time goes on from there.
        passed_s = max(now_s - self._at_s, 0.0)
        self._at_s = now_s
        self._level = min(self._level + passed_s * self.rate, float(self.rate))
