from __future__ import annotations

import logging
import os

import pytest


@pytest.fixture(autouse=True)
def _log_records(caplog: pytest.LogCaptureFixture) -> None:
    """Records are captured whatever level an earlier test has left behind."""
    caplog.set_level(logging.INFO, logger="penstock")


@pytest.fixture(autouse=True)
def _quick_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs are counted and made to fail here; what they promise needs a power cut."""
    monkeypatch.setattr(os, "fdatasync", lambda handle: None)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
