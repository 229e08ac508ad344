"""Real processes: small ones, ended by their own hand or by ours."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.supervisor.part import Part, Places
from penstock.supervisor.process import LONGEST_PAUSE_S, STEADY_S, PartState, Process

READY = """
import json, os, sys, time
path = sys.argv[sys.argv.index("--ready-file") + 1]
with open(path + ".new", "w") as file:
    json.dump({"pid": os.getpid(), "url": "here"}, file)
os.rename(path + ".new", path)
"""
SLEEP = "import time; time.sleep(60)\n"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
PATIENCE_S = 30.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []
    places = Places(tmp_path)
    places.make()

    def process(script: str, **options: Any) -> Process:
        part = Part(name="a", command=(sys.executable, "-c", script), **options)
        made.append(Process(part, places, clock))
        return made[-1]

    yield process
    for one in made:
        one.tell_to_end()
        one.wait(0)


def until(process: Process, done: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline_s, process.state
        process.look()
        time.sleep(0.005)


def test_a_part_is_ready_when_it_says_so(make: Callable[..., Process]) -> None:
    process = make(READY + SLEEP)
    states = [process.state]

    process.start()
    states.append(process.state)
    until(process, lambda: process.state is PartState.READY)
    process.look()

    assert states[0] is PartState.WAITING
    assert states[1] in (PartState.STARTING, PartState.READY)
    assert process.ready["url"] == "here"
    assert process.was_ready


def test_what_another_process_said_does_not_count(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    process = make(SLEEP)
    process.start()
    Places(tmp_path).ready("a").write_text('{"pid": 1}')

    assert process.state is PartState.STARTING


@pytest.mark.slow
def test_a_part_that_dies_is_started_again_with_growing_pauses(
    make: Callable[..., Process], clock: Clock
) -> None:
    process = make("print('a reason')\nraise SystemExit(3)", says_ready=False)
    process.start()
    pauses = []
    for _ in range(7):
        until(process, lambda: process.state is PartState.PAUSED)
        began_s, restarts = clock.now_s, process.restarts
        while process.restarts == restarts:
            clock.now_s += 0.25
            process.look()
        pauses.append(clock.now_s - began_s)

    assert pauses == [0.5, 1, 2, 4, 8, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert (process.exit_code, process.last_line()) == (3, "a reason")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("print('one')\nprint('another')\nraise SystemExit(3)", "another"),
        ("raise SystemExit(3)", "ended with 3"),
        ("print('one')\nimport os\nos.kill(os.getpid(), 9)", "ended by SIGKILL"),
    ],
)
def test_how_it_ended_is_told(
    make: Callable[..., Process], script: str, reason: str
) -> None:
    process = make(script, says_ready=False)
    process.start()

    until(process, lambda: process.state is PartState.PAUSED)

    assert process.reason() == reason


def test_what_it_has_started_ends_with_it(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    process = make(
        f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEP!r}])
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
""",
        says_ready=False,
    )
    process.start()

    until(process, lambda: process.state is PartState.PAUSED)

    child = int(process.last_line())
    until(process, lambda: not _runs(child))


def test_one_waits_for_what_it_needs(
    make: Callable[..., Process], clock: Clock
) -> None:
    process = make("", says_ready=False)
    process.start()
    until(process, lambda: process.state is PartState.PAUSED)
    clock.now_s += 100

    process.look(startable=False)
    assert process.state is PartState.PAUSED
    process.look(startable=True)

    assert process.restarts == 1


def test_one_that_ran_for_long_is_started_again_soon(
    make: Callable[..., Process], clock: Clock
) -> None:
    process = make("", says_ready=False)
    process.start()
    until(process, lambda: process.state is PartState.PAUSED)
    clock.now_s += 100
    process.look()
    clock.now_s += STEADY_S
    until(process, lambda: process.state is PartState.PAUSED)

    clock.now_s += 0.5
    process.look()

    assert process.restarts == 2


def test_one_that_may_end_is_not_started_again(make: Callable[..., Process]) -> None:
    process = make("", says_ready=False, ends=True)

    process.start()

    until(process, lambda: process.state is PartState.ENDED)


def test_a_part_is_told_to_end(make: Callable[..., Process]) -> None:
    process = make(READY + SLEEP)
    process.start()
    until(process, lambda: process.is_ready)

    process.tell_to_end()

    assert process.wait(PATIENCE_S)
    assert process.exit_code == -signal.SIGTERM
    assert process.state is PartState.ENDED


def test_one_that_does_not_listen_is_ended_for_good(
    make: Callable[..., Process],
) -> None:
    process = make(DEAF + READY + SLEEP)
    process.start()
    until(process, lambda: process.is_ready)

    process.tell_to_end()

    assert not process.wait(0.05)
    assert process.exit_code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("before", "orphaned"), [("", signal.SIGTERM), (DEAF, signal.SIGKILL)]
)
def test_parts_end_with_the_one_that_started_them(
    tmp_path: Path, before: str, orphaned: int
) -> None:
    script = f"""
import sys, time
from pathlib import Path
from penstock.supervisor.part import Part, Places
from penstock.supervisor.process import Process
places = Places(Path({str(tmp_path)!r}))
places.make()
process = Process(Part(name="a", command=(sys.executable, "-c", {before + SLEEP!r}),
                       says_ready=False, says_status=False,
                       orphaned={int(orphaned)}), places)
process.start()
print(process.pid, flush=True)
time.sleep(60)
"""
    read, write = os.pipe()
    parent = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", script],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)],
    )
    os.close(write)
    with os.fdopen(read) as output:
        child = int(output.readline())

    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)

    deadline_s = time.monotonic() + PATIENCE_S
    while _runs(child):
        assert time.monotonic() < deadline_s, "it goes on alone"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_one_that_waits_to_be_started_again_may_be_told_to_end(
    make: Callable[..., Process], clock: Clock
) -> None:
    process = make("raise SystemExit(3)", says_ready=False)
    process.start()
    until(process, lambda: process.state is PartState.PAUSED)

    process.tell_to_end()
    clock.now_s += 100
    process.look()

    assert process.state is PartState.ENDED
    assert process.restarts == 0


def test_a_hint_is_not_what_went_wrong(make: Callable[..., Process]) -> None:
    script = "print('error: it broke')\nprint('hint: mend it')\nraise SystemExit(2)"
    process = make(script, says_ready=False)
    process.start()
    until(process, lambda: process.state is PartState.PAUSED)

    assert process.last_line() == "error: it broke"
