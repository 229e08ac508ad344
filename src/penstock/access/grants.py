"""What a peer may do: actions over topic filters, and whether it administers.

Rules allow to ``publish`` to topics, ``subscribe`` to them, or ``read`` what is stored
in them. A user who may subscribe may read: a subscription can begin at the first event.
A rule to subscribe may name the subscribers it is good for, so that no user takes the
place of another. A user with rules may do what they say and nothing else; one without
rules may publish, subscribe and read everywhere, under any name.

Neither of them administers: deletes topics, changes their schemas, moves subscriptions,
works on dead letters. That is a role of its own (``admin``), and who has it may do
everything.

Gateways get the grants of a user with the login (``Gateway.grants``) and ask them
before they call the broker, which knows no users.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from penstock.access.quota import NONE, Quota
from penstock.errors import NotAllowed
from penstock.model.topic_filter import matches

GrantedAction = Literal["publish", "subscribe", "read"]
ACTIONS: tuple[GrantedAction, ...] = get_args(GrantedAction)

# At the end of a subscriber's name in a rule: anything may follow.
ANY = "*"
# In front of group and filter of a shared subscription.
SHARED = "$share/"
# Topics whose answer is remembered: publishers ask again and again, per message.
MAX_KNOWN = 1024

_PUBLISH: tuple[GrantedAction, ...] = ("publish",)
_SUBSCRIBE: tuple[GrantedAction, ...] = ("subscribe",)
_READ: tuple[GrantedAction, ...] = ("read", "subscribe")


class Rule(NamedTuple):
    """One thing that is allowed: an action, on all topics that the filter matches.

    ``subscribers`` are the names that one may subscribe under, each perhaps with a last
    ``*``; None is any name.
    """

    action: GrantedAction
    filter: str
    subscribers: tuple[str, ...] | None = None

    def names(self, subscriber: str | None) -> bool:
        """Whether it is good for a subscriber; None is one without a name."""
        if subscriber is None or self.subscribers is None:
            return True
        return any(
            subscriber.startswith(one[:-1]) if one.endswith(ANY) else subscriber == one
            for one in self.subscribers
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What ``user`` may do; ``rules`` of None is all but to administer.

    No rules at all is nothing. A user who is ``admin`` may do everything, whatever the
    rules say. ``token`` is the name of the token that the peer came with.
    """

    user: str = ""
    rules: tuple[Rule, ...] | None = None
    admin: bool = False
    token: str = ""
    by: object = field(default=None, compare=False, repr=False)
    """The token that let them in, to be compared with what counts later."""
    quota: Quota = NONE
    """What they may have at most, as far as it is said of this user."""
    _known: dict[str, bool] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def may_publish(self, topic: str) -> bool:
        if self.rules is None or self.admin:
            return True
        known = self._known.get(topic)
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            known = self._known[topic] = self._allow(_PUBLISH, topic)
        return known

    def may_publish_all(self, topics: Iterable[str]) -> bool:
        """Whether the user may publish to each of these."""
        return self.rules is None or self.admin or all(map(self.may_publish, topics))

    def may_read(self, topic: str) -> bool:
        """Whether the events that are stored in a topic may be looked at."""
        return self._allow(_READ, topic)

    def may_see(self, topic: str) -> bool:
        """Whether anything may be done there: then one may know what it is like."""
        return self._allow(ACTIONS, topic)

    def may_subscribe(self, wanted: str, subscriber: str | None = None) -> bool:
        """Whether one granted filter covers the topic, or the filter, that is wanted.

        Under the name of ``subscriber``, if it has one that outlives its connection. Of
        ``$share/group/filter`` the filter counts, and the group is the subscriber.
        """
        if self.rules is None or self.admin:
            return True
        if wanted.startswith(SHARED):
            subscriber, _, wanted = wanted.removeprefix(SHARED).partition("/")
        return any(
            covers(rule.filter, wanted) and rule.names(subscriber)
            for rule in self.rules
            if rule.action in _SUBSCRIBE
        )

    def may_keep(self, subscriber: str | None) -> bool:
        """Whether something of theirs may outlive its connection under that name.

        One that a rule to subscribe is good for, or their own; None is a name that the
        broker has made up, which no other user can want.
        """
        return (
            self.rules is None
            or self.admin
            or subscriber in (None, self.user)
            or any(
                rule.names(subscriber)
                for rule in self.rules
                if rule.action in _SUBSCRIBE
            )
        )

    def check_publish(self, topic: str) -> None:
        """Raises NotAllowed."""
        if not self.may_publish(topic):
            raise NotAllowed(self.user, "publish to", topic)

    def check_subscribe(self, wanted: str, subscriber: str | None = None) -> None:
        """Raises NotAllowed, which names the rule that is missing."""
        if self.may_subscribe(wanted, subscriber):
            return
        if subscriber is None or not self.may_subscribe(wanted):
            raise NotAllowed(self.user, "subscribe to", wanted)
        raise NotAllowed(
            self.user,
            f"subscribe as {subscriber[:80]} to",
            wanted,
            needs=f"the rule '{self.user} may subscribe {wanted} as {subscriber}'",
        )

    def check_read(self, topic: str) -> None:
        """Raises NotAllowed."""
        if not self.may_read(topic):
            raise NotAllowed(self.user, "read", topic)

    def check_see(self, topic: str) -> None:
        """Raises NotAllowed."""
        if not self.may_see(topic):
            raise NotAllowed(self.user, "see", topic)

    def _allow(self, actions: tuple[GrantedAction, ...], topic: str) -> bool:
        return (
            self.rules is None
            or self.admin
            or any(
                rule.action in actions and matches(rule.filter, topic)
                for rule in self.rules
            )
        )


OPEN = Grants()
"""Of a peer that comes by a port that asks for no login."""
ADMINISTRATOR = Grants(admin=True)
"""Of the owner of the data directory: the socket in it, and the admin token."""


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
