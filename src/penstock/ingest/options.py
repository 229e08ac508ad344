"""What can be said about streams that are taken in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from penstock.errors import InvalidOption
from penstock.model.topic import topic_name

# Where a tweet has its id; what has nothing there has no key.
KEY = "message.tweet.id_str"
PANIC = '{"message": panic}'
# Silence for longer is taken for a lost connection. Servers are told to send a comment
# every 15 s (WHATWG HTML 9.2.7).
SILENCE_S = 120.0
# How long the first event of a batch waits for others, at most.
LINGER_S = 0.05
# What may be user and password: all between the scheme and the last @.
_LOGIN = re.compile(r"\A([a-z][a-z0-9+.-]*://)?.*@", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SseOptions:
    """``key`` is a path of names with dots between them; empty: events have no key.

    ``panic`` is what some servers send instead of JSON; empty: they do not.
    ``samples`` is the topic that panics are counted in; None: they are not. Raises
    InvalidName if one of the two can be no topic. ``linger_s``: how long the first
    event of a batch waits for others; fewer batches cost less.
    """

    topic: str
    key: str = KEY
    raw: bool = False
    panic: str = PANIC
    samples: str | None = None
    silence_s: float = SILENCE_S
    linger_s: float = LINGER_S
    until_end: bool = False

    def __post_init__(self) -> None:
        topic_name(self.topic)
        if self.samples is not None:
            topic_name(self.samples)


@dataclass(frozen=True, slots=True)
class Address:
    """A stream, and the name under which its place is remembered."""

    url: str
    feed: str

    @property
    def shown(self) -> str:
        """The URL without user and password.

        What may be a password with a ``/`` in it is left out as well.
        """
        parts = urlsplit(self.url)
        if "@" not in parts.netloc and ":" in parts.netloc and "@" in parts.path:
            return _LOGIN.sub(r"\1…@", self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def addresses(urls: Sequence[str], names: Sequence[str], topic: str) -> list[Address]:
    """One for each URL, named after it unless there are names.

    Raises InvalidOption.
    """
    for url in urls:
        if not _is_http(url):
            # A password may be in it, wherever it is wrong.
            shown = _LOGIN.sub(r"\1", url)
            raise InvalidOption("URL", shown, "http://… or https://…")
    if names and len(names) != len(urls):
        raise InvalidOption("name", ", ".join(names), "given once for each URL")
    given = names or [f"{topic}:{_place(url)}" for url in urls]
    if len(set(given)) < len(given):
        limit = "different for each stream"
        raise InvalidOption("name", ", ".join(given), limit)
    return [
        Address(url, f"ingest:{name}") for url, name in zip(urls, given, strict=True)
    ]


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # If that is no number it may be the beginning of a password with a "/" in it.
        has_port = parts.port != 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port


def _place(url: str) -> str:
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}{query}"
