"""What is shipped for those who run it names what there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "penstock.json").read_text())
ALERTS = (DEPLOY / "prometheus" / "alerts.yml").read_text()
# What Prometheus makes of a histogram.
PARTS = ("_bucket", "_sum", "_count")
_ROW = re.compile(r"^\| `(penstock_\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)
METRICS = {
    name: (kind, set(re.findall(r"`(\w+)`", labels)))
    for name, kind, labels in _ROW.findall((ROOT / "docs" / "metrics.md").read_text())
}


def expressions() -> Iterator[tuple[str, str]]:
    """What the dashboard and the alerts ask, with the words beside it."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]
    for found in re.finditer(r"^ +expr: (.+)$", ALERTS, re.MULTILINE):
        yield found[1], ""


def metric(name: str) -> str:
    return next((name.removesuffix(p) for p in PARTS if name.endswith(p)), name)


@pytest.mark.parametrize(("expression", "legend"), list(expressions()))
def test_a_question_is_about_metrics_that_there_are(
    expression: str, legend: str
) -> None:
    names = [metric(name) for name in re.findall(r"penstock_\w+", expression)]

    assert names or expression.startswith("up{")
    for name in names:
        kind, labels = METRICS[name]
        counts = kind in ("counter", "histogram")
        assert counts == bool(re.search(rf"(rate|increase)\([^)]*{name}", expression))
        assert set(re.findall(r"{{(\w+)}}", legend)) <= labels


def test_every_metric_of_the_whole_broker_is_on_the_dashboard() -> None:
    asked = {
        metric(name)
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
        for name in re.findall(r"penstock_\w+", target["expr"])
    }
    left_out = {
        *("penstock_build_info", "penstock_start_time_seconds"),
        *(name for name in METRICS if name.startswith("penstock_topic_")),
        "penstock_mqtt_filters",
    }

    assert set(METRICS) - asked <= left_out


def test_panels_do_not_overlap() -> None:
    places: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at: dict[str, Any] = panel["gridPos"]
        own = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not own & places, panel["title"]
        assert at["x"] + at["w"] <= 24
        places |= own


def test_prometheus_reads_the_alerts() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("component: promtool (not installed)")
    file = str(DEPLOY / "prometheus" / "alerts.yml")

    run = subprocess.run(
        [promtool, "check", "rules", file], capture_output=True, text=True
    )

    assert run.returncode == 0, run.stdout + run.stderr


def test_the_unit_starts_a_command_that_there_is() -> None:
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # keeps the case
    unit.read(DEPLOY / "systemd" / "penstock.service")
    program, *arguments = unit["Service"]["ExecStart"].split()

    result = CliRunner().invoke(cli, [*arguments, "--help"])

    assert program.endswith("/penstock")
    assert result.exit_code == 0
    assert unit["Service"]["Environment"] == "PENSTOCK_DATA=/var/lib/penstock"
    assert all(one in result.stdout for one in arguments if one.startswith("--"))
