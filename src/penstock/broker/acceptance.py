"""What the broker takes in: names and ids that every gateway can speak of."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import InvalidBatch, InvalidName, ReservedName
from penstock.model.topic import TopicName, topic_name

# Names that begin with this are the broker's own.
RESERVED = "$"


def accepted_topic(name: str) -> TopicName:
    """A topic name that clients may use; raises InvalidName, ReservedName."""
    accepted = topic_name(name)
    if name.startswith(RESERVED):
        raise ReservedName(name)
    return accepted


def accepted_subscriber(name: str, max_bytes: int) -> str:
    """A subscriber name that can be typed; raises InvalidName, ReservedName."""
    if (problem := _problem(name, max_bytes)) is not None:
        raise InvalidName(name, problem, kind="subscriber name")
    if name.startswith(RESERVED):  # temporary subscribers have such names
        raise ReservedName(name)
    return name


def check_ids(what: str, ids: Iterable[str | None], max_bytes: int) -> None:
    """Ids must fit on a line and come back from one; raises InvalidBatch."""
    given = [id_ for id_ in ids if id_ is not None]
    joined = "".join(given)
    longest = max(map(len, given), default=0)
    plain = joined.isascii() and joined.isprintable() and " " not in joined
    if plain and longest <= max_bytes and "" not in given:
        return  # all of them are good, as nearly always
    for id_ in given:
        if (problem := _problem(id_, max_bytes)) is not None:
            limit = f"printable, without spaces around it, 1 to {max_bytes} bytes"
            raise InvalidBatch(what, f"one that {problem} ({id_[:80]!r})", limit)


def _problem(text: str, max_bytes: int) -> str | None:
    if not text:
        return "is empty"
    if not text.isprintable():
        return "contains characters that cannot be printed"
    if text[0] == " " or text[-1] == " ":
        return "begins or ends with a space"
    if (size := len(text.encode())) > max_bytes:
        return f"has {size} bytes, limit {max_bytes}"
    return None
