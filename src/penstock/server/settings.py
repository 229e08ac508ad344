"""Everything a server is told: the options of each room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.broker.options import BrokerOptions
from penstock.gateway.options import (
    ControlOptions,
    JsonOptions,
    LineOptions,
    MazeOptions,
    NativeOptions,
)
from penstock.log import LogOptions, TopicOptions
from penstock.server.options import ListenOptions, ServerOptions


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
    control: ControlOptions = field(default_factory=ControlOptions)
    broker: BrokerOptions = field(default_factory=BrokerOptions)
    log: LogOptions = field(default_factory=LogOptions)
    topics: TopicOptions = field(default_factory=TopicOptions)
    origins: Mapping[str, str] = field(default_factory=dict)
