"""``penstock torture`` holds on this disk, and sees what a broken broker does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import cli
from penstock.delivery.subscription import Subscription
from penstock.gateway.outbox import Outbox
from penstock.testing.crashdisk import CrashDisk
from penstock.torture import on_power
from penstock.torture.on_disk import OnDisk, SteppedServer
from penstock.torture.promise import PromiseBroken
from penstock.torture.scene import Scene
from penstock.torture.story import Story
from tests.effort import DEEP
from tests.serving import PENSTOCK

pytestmark = pytest.mark.slow

TIME = "2m" if DEEP else "1s"
SEED = Random().getrandbits(32) if DEEP else 5
LIMIT_S = 600
# A bug shows within so many runs.
RUNS = 20


def test_every_promise_holds_on_this_disk(tmp_path: Path) -> None:
    command = ["torture", str(tmp_path), "--for", TIME, "--seed", str(SEED)]
    ended = subprocess.run(
        [*PENSTOCK, *command], capture_output=True, text=True, timeout=LIMIT_S
    )

    report = ended.stdout
    assert ended.returncode == 0, report + ended.stderr
    assert "every promise held" in report
    assert f"seed      {SEED}" in report
    for accident in ("killed", "killed in a write", "stopped", "clock set"):
        assert accident in report
    for accident in ("disk full", "bit flipped", "power cut"):
        assert accident in report
    assert not list(tmp_path.iterdir()), "it leaves nothing behind"


def early(
    self: Outbox[Any],
    group: int,
    data: bytes,
    lost: bytes | None = None,
    mark: Any = None,
) -> None:
    self.now(data, mark)


def nothing(*_: object, **__: object) -> None:
    """What a missing part does."""


BUGS: dict[str, tuple[object, str, object]] = {
    "answers before the sync": (Outbox, "after", early),
    "a settlement is not recorded": (Subscription, "note", nothing),
    "the disk does not sync": (
        on_power,
        "CrashDisk",
        lambda: CrashDisk(honours_sync=False),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_broker_with_a_bug_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    monkeypatch.setattr(*BUGS[bug])

    assert any(finds(tmp_path, seed) for seed in range(RUNS))


def finds(directory: Path, seed: int) -> bool:
    """Whether a chapter on power does not end well."""
    try:
        Story(directory, seed, 0.0, nothing).on_power(0)
    except PromiseBroken:
        return True
    except KeyError:
        return False  # it fell over its own records: another run gets further
    return False


def test_a_confirmation_before_its_sync_is_reported_and_is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Outbox, "after", early)
    command = ["torture", str(tmp_path), "--for", "1s", "--seed", "0"]

    ended = CliRunner().invoke(cli, command)

    assert ended.exit_code == 1
    assert "A PROMISE IS BROKEN" in ended.stdout
    lost = r"broken    EventPlace\(topic='(orders|bøxes/2)', offset=\d+\) is lost"
    assert re.search(lost, ended.stdout)
    assert "where     chapter 0, on power: " in ended.stdout


# In the place of the program that serves: one whose log confirms what it never synced.
UNSYNCED = """
import runpy
from penstock.files import Files
from penstock.torture import notes

noting = notes.note_files

def unsynced(notes):
    noting(notes)
    Files.sync = lambda self, handle: None

notes.note_files = unsynced
runpy.run_module("penstock.torture.child", run_name="__main__", alter_sys=True)
"""


def test_a_server_that_confirms_before_it_syncs_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "unsynced.py"
    program.write_text(UNSYNCED)
    started = SteppedServer.__init__

    def faulty(self: SteppedServer, directory: Path, *flags: str) -> None:
        started(self, directory, *flags)
        python, _, _, *files = self.program
        self.program = (python, str(program), *files)

    monkeypatch.setattr(SteppedServer, "__init__", faulty)

    assert any(loses_power(tmp_path / str(seed), seed) for seed in range(10))


def loses_power(folder: Path, seed: int) -> bool:
    """Whether a server that loses power a few times has broken a promise."""
    random = Random(seed)
    world, scene = OnDisk(folder, random), Scene(random)
    try:
        scene.begin(world)
        for _ in range(4):
            scene.work(world, random.choice([20, 100, 300]))
            world.cut_power()
            scene.look(world)
    except PromiseBroken:
        return True
    finally:
        world.abandon()
    return False


def test_settings_of_its_user_are_for_other_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOST", "0.0.0.0")

    world = OnDisk(tmp_path / "server", Random(0))
    world.close()

    assert "127.0.0.1" in world.server.log.read_text()


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "penstock-torture-7" / "1" / "data"
    kept.mkdir(parents=True)

    ended = CliRunner().invoke(cli, ["torture", str(tmp_path), "--seed", "7"])

    assert ended.exit_code == 2
    assert "is there, perhaps of an earlier run" in ended.stderr
    assert kept.is_dir()
