"""Programs that belong together, as processes of one terminal: ``penstock up``."""

from __future__ import annotations
