"""The tree of settings: a table for each options class, a key for each field."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, get_type_hints

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
from penstock.model.option import limit_of
from penstock.server.options import ListenOptions, ServerOptions, TlsOptions
from penstock.server.settings import LOG_HELP
from penstock.tracing.options import TracingOptions

TABLES = MappingProxyType(
    {
        "server": ServerOptions,
        "listen": ListenOptions,
        "line": LineOptions,
        "json": JsonOptions,
        "maze": MazeOptions,
        "native": NativeOptions,
        "mqtt": MqttOptions,
        "tls": TlsOptions,
        "control": ControlOptions,
        "http": HttpOptions,
        "tracing": TracingOptions,
        "broker": BrokerOptions,
        "quota": Quota,
        "log": LogOptions,
        "topics": TopicOptions,
    }
)

# Keys of the version before, which go on working until the next one, with a hint.
RENAMED = MappingProxyType({"broker.max_card_bytes": "broker.max_metadata_bytes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key of one table. ``kind`` is its type as annotated."""

    table: str
    name: str
    kind: Any
    default: object
    help: str
    limit: str

    @property
    def key(self) -> str:
        return f"{self.table}.{self.name}"

    @property
    def is_size(self) -> bool:
        return self.name.endswith(("_bytes", "bytes_per_s"))

    @property
    def variable(self) -> str:
        return variable(self.key)


def variable(key: str) -> str:
    """The variable of the environment that has a setting."""
    return f"PENSTOCK_{key.replace('.', '_')}".upper()


def nearest(name: str, known: Iterable[str]) -> str:
    """The name most like this one, or nothing."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, 0.6)), "")


def nearest_key(table: str, name: str) -> str:
    """The key that was probably meant by one that is not there."""
    for setting in SETTINGS.values():
        if setting.name in (name, f"{table}_{name}"):
            return setting.key
    beside = [other.name for other in SETTINGS.values() if other.table == table]
    if found := nearest(name, beside):
        return f"{table}.{found}"
    by_name = {setting.name: setting.key for setting in SETTINGS.values()}
    return nearest(f"{table}.{name}", SETTINGS) or by_name.get(
        nearest(name, by_name), ""
    )


def _settings() -> Iterator[Setting]:
    for table, kind in TABLES.items():
        types = get_type_hints(kind)
        for one in fields(kind):
            key = f"{table}.{one.name}"
            yield Setting(
                table=table,
                name=one.name,
                kind=types[one.name],
                default=one.default,
                help=one.metadata.get("help") or LOG_HELP.get(key, ""),
                limit=limit_of(one.metadata),
            )


SETTINGS = MappingProxyType({setting.key: setting for setting in _settings()})
