"""What Prometheus gets of a real server."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.client import connect
from tests.serving import Serving, serving
from tests.wire_client import PATIENCE_S

pytestmark = pytest.mark.slow

FLAGS = ("--no-json", "--no-maze", "--http-port", "0")


def scraped(server: Serving, token: str = "") -> dict[str, dict[str, float]]:
    """Samples by name and the value of their only label, if they have one."""
    request = urllib.request.Request(f"http://127.0.0.1:{server.ports['http']}/metrics")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            label = next(iter(one.labels.values()), "")
            found.setdefault(one.name, {})[label] = one.value
    return found


def test_a_server_is_scraped_with_a_token(tmp_path: Path) -> None:
    with serving(tmp_path, *FLAGS) as server:
        token = (server.data / "http-admin-token").read_text().strip()
        with connect(server.data) as client:
            client.publish("orders", [b"x"] * 10)

            found = scraped(server, token)

        with pytest.raises(urllib.error.HTTPError, match="401"):
            scraped(server)

    assert found["penstock_events_in_total"] == {"": 10}
    assert found["penstock_topic_events_in_total"] == {"orders": 10}
    assert found["penstock_connections"]["local"] == 1
    assert found["penstock_sync_seconds_count"][""] >= 1
    assert found["penstock_disk_free_bytes"][""] > 0
    assert found["process_resident_memory_bytes"][""] > 1 << 20


def test_settings_open_it_and_bound_its_topics(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text("[http]\nopen_metrics = true\nmetrics_topics = 2\n")
    with serving(tmp_path, *FLAGS, "--config", str(config)) as server:
        with connect(server.data) as client:
            for number in range(1, 11):
                client.publish(f"t{number}", [b"x"] * number)

        found = scraped(server)["penstock_topic_events"]

    assert found == {"t10": 10, "t9": 9, "_other": 36}
