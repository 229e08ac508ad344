"""Log lines that others can cause as often as they like, and the log has seldom.

The first is said at once. What follows within a minute is one line at its end: the last
of them, and how many there were. Of one action, those about different things (peers,
topics) are told apart, up to a number of them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

PERIOD_S = 60.0
# Things that an action has lines of their own for; all others share one.
MAX_THINGS = 50
OTHERS = "\0others"


class LogThrottle:
    """``log`` as a logger does; ``tick`` now and then; ``close`` in the end."""

    def __init__(self) -> None:
        self._actions: dict[object, dict[str, _Line]] = {}

    def log(
        self,
        logger: logging.Logger,
        level: int,
        text: str,
        *args: object,
        about: str = "",
        extra: Mapping[str, object],
    ) -> None:
        """Say it, or count it; ``extra`` has the action, and gets ``count``."""
        if not logger.isEnabledFor(level):
            return
        things = self._actions.setdefault(extra["action"], {})
        if about not in things and len(things) >= MAX_THINGS:
            about = OTHERS
        line = things.get(about)
        if line is None:
            line = things[about] = _Line(logger, level)
            logger.log(level, text, *args, extra={**extra, "count": 1})
        else:
            line.count += 1
            line.text, line.args, line.extra = text, args, extra

    def tick(self, now_s: float) -> None:
        """Say what a minute has brought."""
        for action, things in list(self._actions.items()):
            for about, line in list(things.items()):
                if line.goes_on(now_s):
                    continue
                if line.count:
                    line.say()
                    line.since_s = now_s
                else:
                    del things[about]
            if not things:
                del self._actions[action]

    def close(self) -> None:
        """Say what is left."""
        actions, self._actions = self._actions, {}
        for things in actions.values():
            for line in things.values():
                if line.count:
                    line.say()


class _Line:
    """What came since it was said, and the last of it."""

    __slots__ = ("_level", "_logger", "args", "count", "extra", "since_s", "text")

    def __init__(self, logger: logging.Logger, level: int) -> None:
        self._logger = logger
        self._level = level
        self.since_s: float | None = None
        self.count = 0
        self.text = ""
        self.args: tuple[object, ...] = ()
        self.extra: Mapping[str, object] = {}

    def goes_on(self, now_s: float) -> bool:
        """Whether its minute is not over; it begins with the first look at it."""
        if self.since_s is None:
            self.since_s = now_s
        return 0 <= now_s - self.since_s < PERIOD_S

    def say(self) -> None:
        self._logger.log(
            self._level,
            "%s (the last of %d more within a minute)",
            self.text % self.args,
            self.count,
            extra={**self.extra, "count": self.count},
        )
        self.count = 0
