"""How much work a schema of a client may take: steps, and a time to be done by.

Steps are counted, so that the same schema is refused everywhere; the time is for
machines on which steps are slow. The code that works on a schema spends as it goes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from penstock.errors import TooMuchWork

# Of a caller that says nothing: far more than a schema that a person reads.
MAX_STEPS = 2_000_000
# Steps between two looks at the clock.
_LOOK = 100


class Effort:
    """What is left of the steps and of the time."""

    __slots__ = ("_clock", "_look", "_until_s", "left", "most_s", "steps")

    def __init__(
        self,
        steps: int = MAX_STEPS,
        most_s: float = inf,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Without a clock there are only steps."""
        self.steps = self.left = steps
        self.most_s = most_s
        self._clock = clock
        self._until_s = inf if clock is None else clock() + most_s
        self._look = _LOOK

    def spend(self, steps: int = 1) -> None:
        """Raises TooMuchWork if there are not that many left."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork(f"{self.steps} steps", "broker.max_schema_steps")
        self._look -= steps
        if self._look < 0:
            self._look = _LOOK
            if self._clock is not None and self._clock() > self._until_s:
                raise TooMuchWork(f"{self.most_s} s", "broker.max_schema_s")
