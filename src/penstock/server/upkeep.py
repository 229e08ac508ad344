"""What the log wants done now and then: retention, and a look at old bytes.

The index of chains is filled here too, a little at every turn.
"""

from __future__ import annotations

import logging

from penstock.chains import Chains
from penstock.log import BrokerLog
from penstock.model.moment import is_due

logger = logging.getLogger(__name__)

# Retention is decided in minutes and hours.
MAINTAIN_S = 30.0
# Verified per step: about a millisecond of work.
SCRUB_BYTES = 1 << 20
# Pause between two looks at everything.
SCRUB_PAUSE_S = 24 * 3600.0
# Indexing takes about ten milliseconds; a busy server gives them once a second.
BUSY_TURNS = 10


class Upkeep:
    def __init__(self, log: BrokerLog, chains: Chains | None = None) -> None:
        self._log = log
        self._chains = chains
        self._maintain_at_s = 0.0
        self._scrub_at_s = 0.0
        self._turns = 0
        self._written = log.written
        """The last group at the turn before."""

    def step(self, now_s: float, *, idle: bool) -> None:
        """Do a little; called every second or so. Old bytes are for idle moments."""
        if is_due(self._maintain_at_s, MAINTAIN_S, now_s):
            self._maintain_at_s = now_s + MAINTAIN_S
            if self._log.wants_upkeep:
                self._log.maintain_soon()
        due = idle and is_due(self._scrub_at_s, SCRUB_PAUSE_S, now_s)
        if due and self._log.scrub(SCRUB_BYTES):
            self._scrub_at_s = now_s + SCRUB_PAUSE_S

    def index(self, *, idle: bool) -> None:
        """Index chains; called ten times a second, one busy turn of ten counts.

        So that an idle server catches up fast, and a busy one at all. One that commits
        between all turns is busy, although it may rest whenever it is looked at; and
        many small groups cost less to index when they have been gathered.
        """
        written = self._log.written
        quiet = idle and written == self._written
        self._written = written
        self._turns = 0 if quiet else self._turns + 1
        if self._chains is None or not (quiet or self._turns % BUSY_TURNS == 0):
            return
        try:
            self._chains.step()
        except Exception:
            # A mistake of ours, and the index is worth less than all the rest.
            self._chains = None
            logger.exception(
                "chains are not indexed any more", extra={"action": "chains_failed"}
            )
