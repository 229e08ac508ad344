"""The log of a simulated broker, which tells the simulation what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from penstock.errors import WriteFailed
from penstock.log import (
    Appended,
    AppendedRows,
    Batch,
    Columns,
    GroupCommit,
    Log,
    TopicOptions,
)
from penstock.log.commit import Commit

# The topic of an event, and the offset it was given.
Place = tuple[str, int]


class Watch(Protocol):
    def noted_append(
        self,
        places: Sequence[Place],
        events: Columns,
        appended: Appended | AppendedRows,
    ) -> None: ...
    def noted_begin(self, commit: GroupCommit) -> None: ...
    def noted_end(self, commit: GroupCommit) -> None: ...


class Opening:
    """Watches a broker that is opened: what it stores was never asked for."""

    def __init__(self, attempted: dict[str, set[bytes]]) -> None:
        self._attempted = attempted

    def noted_append(
        self,
        places: Sequence[Place],
        events: Columns,
        appended: Appended | AppendedRows,
    ) -> None:
        for (name, _), payload in zip(places, events.payloads, strict=True):
            self._attempted.setdefault(name, set()).add(payload)

    def noted_begin(self, commit: GroupCommit) -> None:
        """What is found afterwards counts."""

    def noted_end(self, commit: GroupCommit) -> None:
        """What is found afterwards counts."""


class WatchedLog(Log):
    watch: Watch

    def append(
        self,
        name: str,
        events: Columns | Batch,
        *,
        relaxed: bool = False,
        create: TopicOptions | None = None,
    ) -> Appended:
        appended = super().append(name, events, relaxed=relaxed, create=create)
        assert isinstance(events, Columns)
        first = appended.base_offset
        places = [(name, first + index) for index in range(appended.count)]
        self.watch.noted_append(places, events, appended)
        return appended

    def append_rows(
        self,
        names: Sequence[str],
        events: Columns,
        *,
        relaxed: bool = False,
        create: Mapping[str, TopicOptions] = MappingProxyType({}),
    ) -> AppendedRows:
        appended = super().append_rows(names, events, relaxed=relaxed, create=create)
        places = [*zip(names, appended.offsets, strict=True)]
        self.watch.noted_append(places, events, appended)
        return appended

    def begin_commit(self, *, sync: bool | None = None) -> Commit | None:
        commit = super().begin_commit(sync=sync)
        if commit is not None:
            self.watch.noted_begin(commit)
        return commit

    def end_commit(self, commit: GroupCommit) -> WriteFailed | None:
        error = super().end_commit(commit)
        self.watch.noted_end(commit)
        return error
