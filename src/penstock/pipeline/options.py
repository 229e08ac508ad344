"""What the pipeline is told: where the broker is, where the store, and how fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.client import Client, connect
from penstock.client.address import Remote, remote
from penstock.client.feed import Feed
from penstock.client.tls import Tls
from penstock.errors import InvalidOption
from penstock.spark.options import tls_options

# What dead letters of the pipeline are filed under.
GATEWAY = "pipeline"
# Tweets of a batch: 13 MB of JSON, if they are like the generated ones.
MAX_PER_TRIGGER = 15_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress:
    """A broker: the address of its native port, or its data directory."""

    server: str | None = None
    data: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    """Whom to trust, if ``server`` begins with ``penstock+tls://``."""

    def __post_init__(self) -> None:
        if (self.server is None) == (self.data is None):
            raise InvalidOption("server", self.server, "given, or else data")

    def format_options(self) -> dict[str, str]:
        """For ``format("penstock")``; a user who logs in has his password travel."""
        named = {
            "servers": self.server,
            "path": self.data,
            "user": self.user,
            "password": self.password,
            **tls_options(self.tls),
        }
        return {name: value for name, value in named.items() if value is not None}

    def connect(self) -> Client:
        return connect(
            self._address(), user=self.user, password=self.password, name=GATEWAY
        )

    def feed(self, name: str) -> Feed:
        return Feed(
            self._address(),
            name,
            gateway=GATEWAY,
            user=self.user,
            password=self.password,
        )

    def _address(self) -> Remote | Path:
        if self.server is not None:
            return remote(self.server, self.tls)
        return Path(self.data or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    broker: BrokerAddress
    store: str = field(repr=False)
    """The URL of the store; it may hold a password."""
    checkpoint: str
    """The directory that the query keeps its state in; on a cluster a URL as well."""
    topic: str = "firehose"
    trigger_s: float = 1.0
    """How often tweets are processed."""
    max_per_trigger: int = MAX_PER_TRIGGER
    available_now: bool = False
    """End with what there is."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark, over what the pipeline sets."""

    def __post_init__(self) -> None:
        if self.trigger_s < 0:
            raise InvalidOption("trigger", self.trigger_s, "0 or more seconds")
        if self.max_per_trigger < 1:
            raise InvalidOption("max_per_trigger", self.max_per_trigger, "1 or more")
