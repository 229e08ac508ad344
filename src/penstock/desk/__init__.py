"""What people ask of a broker and change in it: verbs, and the rows of answers.

To programs ``penstock.desk`` is what they can ask: those names are in embedded/desk.py,
and are loaded when they are first used. No module here may have one of them.
"""

from __future__ import annotations

from importlib import import_module

ASKED = frozenset(
    {
        "AuditFilter",
        "Chain",
        "ErrorFilter",
        "Filter",
        "Plan",
        "Progress",
        "audit",
        "chain",
        "drop_all",
        "edit",
        "error_groups",
        "errors",
        "groups",
        "like",
        "list_all",
        "republish_all",
        "show",
        "show_error",
        "subscriptions",
        "topics",
    }
)


def __getattr__(name: str) -> object:
    if name not in ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module("penstock.embedded.desk"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *ASKED])
