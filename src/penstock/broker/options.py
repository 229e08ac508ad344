"""Settings of the broker, all with defaults that work."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.log import MAX_GROUP_BYTES
from penstock.model.option import check_options, option

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """Limits of what the broker keeps."""

    max_topics: int = option(100_000, "how many topics there may be", least=1)
    control_characters: bool = option(
        False,
        "whether names of new topics, and ids of MQTT clients, may have control "
        "characters in them",
    )
    max_subscriptions: int = option(
        100_000, "how many subscriptions there may be, of all topics", least=1
    )
    max_retained: int = option(
        1_000_000, "how many topics may have a retained message", least=0
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
    dead_letter_retention_age_s: float | None = option(
        None, "how long a dead letter is kept; `off`: as long as there is room", above=0
    )
    dead_letter_retention_bytes: int = option(
        1024 * MIB,
        "how large `$dead-letters` may be, and the topic for lines that cannot be "
        "understood; the oldest letters go first",
        least=MIB,
    )
    error_retention_age_s: float = option(
        7 * 86_400.0, "how long the error log keeps a failed try", above=0
    )
    error_retention_bytes: int = option(
        64 * MIB, "how large the error log may be, the oldest going first", least=MIB
    )
    max_schema_bytes: int = option(
        64 << 10, "how large the schema of a topic may be", least=1
    )
    max_schema_weight: int = option(
        10_000,
        "how often a schema may have one place of a payload checked, at worst",
        least=1,
    )
    max_schema_steps: int = option(
        40_000,
        "steps of comparing a schema with the one before, or making up data for it",
        least=1000,
    )
    max_schema_s: float = option(
        0.2, "time for the same, on a machine where steps are slow", above=0
    )
    max_schema_versions: int = option(
        100, "how many versions of its schema a topic may have", least=1
    )
    max_documentation_bytes: int = option(
        256 << 10, "how large the documentation of a topic may be", least=0
    )
    max_comments: int = option(1000, "how many comments a topic may have", least=0)
    max_comment_bytes: int = option(4096, "how large a comment may be", least=1)
    max_metadata_bytes: int = option(
        64 * MIB, "schemas, documentation and comments of all topics", least=0
    )
    max_sinks: int = option(
        10_000,
        "queries whose last epoch is remembered; beyond that the user with most "
        "loses the oldest: an epoch of one that was forgotten would be stored again",
        least=1,
    )
    max_sink_bytes: int = option(
        64 * MIB,
        "memory for what queries note of their place; one user has a quarter of it",
        least=0,
    )
    max_staged_bytes: int = option(
        256 * MIB,
        "memory for events of epochs that are not committed yet, of all queries",
        least=1,
        most=MAX_GROUP_BYTES,
    )
    staged_ttl_s: float = option(
        3600.0, "how long an epoch that is not added to waits to be committed", above=0
    )
    page_cache_bytes: int = option(
        64 * MIB, "memory for events on their way to subscribers", least=MIB
    )

    def __post_init__(self) -> None:
        check_options(self)
