"""What a server and an embedded broker leave on disk is for their owner alone."""

from __future__ import annotations

import grp
import json
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import penstock
from penstock.errors import InvalidOption
from penstock.http.key_file import ADMIN_TOKEN, TOKENS, KeyFile
from penstock.log import Columns, Log, LogOptions, Reader
from tests.serving import PENSTOCK, serving

ONLY_LINE = ("--no-json", "--no-maze", "--no-native", "--no-http", "--no-mqtt")
READ, FORBIDDEN = 10, 11


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    """The umask of somebody who shares everything."""
    before = os.umask(0)
    yield
    os.umask(before)


def until(done: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline_s = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline_s, "not within the time"
        time.sleep(0.005)


def modes(top: Path) -> dict[str, int]:
    """The mode of everything below ``top``, itself as ``.``."""
    return {
        str(path.relative_to(top)): stat.S_IMODE(path.lstat().st_mode)
        for path in (top, *top.rglob("*"))
    }


def others(top: Path, allowed: int = 0) -> dict[str, str]:
    """What group or others may do more than ``allowed``."""
    return {
        name: oct(mode) for name, mode in modes(top).items() if mode & 0o077 & ~allowed
    }


def read_as(account: int, data: Path) -> int:
    """What a process of that user and group gets to see."""
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(account)
        os.setuid(account)
        try:
            with Reader.open(data) as reader:
                os._exit(READ if reader.read("t", 0) else 1)
        except PermissionError:
            os._exit(FORBIDDEN)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def filled(data: Path, options: LogOptions | None = None) -> None:
    with Log.open(data, options) as log:
        log.create_topic("t")
        log.append("t", Columns([b"secret"]))
        log.roll("t")
        log.append("t", Columns([b"more"]))


def test_nobody_else_may_read_what_a_server_keeps(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.run("publish", "t", "secret", "--server", str(server.data))
        server.run("chain", "t@0")
        until((server.data / "chains.sqlite").exists)
        ready = stat.S_IMODE((tmp_path / "ready.json").stat().st_mode)
        while_running = others(server.data)
        server.stop()

        assert while_running == others(server.data) == {}
        assert ready == 0o600
        assert {"lock", "position", "journal", "http-admin-token"} <= set(
            modes(server.data)
        )


def test_nobody_else_may_read_what_an_embedded_broker_keeps(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data") as broker:
        broker.publish("t", b"secret")

    assert others(tmp_path / "data") == {}


def test_a_directory_of_an_earlier_version_is_closed_when_it_is_opened(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    filled(data)
    for path in (data, *data.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)

    Log.open(data).close()

    assert others(data) == {}


def test_a_folder_that_is_closed_already_is_not_walked(tmp_path: Path) -> None:
    """A start does not take longer for having many topics."""
    data = tmp_path / "data"
    filled(data)
    (topic,) = (data / "topics").iterdir()
    topic.chmod(0o755)

    Log.open(data).close()

    assert stat.S_IMODE(topic.stat().st_mode) == 0o755


def test_what_is_not_ours_in_the_directory_keeps_its_mode(tmp_path: Path) -> None:
    script = tmp_path / "data" / "run.sh"
    script.parent.mkdir(mode=0o755)
    script.touch()
    script.chmod(0o755)

    Log.open(script.parent).close()

    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert stat.S_IMODE(script.parent.stat().st_mode) == 0o700


def test_links_lead_nowhere_that_is_closed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    elsewhere.chmod(0o755)
    data = tmp_path / "data"
    data.mkdir()
    (data / "quarantine").symlink_to(elsewhere)
    link = tmp_path / "link"
    link.symlink_to(data)
    data.chmod(0o755)

    Log.open(link).close()

    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_tokens_that_were_open_are_closed(tmp_path: Path) -> None:
    KeyFile(tmp_path).begin(0)
    for name in (TOKENS, ADMIN_TOKEN):
        (tmp_path / name).chmod(0o644)

    KeyFile(tmp_path).begin(0)

    for name in (TOKENS, ADMIN_TOKEN):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_folder_that_everybody_shares_stays_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)

    Log.open(tmp_path).close()

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777
    assert set(others(tmp_path)) == {"."}


def test_a_group_may_read_if_it_is_named(tmp_path: Path) -> None:
    os.umask(0o077)  # that of somebody who shares nothing
    group = grp.getgrgid(os.getgid()).gr_name
    data = tmp_path / "data"
    filled(data)

    Log.open(data, LogOptions(group=group)).close()

    assert others(data, allowed=0o050) == {}
    assert modes(data)["topics"] == 0o750
    assert modes(data)["position"] == 0o640
    assert {mode for name, mode in modes(data).items() if name.endswith(".seg")} == {
        0o640
    }


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes somebody else")
@pytest.mark.parametrize("named", [False, True])
def test_another_account_reads_if_its_group_may(*, named: bool) -> None:
    other = 65_534
    group = grp.getgrgid(other).gr_name if named else None
    # Not below tmp_path, which is for root alone.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        filled(Path(folder) / "data", LogOptions(group=group))

        code = read_as(other, Path(folder) / "data")

    assert code == (READ if named else FORBIDDEN)


def test_a_group_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="no-such-group"):
        Log.open(tmp_path / "data", LogOptions(group="no-such-group"))

    assert not (tmp_path / "data").exists()


def test_a_server_that_is_no_terminal_prints_no_secret(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        until(lambda: "Ctrl-C" in server.log.read_text())

        assert "pk_" not in server.log.read_text()
        assert "penstock token show --link" in server.log.read_text()
        command = Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert b"pk_" not in command


@pytest.mark.parametrize("data", ["data", "other"])
def test_a_second_server_leaves_the_first_ones_ready_file_alone(
    tmp_path: Path, data: str
) -> None:
    ready = tmp_path / "ready.json"
    with serving(tmp_path, *ONLY_LINE) as server:
        said = ready.read_bytes()

        second = subprocess.run(
            [
                *(*PENSTOCK, "serve", "--data", str(tmp_path / data), *ONLY_LINE),
                *("--line-port", "0", "--ready-file", str(ready)),
            ],
            capture_output=True,
            timeout=60,
        )

        assert second.returncode != 0
        assert ready.read_bytes() == said
        assert json.loads(said)["pid"] == server.pid
        assert str(server.pid).encode() in second.stderr


def test_a_port_that_is_taken_costs_nobody_his_ready_file(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    with serving(tmp_path, *ONLY_LINE) as server:
        said = ready.read_bytes()

        second = subprocess.run(
            [
                *(*PENSTOCK, "serve", "--data", str(tmp_path / "other"), *ONLY_LINE),
                *("--line-port", str(server.ports["line"])),
                *("--ready-file", str(ready)),
            ],
            capture_output=True,
            timeout=60,
        )

        assert second.returncode != 0
        assert ready.read_bytes() == said
