"""What the maze knows and must not forget: the graph, and the number expected next.

Every event that was processed is in the topic, in the order it was processed in, so
the topic is the journal of this state. A snapshot says up to which offset it holds it,
and ``catch_up`` applies the rest. An event applied twice does no harm as long as all
behind it are applied again as well: a snapshot may know more than its offset says,
never less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from penstock.delivery.kept import Kept
from penstock.gateway.maze.followers import Followers, Graph
from penstock.log import Batch
from penstock.wire.maze import FOLLOW, UNFOLLOW, MazeRow, parse

_VERSION = 1


class _Snapshot(msgspec.Struct, array_like=True, frozen=True):
    version: int
    expected: int
    applied: int
    graph: Graph
    topic_id: int = 0


class MazeState(Kept):
    """An owner of the log, to be given to it when it is opened.

    ``applied`` is the offset in the topic up to which the state holds its events.
    """

    kind = 261

    def __init__(self) -> None:
        self.followers = Followers()
        self.expected = 1
        self.applied = 0
        self.topic_id: Callable[[], int] = _no_topic
        """The number of the topic as it is now; 0 if there is none."""
        self._applied_topic_id = 0
        """Which topic ``applied`` is about."""
        # Where the topic is on disk for certain, from before this start.
        self._opened_at = 0

    def restore(self, snapshot: bytes) -> None:
        kept = msgspec.msgpack.decode(snapshot, type=_Snapshot)
        self.followers = Followers(kept.graph)
        self.expected = kept.expected
        self.applied = self._opened_at = kept.applied
        self._applied_topic_id = kept.topic_id

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode(
            _Snapshot(
                _VERSION,
                self.expected,
                self.applied,
                self.followers.graph,
                self._applied_topic_id,
            )
        )

    def taken_back(self) -> None:
        """Offsets are given again: know of none until the next events are published.

        The state keeps the effect of the events that were lost: their notifications
        have gone out.
        """
        self.applied = self._opened_at

    def belongs_to(self, topic_id: Callable[[], int]) -> None:
        """Say which topic the events are in; another one is applied from its start."""
        self.topic_id = topic_id
        if topic_id() != self._applied_topic_id or not topic_id():
            self.applied = self._opened_at = 0
        self._applied_topic_id = topic_id()

    def published(self, end: int) -> None:
        """All events in front of ``end`` are in the state."""
        self.applied = end
        self._applied_topic_id = self.topic_id()

    def catch_up(self, batches: Iterable[Batch]) -> None:
        """Apply the events of the topic that the snapshot does not hold."""
        for batch in batches:
            # What is no event is of another publisher, and is no matter of ours.
            for row in parse(batch.since(self.applied).payloads()).rows:
                self._apply(row)
            self.applied = max(self.applied, batch.end_offset)
        self._opened_at = self.applied

    def restart(self) -> None:
        """Forget everything: a source has started afresh."""
        self.followers.clear()
        self.expected = 1

    def _apply(self, row: MazeRow) -> None:
        number, kind, one, other = row
        if number == 1:
            self.restart()
        elif number < self.expected:
            return
        self.expected = number + 1
        if kind == FOLLOW:
            self.followers.follow(one, other)
        elif kind == UNFOLLOW:
            self.followers.unfollow(one, other)


def _no_topic() -> int:
    return 0
