from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def _log_records(caplog: pytest.LogCaptureFixture) -> None:
    """Records are captured whatever level an earlier test has left behind."""
    caplog.set_level(logging.INFO, logger="penstock")
