"""Settings of the log, all with defaults that work."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from penstock.errors import InvalidOption
from penstock.model.columns import MAX_FRAME_BYTES

Durability = Literal["sync", "os"]

MIB = 1 << 20
# Below this a frame of one small event would not fit.
MIN_FILE_BYTES = 1 << 10
# A group's length has 32 bits; twice this and one more batch must fit.
MAX_GROUP_BYTES = 1 << 30
# Checkpoints hold the options of topics: numbers have 64 bits there.
MAX_TOPIC_BYTES = (1 << 63) - 1


# A hundred years: what is later is never.
MAX_EXPIRES_S = 100 * 365 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOptions:
    """Settings of one topic, stored with it.

    durability: ``sync`` confirms after the disk has it, ``os`` after the operating
        system has it.
    retention_age_s, retention_bytes: sealed segments go when all their events are
        older, or when the topic is larger; None keeps them.
    compact: ``Log.maintain`` keeps the last event of each key only.
    segment_bytes, segment_age_s: a segment is sealed when it would grow larger, or
        when it is older.
    expires_s: events that are published without a time at which they expire do so this
        long after they were accepted; None: never.
    dead_letter_expired: what has expired undelivered becomes a dead letter.
    """

    durability: Durability = "sync"
    retention_age_s: float | None = None
    retention_bytes: int | None = None
    compact: bool = False
    segment_bytes: int = 64 * MIB
    segment_age_s: float | None = None
    expires_s: float | None = None
    dead_letter_expired: bool = False

    @property
    def kept_up(self) -> bool:
        """Whether something is done to the topic now and then, as time goes by."""
        return (
            self.retention_age_s is not None
            or self.retention_bytes is not None
            or self.segment_age_s is not None
            or self.compact
        )

    def __post_init__(self) -> None:
        if self.durability not in ("sync", "os"):
            raise InvalidOption("durability", self.durability, "'sync' or 'os'")
        _at_least("segment_bytes", self.segment_bytes, MIN_FILE_BYTES)
        _positive("retention_age_s", self.retention_age_s)
        _positive("retention_bytes", self.retention_bytes)
        _positive("segment_age_s", self.segment_age_s)
        _positive("expires_s", self.expires_s)
        if self.expires_s is not None and self.expires_s > MAX_EXPIRES_S:
            raise InvalidOption("expires_s", self.expires_s, f"at most {MAX_EXPIRES_S}")
        for name in ("segment_bytes", "retention_bytes"):
            if (value := getattr(self, name) or 0) > MAX_TOPIC_BYTES:
                raise InvalidOption(name, value, f"at most {MAX_TOPIC_BYTES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Settings of a data directory.

    journal_file_bytes: a journal file is ended when it would grow larger.
    checkpoint_bytes: journal written since the last checkpoint that calls for one;
        it bounds what a start after a crash has to replay.
    group_bytes: a commit is due when this much waits; twice as much is refused.
    write_out_bytes: confirmed events kept in memory before they go to segments.
    tail_cache_bytes: recent events kept in memory for readers after that.
    direct_write_bytes: what a segment gets in one write goes past the page cache if it
        is as much as this; None: never.
    start_check_bytes: newest part of the segments verified on start; each counts for
        64 KiB at least.
    max_event_bytes: largest payload of an event.
    max_topics: how many topics there may be.
    group: a group of this machine whose members may read the directory and its files;
        None keeps them for their owner.
    """

    journal_file_bytes: int = 64 * MIB
    checkpoint_bytes: int = 64 * MIB
    group_bytes: int = 8 * MIB
    write_out_bytes: int = 8 * MIB
    tail_cache_bytes: int = 16 * MIB
    direct_write_bytes: int | None = MIB
    start_check_bytes: int = 64 * MIB
    max_event_bytes: int = 64 * MIB
    max_topics: int = 1_000_000
    group: str | None = None

    def __post_init__(self) -> None:
        for name in ("journal_file_bytes", "checkpoint_bytes", "group_bytes"):
            _at_least(name, getattr(self, name), MIN_FILE_BYTES)
        for name in ("write_out_bytes", "tail_cache_bytes", "start_check_bytes"):
            _at_least(name, getattr(self, name), 0)
        if self.direct_write_bytes is not None:
            _at_least("direct_write_bytes", self.direct_write_bytes, 0)
        if self.group_bytes > MAX_GROUP_BYTES:
            limit = f"at most {MAX_GROUP_BYTES}"
            raise InvalidOption("group_bytes", self.group_bytes, limit)
        _at_least("max_topics", self.max_topics, 1)
        _at_least("max_event_bytes", self.max_event_bytes, 1)
        if self.max_event_bytes > MAX_FRAME_BYTES // 2:
            limit = f"at most {MAX_FRAME_BYTES // 2}"
            raise InvalidOption("max_event_bytes", self.max_event_bytes, limit)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidOption(name, value, f"at least {least}")


def _positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < inf:
        raise InvalidOption(name, value, "more than 0, or left out")
