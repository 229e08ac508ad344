"""The options of ``penstock cdc run`` that say what people see of a change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

import click

from penstock.cdc.shown import Path, Shown
from penstock.cli.refusal import Refusal
from penstock.model.event import MAX_PRIORITY

MESSAGE = click.option(
    "--message",
    "messages",
    metavar="COLLECTION=FIELD",
    multiple=True,
    help="This field of its documents is the msg of events; a.b is the field b in a. "
    "Once for each collection.",
)
PRIORITY = click.option(
    "--priority",
    "priorities",
    metavar="COLLECTION=FIELD:N,N",
    multiple=True,
    help="An event's priority is how many of these numbers the field has reached. Once "
    "for each collection.",
)


def shown_of(
    collections: Sequence[str], messages: Sequence[str], priorities: Sequence[str]
) -> dict[str, Shown]:
    """What was asked for, by collection; raises Refusal."""
    fields = {
        name: _path("--message", rest)
        for name, rest in _by_collection("--message", messages, collections).items()
    }
    scores = {
        name: _score(rest)
        for name, rest in _by_collection("--priority", priorities, collections).items()
    }
    return {
        name: Shown(
            message=fields.get(name),
            score=scores[name][0] if name in scores else None,
            thresholds=scores[name][1] if name in scores else (),
        )
        for name in (*fields, *(name for name in scores if name not in fields))
    }


def _by_collection(
    option: str, given: Sequence[str], collections: Sequence[str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given:
        name, sign, rest = one.partition("=")
        if not sign:
            raise Refusal(f"{option} {one} has no =", "for example: orders=title")
        if name not in collections:
            raise Refusal(f"{option} {one}: {name} is not one of --collections")
        if name in found:
            raise Refusal(f"{option} names {name} twice")
        found[name] = rest
    return found


def _path(option: str, text: str) -> Path:
    names = tuple(text.split("."))
    if not all(names):
        raise Refusal(f"{option}: {text!r} is no name of a field", "say a or a.b")
    return names


def _score(text: str) -> tuple[Path, tuple[float, ...]]:
    field, _, numbers = text.rpartition(":")
    try:
        thresholds = tuple(float(number) for number in numbers.split(","))
    except ValueError:
        thresholds = ()
    good = all(map(isfinite, thresholds)) and len(thresholds) <= MAX_PRIORITY
    if not thresholds or not good or any(a >= b for a, b in pairwise(thresholds)):
        raise Refusal(
            f"--priority {text}: behind the field come 1 to {MAX_PRIORITY} numbers, "
            "each larger than the one before",
            "for example: orders=total:10,100,1000",
        )
    return _path("--priority", field), thresholds
