"""The whole way of a dead letter: an application, its letter, a test, a repair.

tests/integration/test_cli_desk.py goes it with a handler that is no coroutine.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import cli

APP = """
from __future__ import annotations

import msgspec

from penstock import Context, Domain, Event, Topic


class Order(msgspec.Struct):
    total: int
    people: int


orders = Topic("orders", Order)
shares = Topic("shares", int)
billing = Domain("billing")


@billing.on(orders, tries=2, backoff_s=0.0)
{kind}def share(event: Event[Order], context: Context) -> None:
    order = event.payload
    context.publish(shares, order.total // order.people)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["async ", pytest.param("", marks=pytest.mark.deep)])
def test_a_dead_letter_becomes_a_test_that_fails_until_the_handler_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    app = tmp_path / "sharing_app.py"
    app.write_text(APP.format(kind=kind))
    letter_of(tmp_path, app.stem, monkeypatch)
    exported = tmp_path / "test_letter.py"

    broken = run_test(exported)
    source = app.read_text()
    app.write_text(source.replace("// order.people", "// max(order.people, 1)"))
    repaired = run_test(exported)

    assert broken.returncode == 1, broken.stdout
    assert "ZeroDivisionError" in broken.stdout
    assert "sharing_app.py" in broken.stdout, "it shows where"
    assert repaired.returncode == 0, repaired.stdout


def letter_of(folder: Path, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the application fail, and the letter exported while it still runs."""
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, module, raising=False)
    app = importlib.import_module(module)
    monkeypatch.delitem(sys.modules, module)
    data = str(folder / "data")
    with penstock.open(data) as broker:
        broker.start(app.billing)
        broker.publish(app.orders, app.Order(total=10, people=0))
        broker.wait_until_settled(timeout_s=60.0)
        command = ["dead-letters", "export-test", "0", "--data", data]
        said = CliRunner().invoke(cli, [*command, "--out", f"{folder}/test_letter.py"])

    assert said.exit_code == 0, said.output


def run_test(file: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(file.parent), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", file],
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
