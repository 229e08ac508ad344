"""A rule in a users file: ``anna may publish sensors/#``, on a line of its own.

``anna may nothing`` is there for a user whose last rule was taken away, who would
otherwise be one without rules, and those may do everything.
"""

from __future__ import annotations

from penstock.broker.access import ACTIONS, Action, Rule
from penstock.errors import InvalidName
from penstock.model.topic_filter import check_filter, shared

MAY = "may"
NOTHING = "nothing"


def is_rule(line: str) -> bool:
    """Whether a line is a rule: a user's has a ``:`` where this has white space."""
    return line.split(maxsplit=2)[1:2] == [MAY]


def parse(line: str) -> tuple[str, Rule | None]:
    """User and rule of a line that is one; None for ``nothing``.

    Raises ValueError, or InvalidName for a filter that cannot be one.
    """
    name, _, *said = line.split(maxsplit=3)
    match said:
        case [word] if word == NOTHING:
            return name, None
        case [action, filter_] if action in ACTIONS:
            return name, made(action, filter_.strip())
        case _:
            known = ", ".join(ACTIONS)
            raise ValueError(f"after may comes {known} and a filter, or {NOTHING}")


def made(action: Action, filter_: str) -> Rule:
    """A rule that a line can hold; raises InvalidName."""
    check_filter(filter_)
    if filter_ != filter_.strip() or not filter_.isprintable():
        reason = "has control characters, or white space at an end"
        raise InvalidName(filter_, reason, kind="topic filter")
    if shared(filter_) is not None:
        reason = "is of a shared subscription: leave out $share and the group"
        raise InvalidName(filter_, reason, kind="topic filter")
    return Rule(action, filter_)


def rendered(name: str, rule: Rule | None) -> str:
    """The line of a rule; of None, that of somebody who may do nothing."""
    if rule is None:
        return f"{name} {MAY} {NOTHING}"
    return f"{name} {MAY} {rule.action} {rule.filter}"
