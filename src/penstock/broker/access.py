"""What a user may do: actions over topic filters.

A user without rules may do everything. One with rules may do what they say and nothing
else: ``publish`` to topics, ``subscribe`` to them, or ``read`` what is stored in them.
Whoever may subscribe may read: a subscription can begin at the first event. With rules
nobody administers: deletes topics, moves subscriptions, works on dead letters.

Gateways get the grants of a user with the login (``Gateway.grants``) and ask them
before they call the broker, which knows nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from penstock.broker.quota import NONE, Quota
from penstock.errors import NotAllowed
from penstock.model.topic_filter import matches

Action = Literal["publish", "subscribe", "read"]
ACTIONS: tuple[Action, ...] = get_args(Action)

# In front of group and filter of a shared subscription.
SHARED = "$share/"
# Topics whose answer is remembered: publishers ask again and again, per message.
MAX_KNOWN = 1024

_PUBLISH: tuple[Action, ...] = ("publish",)
_SUBSCRIBE: tuple[Action, ...] = ("subscribe",)
_READ: tuple[Action, ...] = ("read", "subscribe")


class Rule(NamedTuple):
    """One thing that is allowed: an action, on all topics that the filter matches."""

    action: Action
    filter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What ``user`` may do; ``rules`` of None is everything, no rules is nothing."""

    user: str = ""
    rules: tuple[Rule, ...] | None = None
    quota: Quota = NONE
    """What they may have at most, as far as it is said of this user."""
    _known: dict[str, bool] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def may_publish(self, topic: str) -> bool:
        if self.rules is None:
            return True
        known = self._known.get(topic)
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            known = self._known[topic] = self._allow(_PUBLISH, topic)
        return known

    def may_read(self, topic: str) -> bool:
        """Whether the events that are stored in a topic may be looked at."""
        return self._allow(_READ, topic)

    def may_see(self, topic: str) -> bool:
        """Whether anything may be done there: then one may know what it is like."""
        return self._allow(ACTIONS, topic)

    def may_subscribe(self, wanted: str) -> bool:
        """Whether one granted filter covers the topic, or the filter, that is wanted.

        Of ``$share/group/filter`` the filter counts.
        """
        if wanted.startswith(SHARED):
            wanted = wanted.removeprefix(SHARED).partition("/")[2]
        return self.rules is None or any(
            covers(rule.filter, wanted)
            for rule in self.rules
            if rule.action in _SUBSCRIBE
        )

    def check_publish(self, topic: str) -> None:
        """Raises NotAllowed."""
        if not self.may_publish(topic):
            raise NotAllowed(self.user, "publish to", topic)

    def check_subscribe(self, wanted: str) -> None:
        """Raises NotAllowed."""
        if not self.may_subscribe(wanted):
            raise NotAllowed(self.user, "subscribe to", wanted)

    def check_read(self, topic: str) -> None:
        """Raises NotAllowed."""
        if not self.may_read(topic):
            raise NotAllowed(self.user, "read", topic)

    def check_see(self, topic: str) -> None:
        """Raises NotAllowed."""
        if not self.may_see(topic):
            raise NotAllowed(self.user, "see", topic)

    def _allow(self, actions: tuple[Action, ...], topic: str) -> bool:
        return self.rules is None or any(
            rule.action in actions and matches(rule.filter, topic)
            for rule in self.rules
        )


EVERYTHING = Grants()
"""Of whoever needs no login, and of users without rules."""


def covers(granted: str, wanted: str) -> bool:
    """Whether every topic that ``wanted`` matches is matched by ``granted``.

    A topic is a filter that matches itself; so is one with a wildcard in its name.
    """
    # A topic has a level at least, so both mean the same.
    theirs = ["+", "#"] if wanted == "#" else wanted.split("/")
    ours = granted.split("/")
    if ours[0] in ("+", "#") and wanted.startswith("$"):
        return False  # MQTT-4.7.2-1
    for level, one in enumerate(ours):
        if one == "#":
            return True  # also of the level above: MQTT-4.7.1-2
        if level == len(theirs) or theirs[level] == "#":
            return False
        if one not in ("+", theirs[level]):
            return False
    return len(ours) == len(theirs)
