"""The trace that a request belongs to goes on in the events it publishes.

After W3C Trace Context: ``traceparent`` and ``tracestate`` of the request become
headers of the events, whether this server makes spans or not; an event that says its
own keeps it. What is not valid is not passed on, and no request is refused for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from penstock.log import Columns

PARENT, STATE = "traceparent", "tracestate"
# More than that need not be passed on.
MAX_STATE_CHARACTERS = 512

_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)
_STATE = re.compile(r"[\x20-\x7e]+")


def context_of(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """What events get from the headers of their request; often nothing."""
    parents: list[str] = []
    states: list[str] = []
    for name, value in headers:
        if name == b"traceparent":
            parents.append(value.decode("latin-1").strip())
        elif name == b"tracestate":
            states.append(value.decode("latin-1").strip())
    if len(parents) != 1 or not _is_valid(parents[0]):
        return {}
    state = ",".join(filter(None, states))
    if not _STATE.fullmatch(state) or len(state) > MAX_STATE_CHARACTERS:
        return {PARENT: parents[0]}
    return {PARENT: parents[0], STATE: state}


def put_into(columns: Columns, context: Mapping[str, str]) -> None:
    """Add the context to the headers of those events that have none."""
    if not context:
        return
    if columns.headers is None:
        columns.headers = [dict(context)] * len(columns)
        return
    columns.headers = [
        one if PARENT in one else {**_without_state(one), **context}
        for one in columns.headers
    ]


def _without_state(headers: Mapping[str, str]) -> dict[str, str]:
    """A state without the parent that it is about means nothing."""
    return {name: value for name, value in headers.items() if name != STATE}


def _is_valid(parent: str) -> bool:
    found = _PARENT.fullmatch(parent)
    return found is not None and (found[1] is None or not parent.startswith("00"))
