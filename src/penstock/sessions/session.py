"""One session: what its client filters, and its share in each topic it hears of."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from penstock.delivery.consumer import Consumer, Outlet
from penstock.delivery.owed import Owed
from penstock.delivery.packet_ids import PacketIds
from penstock.delivery.subscription import Subscription
from penstock.model.topic_filter import shared

# In front of a client's name: no other gateway takes a subscriber with such a name.
NAME = "$mqtt/"
SHARED_NAME = "$share/"
# A will that cannot be stored now is tried again after this time.
WILL_RETRY_S = 1.0


class TopicFilter(msgspec.Struct, array_like=True, frozen=True):
    """One subscription of a client, as MQTT has it."""

    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0
    """0: none."""

    @property
    def share(self) -> tuple[str, str] | None:
        """Group and filter, if it is shared with others."""
        return shared(self.filter)

    @property
    def plain(self) -> str:
        """The filter without the words of sharing."""
        found = shared(self.filter)
        return self.filter if found is None else found[1]


class Will(msgspec.Struct, array_like=True, frozen=True):
    """A message to be published when its client has gone without a word."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    headers: dict[str, str]
    delay_s: float = 0.0
    lifetime_s: float | None = None
    """How long it counts from the moment it is published."""
    priority: int = 0
    """As its headers say, which have all its fields; versions before read it here."""


class DeliveryTerms(NamedTuple):
    """How events of a topic reach a session: from all filters that match it."""

    qos: int
    no_local: bool
    retain_as_published: bool
    identifiers: tuple[int, ...]


@runtime_checkable
class SessionHolder(Outlet, Protocol):
    """A connection that can be told that its session ends."""

    def sent_away(self, now_s: float) -> None: ...


class NoOutlet:
    """The outlet of a consumer whose client is away."""

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        """No client is there to hear of it."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        """No client is there to hear of it."""

    def moved(self, consumer: Consumer) -> None:
        """No client is there to hear of it."""


NO_OUTLET = NoOutlet()


class Share:
    """A session's part in the events of one topic."""

    __slots__ = ("consumer", "ending", "quiet", "subscription", "terms", "topic_filter")

    def __init__(
        self, subscription: Subscription, topic_filter: TopicFilter | None
    ) -> None:
        self.subscription = subscription
        self.topic_filter = topic_filter
        """The filter of a group that others share; None: all that match count."""
        self.terms: DeliveryTerms | None = None
        """To be found anew if None."""
        self.consumer: Consumer | None = None
        self.ending = False
        """No filter is left: what is in flight is completed, and nothing else sent."""
        self.quiet = 0
        """Events in front of it were there when the broker began: whether those of
        QoS 0 were sent is not known, and at most once is what they are sent. Those
        whose time had not come then were not."""

    @property
    def topic(self) -> str:
        return self.subscription.topic


class Session:
    """Kept by Sessions; the gateway of the client's connection works with it."""

    __slots__ = (
        "client",
        "durable",
        "expiry_s",
        "packet_ids",
        "gone_s",
        "number",
        "outlet",
        "ready",
        "shares",
        "since_s",
        "topics",
        "user",
        "will",
        "will_again_s",
        "will_due_s",
        "topic_filters",
    )

    def __init__(self, number: int, client: str, *, durable: bool) -> None:
        self.number = number
        self.client = client
        self.durable = durable
        """Whether the journal keeps it."""
        self.expiry_s: float | None = 0.0
        """How long it is kept without a connection; None for ever."""
        self.user = ""
        self.topic_filters: dict[str, TopicFilter] = {}
        self.packet_ids = PacketIds(noting=durable)
        self.shares: dict[int, Share] = {}
        """By the number of the subscription."""
        self.topics: dict[str, Share] = {}
        """Those that are not shared with others."""
        self.ready: dict[Consumer, None] = {}
        """Consumers that may have something to take."""
        self.outlet: Outlet | None = None
        """The connection, while there is one."""
        self.since_s: float | None = None
        """When the client came; None if it has not since the process began."""
        self.gone_s: float | None = None
        self.will: Will | None = None
        self.will_due_s: float | None = None
        self.will_again_s = 0.0
        """A will that could not be stored is not tried again before."""

    @property
    def name(self) -> str:
        """As a subscriber."""
        return NAME + self.client

    @property
    def producer(self) -> str:
        """As the producer of what it publishes."""
        return "mqtt/" + self.client

    def share_of(self, consumer: Consumer) -> Share | None:
        return self.shares.get(consumer.subscription.number)
