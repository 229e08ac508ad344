from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import part as module
from penstock.cli.part import part


def told(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_bytes())
    return found


@pytest.mark.slow
def test_others_see_that_it_is_ready_and_how_far_it_is(tmp_path: Path) -> None:
    ready, status = tmp_path / "ready", tmp_path / "status"
    ready.write_text("of another time")

    with part(str(ready), str(status)) as self:
        assert not ready.exists()
        self.ready(url="here")
        self.tell(events=3, lag=1, more="x")

        assert told(ready) == {"pid": os.getpid(), "url": "here"}
        seen = told(status)
    assert (seen["events"], seen["lag"], seen["errors"], seen["more"]) == (3, 1, 0, "x")
    assert not ready.exists()


def test_it_is_cheap_to_tell_and_the_last_word_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STATUS_S", 1000.0)
    status = tmp_path / "status"
    with part(None, str(status)) as self:
        self.tell(events=1)
        self.tell(events=2)
        assert told(status)["events"] == 1

    assert told(status)["events"] == 2


@pytest.mark.slow
def test_without_files_nothing_is_written(tmp_path: Path) -> None:
    with part() as self:
        self.ready()
        self.tell(events=1)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_for_the_end(number: int) -> None:
    before = signal.getsignal(number)

    with part() as self:
        os.kill(os.getpid(), number)
        assert self.stopping.wait(10)

    assert signal.getsignal(number) is before


@pytest.mark.slow
def test_one_that_does_not_end_in_time_is_cut_off(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys, time\n"
        "from penstock.cli.part import part\n"
        "with part(*sys.argv[1:], patience_s=0.1) as self:\n"
        "    self.ready()\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    self.tell(events=7)\n"
        "    time.sleep(600)\n"
    )
    ready, status = tmp_path / "ready", tmp_path / "status"

    done = subprocess.run(
        [sys.executable, "-c", script, str(ready), str(status)],
        timeout=60,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 128 + signal.SIGTERM
    assert "not ended within 0.1 s" in done.stderr
    assert told(status)["events"] == 7
    assert not ready.exists()


@pytest.mark.slow
def test_one_that_ends_in_time_is_not_cut_off() -> None:
    script = (
        "import os, signal, time\n"
        "from penstock.cli.part import part\n"
        "with part(patience_s=0.1):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "time.sleep(0.3)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)

    assert done.returncode == 0


@pytest.mark.slow
def test_the_second_signal_ends_it_at_once() -> None:
    script = (
        "import os, signal, time\n"
        "from penstock.cli.part import part\n"
        "with part():\n"
        "    for _ in range(2):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(60)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)

    assert done.returncode == 128 + signal.SIGTERM
