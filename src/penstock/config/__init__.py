"""Settings from defaults, a file, the environment and flags: the options of each room.

settings = penstock.config.load()
settings.line.max_line_bytes
settings.origins["line.max_line_bytes"]
"""

from __future__ import annotations

from penstock.config.loading import items_of, load
from penstock.config.sources import Flag
from penstock.server.settings import Settings

__all__ = ["Flag", "Settings", "items_of", "load"]
