"""A blocking program is told to end: it closes in good order, whatever it waits for."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import penstock
from penstock import desk
from tests.process.embedded_process import program, wait_for

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_program_that_runs(tmp_path: Path, number: int) -> None:
    with program("embedded_waiting", tmp_path, "run") as shop:
        assert shop.line() == "waiting"
        wait_for_work(tmp_path)
        os.kill(shop.pid, number)

        assert shop.lines() == ["closed"]
        assert shop.wait() == 0

    nothing_was_lost(tmp_path)


def test_an_interrupt_ends_a_program_that_waits_for_the_last_event(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with program("embedded_waiting", tmp_path, "settled") as shop:
        assert shop.line() == "waiting"
        wait_for_work(tmp_path)
        os.kill(shop.pid, signal.SIGINT)

        assert shop.wait() in (-signal.SIGINT, 128 + signal.SIGINT)

    assert capfd.readouterr().err.rstrip().endswith("\nKeyboardInterrupt")
    nothing_was_lost(tmp_path)


def test_a_thread_that_waits_for_a_broker_that_is_closed_is_told(
    tmp_path: Path,
) -> None:
    with program("embedded_waiting", tmp_path, "beside") as shop:
        assert sorted(shop.lines()) == ["closed", "the broker is closed", "waiting"]
        assert shop.wait() == 0


def wait_for_work(data: Path) -> None:
    """Return when the running program has handled something."""

    def begun() -> bool:
        with penstock.open(f"penstock://{data}") as broker:
            return any(row.position for row in broker.ask(desk.subscriptions()))

    wait_for(begun)


def nothing_was_lost(data: Path) -> None:
    """What was not begun is owed without a try, what ran was let finish."""
    with penstock.open(data) as broker:
        (row,) = broker.ask(desk.subscriptions())
        assert row.position + row.lag == 1000
        assert broker.ask(desk.errors()) == []
