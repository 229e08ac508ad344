"""Trying again: what a database that is away, or other writers, ask for."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from penstock.errors import StoreUnreachable

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0


class Away(Exception):
    """Raised by an attempt that may be made again; says why."""


def retried(attempt: Callable[[], T], place: str, retry_s: float) -> T:
    """What the attempt returns, made until it is; raises StoreUnreachable.

    Pauses grow and are spread by chance: writers that met do not meet again.
    """
    begun = time.monotonic()
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return attempt()
        except Away as away:
            left_s = begun + retry_s - time.monotonic()
            if left_s <= 0:
                raise StoreUnreachable(place, retry_s, str(away)) from away
            if pause_s == FIRST_PAUSE_S:
                logger.info("store %s: %s; trying again", place, away, extra=_RETRIED)
        time.sleep(min(pause_s * random.uniform(0.5, 1.0), left_s))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


_RETRIED = {"action": "store_retried"}
