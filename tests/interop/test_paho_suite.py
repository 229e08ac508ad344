"""Paho's public interoperability suite, where a copy of it is at hand.

It is in no package registry, and is never kept here. Name a checkout of
eclipse-paho/paho.mqtt.testing to run it::

    PENSTOCK_PAHO_TESTING=/some/where/paho.mqtt.testing pytest tests/interop
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.brokers import PAHO_TESTING, REFERENCE, running

RUNNER = Path(__file__).with_name("paho_suite.py")
SUITE_S = 900.0
# The suite wants to be refused this one.
REFUSED = "test/nosubscribe"
COUNTS = {"client_test": 10, "client_test5": 27}

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(
        not PAHO_TESTING,
        reason="component: paho.mqtt.testing (PENSTOCK_PAHO_TESTING is not set)",
    ),
    pytest.mark.skipif(bool(REFERENCE), reason="about Penstock alone"),
]


@pytest.mark.parametrize("suite", COUNTS)
def test_all_cases_pass(
    tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_MQTT_NO_SUBSCRIBE", REFUSED)
    with running(tmp_path) as broker:
        cases = outcomes(suite, broker.port)

    assert len(cases) == COUNTS[suite]
    failed = {name: why for name, why in cases.items() if why != "passed"}
    assert not failed, "\n\n".join(f"{name}: {why}" for name, why in failed.items())


def outcomes(suite: str, port: int) -> dict[str, str]:
    folder = Path(PAHO_TESTING) / "interoperability"
    run = subprocess.run(
        [sys.executable, str(RUNNER), str(folder), suite, str(port)],
        capture_output=True,
        timeout=SUITE_S,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found: dict[str, str] = json.loads(run.stdout.splitlines()[-1])
    return found
