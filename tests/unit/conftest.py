"""Unit tests do without syncs of the disk."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _quick_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs are counted and made to fail here; what they promise needs a power cut."""
    monkeypatch.setattr(os, "fdatasync", lambda handle: None)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
