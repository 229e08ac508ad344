"""Text that terminals and log files may get: without what they would obey.

Control characters move the cursor, rename the window or begin another line; controls of
direction and of no width make text look like another one.
"""

from __future__ import annotations

import re

# C0, DEL and C1: Unicode's category Cc, and what MQTT-1.5.4 lets a server refuse.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
# The same, and: marks, embeddings and isolates of direction, ends of lines and
# paragraphs, joiners and spaces without width, tags, halves of pairs.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def has_controls(text: str) -> bool:
    """Whether there are control characters in it."""
    return _CONTROLS.search(text) is not None


def printable(text: str) -> str:
    """The text on one line, with what a terminal would obey as ``\\x1b`` and such."""
    return _UNSEEN.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """The same, with its lines and tabs."""
    return _UNSEEN.sub(_escaped_within, text)


def printable_json(text: str) -> str:
    """JSON, or lines of it, that says the same with ``\\u009b`` and such."""
    return _UNSEEN.sub(_json_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _escaped_within(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\n\t" else _escaped(found)


def _json_escaped(found: re.Match[str]) -> str:
    if found[0] in "\n\t":
        return found[0]
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
