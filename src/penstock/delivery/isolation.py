"""Events that may kill the consumer that gets them, sent one at a time.

Theory. A try is *lost* when its consumer goes away, or the process ends, before it has
said how it went. It is not known then which of the events in flight was to blame: the
one that eats all memory looks like its neighbours. If all of them were sent together
again, all would be lost together again, and at the end of their tries one poisonous
event would have taken a whole window into the dead letters.

Rule. An event whose last two tries were lost is a *suspect*. (One is enough where
there are only two tries: the second is the last.) While one suspect of a subscription
is in flight no other suspect of it is sent; events that are no suspects go on. So
whatever happens to a suspect happens to it alone: the innocent ones are settled one by
one, and the poisonous one loses its tries and becomes a dead letter. A suspect that
fails in another way is none any more: its consumer lived to tell.

Where events have to stay in order (``Policy.in_order``) fresh events wait while there
is a suspect, and so do those behind the one that is out.

The rule holds where losses are counted (``Policy.counts_losses``). It needs no records:
which events are suspects follows from the failures, which are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappush

from penstock.delivery.fresh import Rank
from penstock.delivery.owed import Owed
from penstock.delivery.states import ALONE, HELD, QUEUED, READY, SUSPECT, OwedState
from penstock.model.failure import LOST, Failure
from penstock.model.policy import Policy

# Once may be chance: a deployment, a lost connection.
LOSSES = 2
_NOTHING: list[Rank] = []


def is_suspect(policy: Policy, failures: Sequence[Failure]) -> bool:
    """Whether an event with these failures is to be sent alone."""
    if not policy.counts_losses or policy.tries is None:
        return False
    enough = max(min(LOSSES, policy.tries - 1), 1)
    last = failures[-enough:]
    return len(last) == enough and all(one.kind == LOST for one in last)


class SendAgain:
    """The events to be sent again, by rank: READY ones, and suspects apart.

    What is in here may have moved on meanwhile: a reader looks at its state.
    """

    __slots__ = ("_ready", "_suspects", "alone")

    def __init__(self) -> None:
        self._ready: list[Rank] = []
        self._suspects: list[Rank] = []
        self.alone: int | None = None
        """The offset of the suspect that is in flight."""

    def moved(self, one: Owed, before: OwedState) -> None:
        """An event has taken a step of the table."""
        if before is ALONE:
            self.alone = None
        if one.state is READY:
            heappush(self._ready, (-one.level, one.offset))
        elif one.state is SUSPECT:
            heappush(self._suspects, (-one.level, one.offset))
        elif one.state is ALONE:
            self.alone = one.offset

    def line_up(self, events: Iterable[Owed]) -> None:
        """Begin anew with these."""
        self.clear()
        for one in events:
            if one.state in QUEUED or one.state is ALONE:
                self.moved(one, HELD)

    def clear(self) -> None:
        """Nothing is owed any more."""
        self._ready, self._suspects, self.alone = [], [], None

    @property
    def waiting(self) -> bool:
        """Whether anything is to be sent again."""
        return bool(self._ready or self._suspects)

    def isolating(self) -> bool:
        """Whether a suspect waits, or is out."""
        return bool(self._suspects) or self.alone is not None

    def first(self, *, in_order: bool) -> list[Rank]:
        """The heap whose first event goes next; it may be empty.

        ``in_order``: nothing overtakes a suspect that is out.
        """
        ready = self._ready
        suspects = _NOTHING if self.alone is not None else self._suspects
        if suspects and (not ready or suspects[0] < ready[0]):
            return suspects
        if in_order and ready and self.alone is not None and self.alone < ready[0][1]:
            return _NOTHING
        return ready
