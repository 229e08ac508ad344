"""What follows a failed try: a pure function of the policy and the tries so far."""

from __future__ import annotations

from dataclasses import dataclass
from struct import pack
from zlib import crc32

from penstock.model.policy import Exhausted, Policy


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Send the event again, not before ``at_s``."""

    at_s: float


@dataclass(frozen=True, slots=True)
class NoMoreTries:
    """The last try has failed: do what the policy says."""

    then: Exhausted


def after_failure(
    policy: Policy, tries: int, now_s: float, offset: int
) -> TryAgain | NoMoreTries:
    """The decision after ``tries`` failed tries of the event at ``offset``."""
    if policy.tries is not None and tries >= policy.tries:
        return NoMoreTries(policy.exhausted)
    if not policy.backoff_s:
        return TryAgain(now_s)
    # The exponent is bounded so that a large number of tries does not overflow.
    growth = policy.backoff_factor ** min(tries - 1, 64)
    pause_s = min(policy.backoff_s * growth, policy.max_backoff_s)
    return TryAgain(now_s + pause_s * (1 - policy.jitter * _spread(offset, tries)))


def _spread(offset: int, tries: int) -> float:
    """A number from 0 to below 1: always the same, and another for every event and
    try. A hash instead of chance keeps the broker deterministic."""
    return crc32(pack("<QQ", offset, tries)) / (1 << 32)
