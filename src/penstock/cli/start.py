"""Where to begin in a topic, as people write it."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock.cli.refusal import Refusal


def start_of(text: str) -> str | int:
    """``earliest``, ``latest``, an offset, or an ISO 8601 time (UTC if not said)."""
    if text in ("earliest", "latest"):
        return text
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "use earliest, latest, an offset, or a time such as 2030-01-31T12:00Z"
        raise Refusal(f"{text!r} is no place in a topic", hint) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return f"time:{max(int(moment.timestamp() * 1000), 0)}"
