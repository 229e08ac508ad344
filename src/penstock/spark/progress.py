"""Telling the broker where a query stands, so that its lag is seen like any other's.

What was handled is where the next batch begins: Spark's own word for it comes one batch
late, and not at all while nothing happens.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from penstock.errors import (
    InvalidName,
    LoginRefused,
    NotMoved,
    ReservedName,
    ServerRefused,
    Unreachable,
)
from penstock.table.place import Place

logger = logging.getLogger(__name__)

# A report is synced to disk: a query in a hurry makes one that often.
INTERVAL_S = 0.5
# A broker that files are read without is looked for again after this.
AWAY_S = 5.0
# Somebody has to choose another name.
FATAL = (NotMoved, InvalidName, ReservedName, LoginRefused)


class ProgressReporter:
    """Reports under a subscriber's name; an empty one reports nothing."""

    def __init__(self, name: str, *, needs_broker: bool) -> None:
        self._name = name
        self._needs_broker = needs_broker
        self._said: dict[str, int] = {}
        self._due_s = 0.0
        self._away_s = 0.0

    def report(self, place: Place, topics: Mapping[str, int], *, now: bool) -> None:
        """Say where the query stands, if that is new; ``now``: however short ago.

        Raises ServerRefused if the name is not for it.
        """
        news = {t: at for t, at in topics.items() if self._said.get(t) != at}
        now_s = time.monotonic()
        if not self._name or not news or now_s < self._away_s:
            return
        if not now and now_s < self._due_s:
            return
        self._due_s = now_s + INTERVAL_S
        for topic, offset in news.items():
            if not self._told(place, topic, offset):
                self._away_s = now_s + AWAY_S
                return
            self._said[topic] = offset

    def _told(self, place: Place, topic: str, offset: int) -> bool:
        try:
            place.ask(
                "subscriptions.progress",
                subscriber=self._name,
                topic=topic,
                offset=offset,
            )
        except FATAL:
            raise
        except ServerRefused as error:
            logger.warning(
                "progress of %s in %s is not reported: %s",
                self._name,
                topic,
                error,
                extra={"action": "progress_not_reported", "topic": topic},
            )
        except Unreachable:
            if self._needs_broker:
                raise
            return False  # files can be read without their broker
        return True
