"""The log of a simulated broker, which tells the simulation what it does."""

from __future__ import annotations

from typing import Protocol

from penstock.errors import WriteFailed
from penstock.log import Appended, Batch, Columns, GroupCommit, Log, TopicOptions
from penstock.log.commit import Commit


class Watch(Protocol):
    def noted_append(self, name: str, events: Columns, appended: Appended) -> None: ...
    def noted_begin(self, commit: GroupCommit) -> None: ...
    def noted_end(self, commit: GroupCommit) -> None: ...


class Opening:
    """Watches a broker that is opened: what it stores was never asked for."""

    def __init__(self, attempted: dict[str, set[bytes]]) -> None:
        self._attempted = attempted

    def noted_append(self, name: str, events: Columns, appended: Appended) -> None:
        self._attempted.setdefault(name, set()).update(events.payloads)

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
        self.watch.noted_append(name, events, appended)
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
