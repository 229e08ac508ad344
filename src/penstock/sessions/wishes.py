"""What a client wishes: topics to hear of, and a last message."""

from __future__ import annotations

import msgspec

from penstock.model.topic_filter import shared

# A will that cannot be stored now is tried again after this time.
WILL_RETRY_S = 1.0


class Wish(msgspec.Struct, array_like=True, frozen=True):
    """One subscription of a client, as MQTT has it."""

    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0
    """0: none."""

    @property
    def share(self) -> tuple[str, str] | None:
        """Group and filter, if it is shared with others."""
        return shared(self.filter)

    @property
    def plain(self) -> str:
        """The filter without the words of sharing."""
        found = shared(self.filter)
        return self.filter if found is None else found[1]


class Will(msgspec.Struct, array_like=True, frozen=True):
    """A message to be published when its client has gone without a word."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    headers: dict[str, str]
    delay_s: float = 0.0
    lifetime_s: float | None = None
    """How long it counts from the moment it is published."""
    priority: int = 0
