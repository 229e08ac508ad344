"""Names in paths: one segment each, percent-encoded, so that they may hold anything.

``/v1/topics/a%2Fb`` is about the topic ``a/b``. So a path is split while it is still
encoded, and each segment is decoded once.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from penstock.errors import BadRequest

# More is no route of ours.
MAX_SEGMENTS = 16


def segments_of(raw_path: bytes) -> tuple[str, ...]:
    """The segments of a path as they were sent, decoded; raises BadRequest."""
    parts = raw_path.split(b"/")
    if parts[0] or len(parts) < 2:
        raise BadRequest("the path has to begin with /")
    if len(parts) > MAX_SEGMENTS:
        raise BadRequest(f"the path has more than {MAX_SEGMENTS} segments")
    return tuple(map(_decoded, parts[1:]))


def segment(name: str) -> str:
    """A name as a segment of a path."""
    return quote(name, safe="")


def _decoded(part: bytes) -> str:
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        shown = part[:80].decode("ascii", "replace")
        raise BadRequest(f"path segment {shown!r} is not UTF-8") from None
    if "\0" in text:
        raise BadRequest("the path contains a NUL character")
    return text
