"""Who asks, and what that lets one do.

A route needs one kind of access. ``admin`` has all of them; ``read`` has SEE, READ and
FOLLOW; ``topics`` has what its patterns say, of the topic that the path names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Scope = Literal["admin", "read", "topics", "open"]


class Access(Enum):
    """What a route needs."""

    NONE = "no token"
    ANY = "a token"
    READ = "a token that may read everything"
    SEE = "a token that may read everything, or this topic"
    PUBLISH = "a token that may publish to this topic"
    FOLLOW = "a token that may read everything, or subscribe to this topic"
    CONSUME = "a token that may subscribe to this topic"
    ADMIN = "a token that may change everything"


FREE = frozenset({Access.NONE, Access.ANY})
READING = frozenset({Access.READ, Access.SEE, Access.FOLLOW})


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Somebody who was let in.

    ``name`` is that of the token or user. ``open``: a peer on this machine, where the
    settings let everybody in. Patterns are those of a ``topics`` token.
    """

    name: str
    scope: Scope
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()

    def may(self, access: Access, topic: str | None = None) -> bool:
        """Whether this is allowed, of that topic if it is about one."""
        if access in FREE or self.scope in ("admin", "open"):
            return True
        if self.scope == "read":
            return access in READING
        if topic is None:
            return False
        match access:
            case Access.PUBLISH:
                return matches(self.publish, topic)
            case Access.FOLLOW | Access.CONSUME:
                return matches(self.subscribe, topic)
            case Access.SEE:
                return matches((*self.publish, *self.subscribe), topic)
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
