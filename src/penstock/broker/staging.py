"""Events that wait in memory until the epoch they belong to is committed.

A query writes in epochs; an epoch has parts, one for each try of a task; a part comes
in pieces, numbered from 0 on. A piece that is there may come again and changes nothing:
so a writer that lost a connection repeats what it is not sure of, and what was on its
way in the lost one does no harm. Which tries count is said when the epoch is committed;
all others are forgotten then. The user who stages first is known as long as anything is
staged.

Crash promise: none. After a restart nothing is staged, and a writer that commits is
told so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from penstock.broker.log_throttle import LogThrottle
from penstock.errors import InvalidOption, LimitReached, MissingStage
from penstock.log import Batch

logger = logging.getLogger(__name__)

# What a piece costs besides its events, so that empty ones are bounded too.
PIECE_BYTES = 512

# Partition and attempt.
PartKey = tuple[int, int]


class StagedPiece:
    """Some events of a part: a whole frame, or None if there are none.

    ``gate``: what their payloads were checked by.
    """

    __slots__ = ("batch", "gate")

    def __init__(self, batch: Batch | None, gate: object = None) -> None:
        self.batch = batch
        self.gate = gate

    @property
    def size(self) -> int:
        return PIECE_BYTES + (0 if self.batch is None else self.batch.header.length)

    def same(self, other: StagedPiece) -> bool:
        """Whether both are the same events, whenever they were staged."""
        mine, theirs = self.batch, other.batch
        if mine is None or theirs is None:
            return mine is theirs
        return mine.topic == theirs.topic and bytes(mine.body) == bytes(theirs.body)


class StagedEpoch:
    """What there is of one epoch."""

    __slots__ = ("held", "parts", "touched_s")

    def __init__(self) -> None:
        self.parts: dict[PartKey, list[StagedPiece]] = {}
        self.touched_s = 0.0
        self.held = False
        """Whether its commit is under way: it may still be taken back."""

    @property
    def size(self) -> int:
        return sum(piece.size for part in self.parts.values() for piece in part)


class Staging:
    def __init__(self, max_bytes: int, ttl_s: float) -> None:
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._queries: dict[str, dict[int, StagedEpoch]] = {}
        self._owners: dict[str, str] = {}
        self.bytes = 0

    def put(
        self,
        query: str,
        epoch: int,
        part: PartKey,
        number: int,
        piece: StagedPiece,
        now_s: float,
        owner: str = "",
    ) -> None:
        """Add a piece to a part, unless it is there already.

        ``owner``: whose query it is now, if it has no owner.

        Raises MissingStage if one before it is not there, LimitReached, and
        InvalidOption if another one has its number.
        """
        found = self._queries.get(query, {}).get(epoch) or StagedEpoch()
        known = found.parts.get(part, [])
        if number > len(known):
            raise MissingStage(query, epoch, *part)
        if number < len(known):
            if not known[number].same(piece):
                raise InvalidOption("attempt", part[1], "one that no other try has")
        elif self.bytes + piece.size > self._max_bytes:
            raise LimitReached("bytes staged", self._max_bytes, "max_staged_bytes")
        else:
            self.bytes += piece.size
            known.append(piece)
        found.parts[part] = known
        found.touched_s = now_s
        self._queries.setdefault(query, {})[epoch] = found
        if owner:
            self._owners.setdefault(query, owner)

    def pieces(self, query: str, epoch: int, part: PartKey) -> list[StagedPiece]:
        """All pieces of a part; raises MissingStage."""
        found = self.get(query, epoch)
        if found is None or part not in found.parts:
            raise MissingStage(query, epoch, *part)
        return found.parts[part]

    def owner(self, query: str) -> str:
        """The user who staged first of what is staged; empty if there is none."""
        return self._owners.get(query, "")

    def get(self, query: str, epoch: int) -> StagedEpoch | None:
        return self._queries.get(query, {}).get(epoch)

    def of_query(self, query: str) -> dict[int, StagedEpoch]:
        """What is staged of a query, by epoch."""
        return self._queries.get(query, {})

    def queries(self) -> Iterator[str]:
        return iter(self._queries)

    def hold(self, query: str, epoch: int, *, held: bool) -> None:
        """Keep an epoch while its commit is under way, or no longer."""
        if (found := self.get(query, epoch)) is not None:
            found.held = held

    def drop(self, query: str, epoch: int) -> int:
        """Forget an epoch unless its commit is under way; bytes set free."""
        found = self.get(query, epoch)
        if found is None or found.held:
            return 0
        return self._remove(query, epoch)

    def drop_until(self, query: str, epoch: int) -> None:
        """Forget this epoch and those before it, as they are committed for good."""
        for one in [one for one in self.of_query(query) if one <= epoch]:
            self._remove(query, one)

    def expire(self, now_s: float, throttle: LogThrottle) -> None:
        """Forget epochs that no writer has added to for long."""
        old = [
            (query, epoch)
            for query, epochs in self._queries.items()
            for epoch, one in epochs.items()
            if not one.held and one.touched_s + self._ttl_s <= now_s
        ]
        for query, epoch in old:
            size = self._remove(query, epoch)
            throttle.log(
                logger,
                logging.WARNING,
                "epoch %s of %s was never committed: %s staged bytes are dropped",
                *(epoch, query, size),
                about=query,
                extra={"action": "stage_expired", "query": query, "epoch": epoch},
            )

    def _remove(self, query: str, epoch: int) -> int:
        epochs = self._queries[query]
        size = epochs.pop(epoch).size
        if not epochs:
            del self._queries[query]
            self._owners.pop(query, None)
        self.bytes -= size
        return size
