"""What follows a failed try: a pure function of the policy and the tries so far."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.model.policy import Exhausted, Policy


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Send the event again, not before ``at_s``."""

    at_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The last try has failed: do what the policy says."""

    then: Exhausted


def after_failure(policy: Policy, tries: int, now_s: float) -> TryAgain | GiveUp:
    """The decision after ``tries`` failed tries."""
    if policy.tries is not None and tries >= policy.tries:
        return GiveUp(policy.exhausted)
    if not policy.backoff_s:
        return TryAgain(now_s)
    # The exponent is bounded so that a large number of tries does not overflow.
    growth = policy.backoff_factor ** min(tries - 1, 64)
    return TryAgain(now_s + min(policy.backoff_s * growth, policy.max_backoff_s))
