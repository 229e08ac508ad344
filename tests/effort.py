"""How much a test does: much in ``make deep``, enough in ``make test``."""

from __future__ import annotations

from hypothesis import settings

DEEP = settings.get_current_profile_name() == "deep"


def effort(enough: int, much: int) -> int:
    """How often, or how many: the first, and the second in ``make deep``."""
    return much if DEEP else enough
