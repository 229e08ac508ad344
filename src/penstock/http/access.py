"""The sender of a request, and what it may do.

A route needs one kind of access. ``admin`` has all of them; ``use`` has all but ADMIN;
``read`` has SEE, READ and FOLLOW; ``topics`` has what its patterns say, of the topic
that the path names. A user who may administer is an ``admin``, another one without
rules a ``use``, and one with rules a ``topics``: the rules say what that is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from penstock.access.grants import Grants
from penstock.errors import AN_ADMINISTRATOR, NotAllowed

Scope = Literal["admin", "use", "read", "topics", "open"]


class Access(Enum):
    """What a route needs."""

    NONE = "no token"
    ANY = "a token"
    READ = "a token that may read everything"
    SEE = "a token that may read everything, or this topic"
    PUBLISH = "a token that may publish to this topic"
    FOLLOW = "a token that may read everything, or subscribe to this topic"
    CONSUME = "a token that may subscribe to this topic"
    CREATE = "a token that may make topics"
    ADMIN = "a token that may change everything"


FREE = frozenset({Access.NONE, Access.ANY})
READING = frozenset({Access.READ, Access.SEE, Access.FOLLOW})

# What a user would have to be allowed.
_ACTIONS = {
    Access.READ: "read everything",
    Access.SEE: "see",
    Access.PUBLISH: "publish to",
    Access.FOLLOW: "read",
    Access.CONSUME: "subscribe to",
    Access.CREATE: "make topics by themselves",
    Access.ADMIN: "administer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """A token, user or peer that was let in.

    ``name`` is that of the token or user. ``open``: a peer on this machine, where the
    settings let every such peer in, to do everything. Patterns are those of a
    ``topics`` token; ``grants`` are those of a user.
    """

    name: str
    scope: Scope
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    grants: Grants | None = None
    by: object = field(default=None, compare=False, repr=False)
    """The token, or the line of the users file, that let them in."""

    def need(self, access: Access, topic: str | None = None) -> None:
        """Raises NotAllowed, unless this is allowed."""
        if self.may(access, topic):
            return
        if self.grants is None:
            needs = f"do this: it needs {access.value}"
            raise NotAllowed(self.name, needs, kind="token")
        needs = AN_ADMINISTRATOR if access is Access.ADMIN else ""
        raise NotAllowed(self.name, _ACTIONS[access], topic or "", needs=needs)

    def need_as(self, topic: str, subscriber: str) -> None:
        """Raises NotAllowed, unless that subscriber may have the topic by them."""
        self.need(Access.CONSUME, topic)
        if self.grants is not None:
            self.grants.check_subscribe(topic, subscriber)

    def may(self, access: Access, topic: str | None = None) -> bool:
        """Whether this is allowed, of that topic if it is about one."""
        if access in FREE or self.scope in ("admin", "open"):
            return True
        if self.scope == "use":
            return access is not Access.ADMIN
        if self.scope == "read":
            return access in READING
        if topic is None:
            return False
        if self.grants is not None:
            return _granted(self.grants, access, topic)
        match access:
            case Access.PUBLISH:
                return matches(self.publish, topic)
            case Access.FOLLOW | Access.CONSUME:
                return matches(self.subscribe, topic)
            case Access.SEE:
                return matches((*self.publish, *self.subscribe), topic)
            case _:
                return False


def user(grants: Grants) -> Who:
    """A user of the users file."""
    if grants.admin:
        return Who(name=grants.user, scope="admin", grants=grants)
    scope: Scope = "use" if grants.rules is None else "topics"
    return Who(name=grants.user, scope=scope, grants=grants)


def _granted(grants: Grants, access: Access, topic: str) -> bool:
    match access:
        case Access.PUBLISH:
            return grants.may_publish(topic)
        case Access.FOLLOW:
            return grants.may_read(topic)
        case Access.CONSUME:
            return grants.may_subscribe(topic)
        case Access.SEE:
            return grants.may_see(topic)
        case _:
            return False


def matches(patterns: tuple[str, ...], topic: str) -> bool:
    """Whether a pattern is the topic, or its beginning in front of a last ``*``.

    Topics of Penstock's own are for those who may read everything.
    """
    if topic.startswith("$"):
        return False
    return any(
        topic.startswith(one[:-1]) if one.endswith("*") else topic == one
        for one in patterns
    )
