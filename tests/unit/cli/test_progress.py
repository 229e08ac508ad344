from __future__ import annotations

import sys

import click
import pytest

from penstock.cli.progress import INTERRUPTED, Reporter
from penstock.cli.refusal import Refusal
from penstock.client.redrive import Progress
from penstock.desk.views.letters import Done
from penstock.errors import ConnectionLost


class Time:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def some(done: int, failed: int = 0, total: int | None = 10) -> Progress:
    return Progress(total=total, done=done, failed=failed)


def test_elsewhere_than_on_a_terminal_it_is_a_line_a_second(
    capsys: pytest.CaptureFixture[str],
) -> None:
    time = Time()
    with Reporter("republished", clock=time) as report:
        for done in range(1, 6):
            time.now_s += 0.4
            report(some(done))

    assert capsys.readouterr().err == "3 of 10 republished\n"


def test_nothing_is_said_of_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    time = Time()
    with Reporter("republished", quiet=True, clock=time) as report:
        time.now_s = 5.0
        report(some(1))

    assert capsys.readouterr().err == ""


def test_on_a_terminal_it_is_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    with Reporter("republished") as report:
        report(some(4))
        report(some(9, failed=1))

    said = capsys.readouterr().err
    assert "republished" in said
    assert "10/10" in said


def test_results_are_collected() -> None:
    report = Reporter("dropped", quiet=True)
    one = Done(number=1, done=True, text="dropped", fresh=True)
    progress = Progress()

    for _ in range(2):
        progress.add([one])
        report(progress)

    assert report.results == [one, one]
    assert report.line == "2 dropped"


def test_what_could_not_be_done_is_counted() -> None:
    report = Reporter("republished", quiet=True)
    report(some(3, failed=2))

    assert report.line == "3 of 10 republished, 2 not"


def test_work_that_is_interrupted_says_how_far_it_got(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(click.exceptions.Exit) as exit_, Reporter("dropped") as report:
        report(some(3))
        raise KeyboardInterrupt

    assert exit_.value.exit_code == INTERRUPTED
    said = capsys.readouterr().err
    assert said == "stopped: 3 of 10 dropped; run it again to go on\n"


def test_work_that_loses_its_server_says_how_far_it_got() -> None:
    with pytest.raises(Refusal, match="lost") as refusal, Reporter("dropped") as report:
        report(some(3))
        raise ConnectionLost("there", "the server closed it")

    assert refusal.value.hint == "3 of 10 dropped; run it again to go on"


def test_other_errors_are_as_they_are() -> None:
    with pytest.raises(ConnectionLost), Reporter("dropped"):
        raise ConnectionLost("there", "before anything was done")
