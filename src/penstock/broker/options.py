"""Settings of the broker, all with defaults that work."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.option import check_options, option

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """Limits of what the broker keeps."""

    max_topics: int = option(100_000, "how many topics there may be", least=1)
    max_subscriptions: int = option(
        100_000, "how many subscriptions there may be, of all topics", least=1
    )
    dedup_count: int = option(
        100_000, "dedup ids remembered for each topic, the latest ones", least=0
    )
    dedup_age_s: float = option(600.0, "how long a dedup id is remembered", above=0)
    max_pending: int = option(
        10_000, "messages that may wait for their PUBREL at once", least=1
    )
    max_pending_bytes: int = option(
        64 * MIB, "bytes of messages that may wait for their PUBREL", least=1
    )
    pending_ttl_s: float = option(
        86_400.0, "how long a message waits for its PUBREL", above=0
    )
    page_cache_bytes: int = option(
        64 * MIB, "memory for events on their way to subscribers", least=MIB
    )

    def __post_init__(self) -> None:
        check_options(self)
