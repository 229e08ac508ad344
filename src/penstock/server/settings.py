"""Everything a server is told: the options of each room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.access.quota import Quota
from penstock.broker.options import BrokerOptions
from penstock.gateway.options import (
    ControlOptions,
    JsonOptions,
    LineOptions,
    MazeOptions,
    MqttOptions,
    NativeOptions,
)
from penstock.http.options import HttpOptions
from penstock.log import LogOptions, TopicOptions
from penstock.server.options import ListenOptions, ServerOptions, TlsOptions
from penstock.tracing.options import TracingOptions

# The log describes its options in docs/operations.md; this is the short form.
LOG_HELP = {
    "log.journal_file_bytes": "a journal file is ended when it would grow larger",
    "log.checkpoint_bytes": (
        "journal since the last checkpoint that calls for one; "
        "bounds what a start replays"
    ),
    "log.group_bytes": (
        "a commit is due when this much waits; twice as much is refused"
    ),
    "log.write_out_bytes": (
        "confirmed events kept in memory before they go to segments"
    ),
    "log.tail_cache_bytes": "recent events kept in memory for readers after that",
    "log.direct_write_bytes": (
        "what a segment gets in one write goes past the page cache if it is as much "
        "as this; `off`: never"
    ),
    "log.start_check_bytes": "part of the segments verified on start",
    "log.max_event_bytes": "largest payload of an event",
    "log.max_topics": "how many topics the log may hold",
    "log.group": (
        "a group of this machine whose members may read the data directory; "
        "`off`: its owner alone"
    ),
    "topics.durability": (
        "when an event is confirmed: `sync` when it is on disk, "
        "`os` when the operating system has it"
    ),
    "topics.retention_age_s": "sealed segments go when all their events are older",
    "topics.retention_bytes": (
        "the oldest sealed segments go when the topic is larger"
    ),
    "topics.compact": "whether only the last event of each key is kept",
    "topics.segment_bytes": "a segment is sealed when it would grow larger",
    "topics.segment_age_s": "a segment is sealed when it is older",
    "topics.expires_s": (
        "events that say nothing of it expire this long after they were published"
    ),
    "topics.dead_letter_expired": (
        "whether what has expired undelivered becomes a dead letter"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of each room, all with defaults.

    ``topics`` are the options of new topics. ``origins`` says of each key, such as
    ``line.window``, where its value came from: ``default``, ``file <path>``,
    ``environment <NAME>`` or ``flag <--name>``; it is for people only.
    """

    server: ServerOptions = field(default_factory=ServerOptions)
    listen: ListenOptions = field(default_factory=ListenOptions)
    line: LineOptions = field(default_factory=LineOptions)
    json: JsonOptions = field(default_factory=JsonOptions)
    maze: MazeOptions = field(default_factory=MazeOptions)
    native: NativeOptions = field(default_factory=NativeOptions)
    mqtt: MqttOptions = field(default_factory=MqttOptions)
    tls: TlsOptions = field(default_factory=TlsOptions)
    control: ControlOptions = field(default_factory=ControlOptions)
    http: HttpOptions = field(default_factory=HttpOptions)
    tracing: TracingOptions = field(default_factory=TracingOptions)
    broker: BrokerOptions = field(default_factory=BrokerOptions)
    quota: Quota = field(default_factory=Quota)
    log: LogOptions = field(default_factory=LogOptions)
    topics: TopicOptions = field(default_factory=TopicOptions)
    origins: Mapping[str, str] = field(default_factory=dict)
