"""An office for tests of the broker that ask the desk."""

from __future__ import annotations

from tests.unit.desk.conftest import office

__all__ = ["office"]
