"""The desk of a program that runs: after a fix and a restart one command empties it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import penstock
from penstock import desk
from tests.process.embedded_process import Program, events_of, program, wait_for
from tests.serving import PENSTOCK

pytestmark = pytest.mark.slow

TIMEOUT_S = 60.0
READY = "running, Ctrl-C stops it"
REPUBLISH = ["dead-letters", "republish", "--all", "--subscriber", "INVENTORY"]


def test_republishing_after_a_fix_and_a_restart_empties_the_desk(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with program("examples.orders", data, "--orders", "40", "--stay") as shop:
        assert said(shop)[-1] == "10 dead letters of INVENTORY: KeyError"
        # Without the fix they come back, as other letters.
        assert command(data, *REPUBLISH) == "10 of 10 republished\n"
        wait_for(lambda: open_letters(data) == list(range(10, 20)))
        assert shop.stop() == 0

    with program("examples.orders", data, "--orders", "0", "--fixed", "--stay") as shop:
        said(shop)
        assert command(data, *REPUBLISH) == "10 of 10 republished\n"
        assert command(data, *REPUBLISH) == "no dead letters\n"
        wait_for(lambda: len(events_of(data, "PRODUCTS_READY")) == 40)
        assert open_letters(data) == []
        assert shop.stop() == 0

    assert len(events_of(data, "PAYMENT_SUCCESS")) == 40, "sent to INVENTORY alone"
    parents = [one.parent for one in events_of(data, "PRODUCTS_READY")]
    assert sorted(filter(None, parents)) == sorted(f"order-{n}" for n in range(1, 41))


def said(shop: Program) -> list[str]:
    """What it says until it is ready."""
    found: list[str] = []
    while (line := shop.line()) != READY:
        assert line, found
        found.append(line)
    return found


def open_letters(data: Path) -> list[int]:
    with penstock.open(f"penstock://{data}") as broker:
        return [letter.number for letter in broker.ask(desk.list_all())]


def command(data: Path, *arguments: str) -> str:
    done = subprocess.run(
        [*PENSTOCK, *arguments, "--data", str(data)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    # Nothing is noted either: it is the running program that was asked.
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
