"""What the broker takes in: names and ids that every gateway can speak of."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import InvalidBatch, InvalidName, ReservedName
from penstock.model.event import MAX_ID_BYTES
from penstock.model.printable import has_controls
from penstock.model.topic import TopicName, topic_name

# Names that begin with this are the broker's own.
RESERVED = "$"


def accepted_topic(name: str) -> TopicName:
    """A topic name that clients may use; raises InvalidName, ReservedName."""
    accepted = topic_name(name)
    if name.startswith(RESERVED):
        raise ReservedName(name)
    return accepted


def check_plain(name: str) -> None:
    """Refuse control characters in the name of a new topic; raises InvalidName."""
    if has_controls(name):
        raise InvalidName(name, "contains control characters")


def accepted_subscriber(name: str) -> str:
    """A subscriber name that can be typed; raises InvalidName, ReservedName."""
    if (problem := _problem(name)) is not None:
        raise InvalidName(str(name), problem, kind="subscriber name")
    if name.startswith(RESERVED):  # temporary subscribers have such names
        raise ReservedName(name)
    return name


def accepted_query(name: str) -> str:
    """A name of a query that writes; raises InvalidName."""
    if (problem := _problem(name)) is not None:
        raise InvalidName(str(name), problem, kind="query name")
    return name


def check_ids(what: str, ids: Iterable[str | None]) -> None:
    """Ids must fit on a line and come back from one; raises InvalidBatch."""
    given = [id_ for id_ in ids if id_ is not None]
    try:
        joined = "".join(given)
    except TypeError:
        raise InvalidBatch(what, "one that is no text", "text") from None
    longest = max(map(len, given), default=0)
    plain = joined.isascii() and joined.isprintable() and " " not in joined
    if plain and longest <= MAX_ID_BYTES and "" not in given:
        return  # all of them are good, as nearly always
    for id_ in given:
        if (problem := _problem(id_)) is not None:
            limit = f"printable, without spaces around it, 1 to {MAX_ID_BYTES} bytes"
            raise InvalidBatch(what, f"one that {problem} ({id_[:80]!r})", limit)


def _problem(text: object) -> str | None:
    if not isinstance(text, str):  # a caller that does not check types
        return f"is no text but of {type(text).__name__}"
    if not text:
        return "is empty"
    if not text.isprintable():
        return "contains characters that cannot be printed"
    if text[0] == " " or text[-1] == " ":
        return "begins or ends with a space"
    if (size := len(text.encode())) > MAX_ID_BYTES:
        return f"has {size} bytes, limit {MAX_ID_BYTES}"
    return None
