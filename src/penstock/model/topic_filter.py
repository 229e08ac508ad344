"""Topic filters: which topic names a subscriber wants, in MQTT's notation.

Names and filters are levels with slashes between them. In a filter the level ``+``
stands for any one level, and ``#``, which must be the last, for any number of them,
the one in front of it included: ``a/#`` matches ``a``. Names that begin with ``$`` are
not matched by a filter that begins with a wildcard.
"""

from __future__ import annotations

from typing import Final

from penstock.errors import InvalidName

# MQTT-4.7.3-3
MAX_FILTER_BYTES: Final = 65_535
_SHARED: Final = "$share/"


def check_filter(text: str) -> None:
    """Raise InvalidName if ``text`` is not a topic filter."""
    if not text:
        raise _invalid(text, "is empty")  # MQTT-4.7.3-1
    if "\0" in text:
        raise _invalid(text, "contains a NUL character")  # MQTT-4.7.3-2
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise _invalid(text, "is not valid Unicode text") from None
    if length > MAX_FILTER_BYTES:
        raise _invalid(text, f"has {length} bytes, limit {MAX_FILTER_BYTES}")
    if "#" in text or "+" in text:
        _check_wildcards(text)


def matches(filter: str, topic: str) -> bool:
    """Whether ``filter``, which is one, matches the name ``topic``."""
    wanted, levels = filter.split("/"), topic.split("/")
    # MQTT-4.7.2-1
    if wanted[0] in ("#", "+") and topic.startswith("$"):
        return False
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index == len(levels) or level not in ("+", levels[index]):
            return False
    return len(wanted) == len(levels)


def overlap(one: str, other: str) -> bool:
    """Whether there are names that both filters match."""
    left, right = one.split("/"), other.split("/")
    # MQTT-4.7.2-1
    if any(a in ("#", "+") and b.startswith("$") for a, b in _ways(left[0], right[0])):
        return False
    for a, b in zip(left, right, strict=False):
        if a == "#" or b == "#":
            return True
        if a != b and a != "+" and b != "+":
            return False
    shorter = min(len(left), len(right))
    return (left[shorter:] or right[shorter:]) in ([], ["#"])


def _ways(one: str, other: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (one, other), (other, one)


def shared(text: str) -> tuple[str, str] | None:
    """Group and filter of ``$share/group/filter``; None if ``text`` is not shared.

    Raises InvalidName if it begins like one and is none. The filter within is checked
    as well.
    """
    if not text.startswith(_SHARED):
        return None
    group, slash, filter = text[len(_SHARED) :].partition("/")
    if not group:
        raise _invalid(text, "names no group to share with")  # MQTT-4.8.2-1
    if "+" in group or "#" in group:
        raise _invalid(text, "has a wildcard in the name of its group")  # MQTT-4.8.2-2
    if not slash or not filter:
        raise _invalid(text, "has no filter behind its group")  # MQTT-4.8.2-2
    check_filter(filter)
    return group, filter


def _check_wildcards(text: str) -> None:
    levels = text.split("/")
    last = len(levels) - 1
    for index, level in enumerate(levels):
        if "#" in level and (level != "#" or index != last):  # MQTT-4.7.1-1
            raise _invalid(text, "has a # that is not the whole last level")
        if "+" in level and level != "+":  # MQTT-4.7.1-2
            raise _invalid(text, "has a + that is not a whole level")


def _invalid(text: str, reason: str) -> InvalidName:
    return InvalidName(text, reason, "topic filter")
