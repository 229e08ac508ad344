"""The login line of a consumer: ``log <user>`` or ``log <user> <password>``."""

from __future__ import annotations

from typing import NamedTuple

# A user is a subscriber, and a name that people type.
MAX_USER_BYTES = 256


class Login(NamedTuple):
    """Who wants in. ``user`` is in lower case: names differ in more than case."""

    user: str
    password: str | None


def parse_login(line: bytes) -> Login | None:
    """The login in a line; None if it is no login. ``LOG`` is as good as ``log``."""
    try:
        words = line.decode().split()
    except UnicodeDecodeError:
        return None
    if len(words) not in (2, 3) or words[0].lower() != "log":
        return None
    user = words[1].lower()
    if not user.isprintable() or len(user.encode()) > MAX_USER_BYTES:
        return None
    return Login(user, words[2] if len(words) == 3 else None)
