"""A rule in a users file: ``anna may publish sensors/#``, on a line of its own.

A rule to subscribe may name the subscribers that it is good for, behind a last ``as``:
``anna may subscribe orders as anna,anna-*``. ``anna may administer`` is no rule but a
role. ``anna may nothing`` is there for a user whose last rule was taken away, who would
otherwise be one without rules, and those may publish, subscribe and read everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from penstock.access.grants import ACTIONS, ANY, GrantedAction, Rule
from penstock.errors import InvalidName
from penstock.model.topic_filter import check_filter, shared

MAY = "may"
NOTHING = "nothing"
ADMINISTER: Literal["administer"] = "administer"
AS = " as "

LineMeaning = Rule | Literal["administer"] | None
"""What a line says: a rule, the role, or nothing."""


def is_rule(line: str) -> bool:
    """Whether a line is a rule: a user's has a ``:`` where this has white space."""
    return line.split(maxsplit=2)[1:2] == [MAY]


def parse(line: str) -> tuple[str, LineMeaning]:
    """User and rule of a line that is one; None for ``nothing``.

    Raises ValueError, or InvalidName for a filter or a name that cannot be one.
    """
    name, _, *said = line.split(maxsplit=3)
    match said:
        case [word] if word == NOTHING:
            return name, None
        case [word] if word == ADMINISTER:
            return name, ADMINISTER
        case ["subscribe", filter_] if AS in filter_:
            filter_, _, names = filter_.rpartition(AS)
            return name, made("subscribe", filter_.strip(), names.strip().split(","))
        case [action, filter_] if action in ACTIONS:
            return name, made(action, filter_.strip())
        case _:
            known = ", ".join(ACTIONS)
            words = f"{ADMINISTER} or {NOTHING}"
            raise ValueError(f"after may comes {known} and a filter, or {words}")


def made(
    action: GrantedAction, filter_: str, subscribers: Iterable[str] | None = None
) -> Rule:
    """A rule that a line can hold; raises InvalidName."""
    check_filter(filter_)
    if filter_ != filter_.strip() or not filter_.isprintable():
        reason = "has control characters, or white space at an end"
        raise InvalidName(filter_, reason, kind="topic filter")
    if shared(filter_) is not None:
        reason = "is of a shared subscription: leave out $share and the group"
        raise InvalidName(filter_, reason, kind="topic filter")
    if subscribers is None and action == "subscribe" and AS in filter_:
        subscribers = (ANY,)  # else the end of the filter would be taken for names
    if subscribers is None:
        return Rule(action, filter_)
    return Rule(action, filter_, tuple(map(_pattern, subscribers)))


def rendered(name: str, rule: LineMeaning) -> str:
    """The line of a rule; of None, that of a user who may do nothing."""
    if rule is None:
        return f"{name} {MAY} {NOTHING}"
    return f"{name} {MAY} {shown(rule)}"


def shown(rule: Rule | Literal["administer"]) -> str:
    """A rule as its line has it, without the user."""
    if isinstance(rule, str):
        return rule
    text, names = f"{rule.action} {rule.filter}", rule.subscribers
    return text if names is None else f"{text}{AS}{','.join(names)}"


def _pattern(text: str) -> str:
    """A subscriber's name, perhaps with a last ``*``; raises InvalidName."""
    name = text.strip()
    if not name or not name.isprintable() or "," in name or AS in name:
        reason = "is empty, or has a comma, ' as ' or control characters"
        raise InvalidName(text, reason, kind="subscriber name")
    if ANY in name[:-1]:
        raise InvalidName(text, f"has a {ANY} before its end", kind="subscriber name")
    return name
