"""Lines that make no sense: to the topic for them, and to the dead letters.

Whoever may not publish to that topic does not get there by talking nonsense: then the
dead letter is all there is.
"""

from __future__ import annotations

import logging
from contextlib import suppress

import msgspec

from penstock.access.grants import Grants
from penstock.broker.broker import Broker
from penstock.errors import InvalidPayload, PenstockError
from penstock.gateway.options import JsonOptions
from penstock.log import Columns
from penstock.wire.jsonq import LineRefusal

logger = logging.getLogger(__name__)

_REASONS = {
    LineRefusal.INVALID_JSON: "invalid JSON",
    LineRefusal.UNKNOWN_COMMAND: "unknown command",
}


class RawLetters:
    """Keeps the raw lines of one connection."""

    def __init__(self, broker: Broker, options: JsonOptions) -> None:
        self._broker = broker
        self._topic = options.dead_letter_topic
        self._limit = options.max_line_bytes
        broker.bound(self._topic)

    def add(self, line: bytes, side: str, refusal: LineRefusal, sender: Grants) -> None:
        """Keep a line that could not be understood."""
        self._keep(line, side, _REASONS[refusal], sender)

    def add_overlong(self, side: str, sender: Grants) -> None:
        """Keep the fact of a line that was too long to be kept."""
        self._keep(b"", side, f"line exceeds {self._limit} bytes", sender)

    def _keep(self, line: bytes, side: str, reason: str, sender: Grants) -> None:
        raw = line.rstrip(b"\r\n")
        payload = msgspec.json.encode(raw.decode(errors="replace"))
        headers = {"reason": reason, "gateway": f"json {side}"}
        columns = Columns([payload], self._broker.log.now_ms(), headers=[headers])
        try:
            if sender.may_publish(self._topic):
                # The topic is nobody's; if that is too much, the letter is enough.
                with self._broker.accounts.acting(None), suppress(InvalidPayload):
                    self._broker.publish(self._topic, columns)
            self._broker.dead_letter(gateway=f"json {side}", reason=reason, raw=raw)
        except PenstockError as error:
            # The sender is answered anyway; it knows what it sent.
            self._broker.seldom.log(
                logger,
                logging.ERROR,
                "a line that makes no sense is not kept: %s",
                error,
                extra={"action": "letter_lost"},
            )
