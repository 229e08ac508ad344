"""Events that may kill whoever gets them, sent one at a time.

Theory. A try is *lost* when its consumer goes away, or the process ends, before it has
said how it went. Nobody knows then which of the events in flight was to blame: the one
that eats all memory looks like its neighbours. If all of them were sent together again,
all would be lost together again, and at the end of their tries one poisonous event
would have taken a whole window into the dead letters.

Rule. An event whose last two tries were lost is a *suspect*. (One is enough where
there are only two tries: the second is the last.) While one suspect of a subscription
is in flight no other suspect of it is sent; events that are no suspects go on. So
whatever happens to a suspect happens to it alone: the innocent ones are settled one by
one, and the poisonous one loses its tries and becomes a dead letter. A suspect that
fails in another way is none any more: its consumer lived to tell.

Where events have to stay in order (``Policy.in_order``) fresh events wait while there
is a suspect, and so do those behind the one that is out.

The rule holds where losses are counted (``Policy.counts_losses``). It needs no records:
who is a suspect follows from the failures, which are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush

from penstock.model.failure import LOST, Failure
from penstock.model.policy import Policy

# Once may be chance: a deployment, a lost connection.
LOSSES = 2
# (-level, offset): what is to go first is the smallest.
Place = tuple[int, int]

_NOBODY: list[Place] = []


def is_suspect(policy: Policy, failures: Sequence[Failure]) -> bool:
    """Whether an event with these failures is to be sent alone."""
    if not policy.counts_losses or policy.tries is None:
        return False
    enough = max(min(LOSSES, policy.tries - 1), 1)
    last = failures[-enough:]
    return len(last) == enough and all(one.kind == LOST for one in last)


class Quarantine:
    """The suspects of one subscription: who they are, who waits, who is out."""

    __slots__ = ("_suspects", "_waiting", "alone")

    def __init__(self) -> None:
        self._suspects: set[int] = set()
        self._waiting: list[Place] = []
        self.alone: int | None = None
        """The suspect that is in flight."""

    def __contains__(self, offset: int) -> bool:
        return offset in self._suspects

    @property
    def queue(self) -> list[Place]:
        """A heap of those that may go now, one at a time: empty while one is out."""
        return _NOBODY if self.alone is not None else self._waiting

    def __bool__(self) -> bool:
        """Whether any suspect waits, or is out."""
        return bool(self._waiting) or self.alone is not None

    def precedes(self, place: Place) -> bool:
        """Whether the suspect that is out comes before this place."""
        return self.alone is not None and self.alone < place[1]

    def judge(
        self, offset: int, policy: Policy, failures: Sequence[Failure] | None
    ) -> None:
        """Decide anew on an event that is not in flight."""
        self.discard(offset)
        if failures and is_suspect(policy, failures):
            self._suspects.add(offset)

    def wait(self, place: Place) -> None:
        """Let a suspect wait for its turn."""
        heappush(self._waiting, place)

    def discard(self, offset: int) -> None:
        """An event is no suspect, or not in flight any more."""
        self._suspects.discard(offset)
        if self.alone == offset:
            self.alone = None

    def empty(self) -> None:
        """Nobody waits; whoever is out stays out."""
        self._waiting = []

    def clear(self) -> None:
        """Nothing is owed any more."""
        self._suspects.clear()
        self._waiting, self.alone = [], None
