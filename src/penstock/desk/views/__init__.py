"""What the desk tells and is asked for: plain rows and filters.

They travel as they are and are shown as they are. Clients use them as the desk does, so
nothing here knows the broker. Times are milliseconds since 1970. A page that says
``more`` or ``next`` was cut: ask again from there.
"""

from __future__ import annotations

import msgspec

# Rows of one answer.
MAX_ROWS = 1000


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Root of all rows."""
