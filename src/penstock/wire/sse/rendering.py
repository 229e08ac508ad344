"""Server-sent events as bytes, many at once.

Data of several lines becomes several data fields. A CR in data comes back as a LF: the
format has no way to say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.errors import LocalProtocolError
from penstock.wire.sse.parsing import MESSAGE, ServerSentEvent

# A comment that a server sends so that no client takes silence for death.
KEEP_ALIVE = b":\n\n"


def render(events: Iterable[ServerSentEvent], *, retry_ms: int | None = None) -> bytes:
    """All of the events; an id is said if there is one, the type if it is special.

    Raises LocalProtocolError for an id or a type that cannot be said.
    """
    parts = [] if retry_ms is None else [b"retry: %d\n\n" % retry_ms]
    parts += [_frame(event) for event in events]
    return b"".join(parts)


def numbered(data: Sequence[bytes], first: int, kind: str = MESSAGE) -> bytes:
    """Events of one type with the ids ``first``, ``first + 1`` and so on.

    The data must be single lines, as JSON without line ends is: it is not looked at.
    """
    head = b"event: %b\nid: " % _word("type", kind)
    return b"".join(
        [b"%b%d\ndata: %b\n\n" % (head, id, one) for id, one in enumerate(data, first)]
    )


def _frame(event: ServerSentEvent) -> bytes:
    lines = []
    if event.type != MESSAGE:
        lines.append(b"event: " + _word("type", event.type))
    if event.id:
        lines.append(b"id: " + _word("id", event.id))
    text = event.data
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines += [b"data: " + line for line in text.split(b"\n")]
    return b"\n".join(lines) + b"\n\n"


def _word(what: str, text: str) -> bytes:
    if not text or any(character in text for character in "\r\n\0"):
        problem = f"{what} is {text!r}: must be text on one line"
        raise LocalProtocolError("sse", problem)
    return text.encode()
