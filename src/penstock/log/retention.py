"""Which events a topic no longer keeps: a decision, carried out by housekeeping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.log.options import TopicOptions


class SegmentFacts(NamedTuple):
    end_offset: int
    length: int
    max_timestamp_ms: float


def new_start(
    sealed: Sequence[SegmentFacts],
    active_length: int,
    options: TopicOptions,
    now_ms: int,
) -> int | None:
    """Behind the sealed segments that have to go, oldest first; None: all stay."""
    size = active_length + sum(facts.length for facts in sealed)
    start = None
    for facts in sealed:
        if not (_too_old(facts, options, now_ms) or _too_large(size, options)):
            break
        start = facts.end_offset
        size -= facts.length
    return start


def _too_old(facts: SegmentFacts, options: TopicOptions, now_ms: int) -> bool:
    age_s = options.retention_age_s
    return age_s is not None and facts.max_timestamp_ms < now_ms - age_s * 1000


def _too_large(size: int, options: TopicOptions) -> bool:
    return options.retention_bytes is not None and size > options.retention_bytes
