"""A PostgreSQL that Penstock owns: made, started, stopped, found again after a crash.

    DIRECTORY/
      lock            held while a process runs it                      (left behind)
      mark            names its processes, see orphans.py               (precious)
      password        for libpq's ``passfile``, readable by the owner   (precious)
      port            the one it had last                               (rebuilt)
      cluster/        PostgreSQL's own files                            (precious)
      postgresql.log  what it said

It listens on this machine only and wants a password, which the URL does not hold but
names the file of: who can read that file can connect.

Crash promise: ``fsync`` is on. The cluster is made aside and renamed when it is whole.
If the owner was killed and PostgreSQL still runs, the next ``start`` shuts it down and
starts it again; if PostgreSQL was killed, it recovers from its own log.

PostgreSQL does not run as root (see binaries.py). The user it runs as need not be able
to reach the data folder from the root of the file system, for only PostgreSQL looks at
the path: it is given the open folder instead, as ``/proc/self/fd/N``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from penstock.errors import StoreNotStarted
from penstock.files import (
    PRIVATE_UMASK,
    Files,
    make_directories,
    make_file,
    replace_file,
)
from penstock.log import DirectoryLock
from penstock.store import orphans
from penstock.store.binaries import Binaries, account_for, binaries_for
from penstock.store.retry import retried
from penstock.store.store import place_of

logger = logging.getLogger(__name__)

USER = DATABASE = "penstock"
HOST = "127.0.0.1"
# Below what the kernel gives to outgoing connections.
PORTS = (20_000, 32_000)
# Ports that are tried before giving up, if none was asked for.
PORT_TRIES = 20
# A machine under load takes seconds; recovery after a crash may take longer.
START_S = 120.0
INITDB_S = 300.0
STOP_S = 60.0
# What PostgreSQL said, kept over starts up to this; then the older half is dropped.
LOG_BYTES = 1 << 20
LOG_TAIL = 2_000
IN_USE = "could not create any TCP/IP sockets"

# What is ours in the directory; the cluster is PostgreSQL's.
LOG = "postgresql.log"
OWN_FILES = ("lock", "mark", "password", "port", LOG)

SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "10",
    "max_wal_senders": "10",
    "max_connections": "50",
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "jit": "off",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "logging_collector": "off",
}


class OwnPostgres:
    """One PostgreSQL over one directory; ``port`` None takes the last one, or any."""

    def __init__(self, directory: str | Path, *, port: int | None = None) -> None:
        self.directory = Path(directory).absolute()
        self._wanted = port or None
        self._lock: DirectoryLock | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """What to open it with; holds no secret, but the path of one."""
        passfile = quote(str(self.directory / "password"), safe="/")
        return f"postgresql://{USER}@{HOST}:{self.port}/{DATABASE}?passfile={passfile}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int | None:
        """The process of PostgreSQL, if it runs as far as is known."""
        running = self._process is not None and self._process.poll() is None
        return self._process.pid if running and self._process is not None else None

    def start(self) -> str:
        """Have it run and accept; returns its URL.

        Raises StoreNotStarted, DirectoryLocked if another process runs it, and
        MissingExtra.
        """
        if self.pid is not None:
            return self.url
        files = Files()
        make_directories(files, str(self.directory))
        files.secure(str(self.directory), OWN_FILES)
        if self._lock is None:
            self._lock = DirectoryLock(str(self.directory / "lock"))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self.url

    def wait(self, timeout_s: float) -> int | None:
        """The exit code, once it has ended; None if it still runs after the time."""
        if self._process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def stop(self) -> None:
        """Shut it down fast: transactions are aborted, what was committed is safe."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
            logger.info("stopped PostgreSQL", extra={"action": "store_stopped"})
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self) -> None:
        cluster = self.directory / "cluster"
        account = account_for(cluster)
        binaries = binaries_for(account)
        mark = self._kept("mark", f"penstock-{secrets.token_hex(8)}")
        self._end_orphans(mark, os.geteuid() if account.uid is None else account.uid)
        if not cluster.exists():
            self._make(binaries, cluster)
        with _opened(cluster) as handle:
            self._forget_reused_pid(cluster)
            self._run(binaries, handle, mark)
        self._have_database()
        logger.info(
            "PostgreSQL is ready on port %d", self.port, extra={"action": "store_ready"}
        )

    def _make(self, binaries: Binaries, cluster: Path) -> None:
        fresh = self.directory / "cluster.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        password = self._password()
        with (
            _opened(fresh) as folder,
            tempfile.TemporaryFile(dir=self.directory) as secret,
        ):
            secret.write(password.encode() + b"\n")
            secret.flush()
            for handle in (folder, secret.fileno()):
                binaries.account.own(handle)
            done = subprocess.run(
                [
                    *(binaries.program("initdb"), "-U", USER, "-A", "scram-sha-256"),
                    *("-D", _path(folder), f"--pwfile={_path(secret.fileno())}"),
                    *("--encoding=UTF8", "--no-locale", "--no-instructions"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=INITDB_S,
                pass_fds=(folder, secret.fileno()),
                cwd="/",
                **binaries.account.popen(),
            )
        if done.returncode != 0:
            said = done.stdout.decode(errors="replace").strip()[-LOG_TAIL:]
            raise StoreNotStarted(str(self.directory), f"initdb failed: {said}")
        files = Files()
        files.rename(str(fresh), str(cluster))
        files.sync_directory(str(self.directory))

    def _run(self, binaries: Binaries, handle: int, mark: str) -> None:
        """Start it at the port wanted, else the last one, else any that is free."""
        last = int(self._read("port") or 0)
        ports = [self._wanted] if self._wanted else [last] if last else []
        if self._wanted is None:
            ports += [random.randint(*PORTS) for _ in range(PORT_TRIES)]
        for port in ports:
            if self._accepts(binaries, handle, mark, port):
                self._port = port
                replace_file(Files(), str(self.directory / "port"), b"%d\n" % port)
                return
        raise StoreNotStarted(str(self.directory), f"port {ports[-1]} is in use")

    def _accepts(self, binaries: Binaries, handle: int, mark: str, port: int) -> bool:
        """Whether it runs now; False if the port is another process's."""
        options = {**SETTINGS, "port": str(port), "cluster_name": mark}
        said = self.directory / LOG
        _shorten(said)
        make_file(Files(), str(said))
        with said.open("ab") as log:
            begin = log.tell()
            self._process = process = subprocess.Popen(
                [
                    *(binaries.program("postgres"), "-D", _path(handle)),
                    *(part for pair in options.items() for part in _option(*pair)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(handle,),
                cwd="/",
                # Ctrl-C in a terminal is for the owner alone.
                start_new_session=True,
                umask=PRIVATE_UMASK,
                **binaries.account.popen(),
            )
        ended = orphans.wait_until(
            lambda: process.poll() is not None or self._is_ready(process.pid), START_S
        )
        if ended and process.poll() is None:
            return True
        text = said.read_bytes()[begin:].decode(errors="replace")
        if process.poll() is not None and IN_USE in text:
            return False
        reason = text.strip()[-LOG_TAIL:] if ended else f"not ready in {START_S:g} s"
        raise StoreNotStarted(str(self.directory), reason or "it ended at once")

    def _is_ready(self, pid: int) -> bool:
        """Whether the file that PostgreSQL keeps says so, of this very process."""
        lines = _lines(self.directory / "cluster" / "postmaster.pid")
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _have_database(self) -> None:
        # Here, because the driver is an extra.
        from penstock.store.postgres import connected

        url = self.url.replace(f"/{DATABASE}?", "/postgres?")
        with retried(lambda: connected(url), place_of(url), START_S) as connection:
            there = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)
            ).fetchone()
            if there is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _end_orphans(self, mark: str, uid: int) -> None:
        found = orphans.end_all(mark, uid)
        if found:
            logger.warning(
                "ended a PostgreSQL that its owner had left (pid %d)",
                found[0],
                extra={"action": "store_orphan_ended"},
            )

    def _forget_reused_pid(self, cluster: Path) -> None:
        """Remove a stale postmaster.pid if its number is another process's now.

        None of ours runs, see ``_end_orphans``; PostgreSQL would take the other one
        for itself. A number that no process has it judges better on its own.
        """
        lines = _lines(cluster / "postmaster.pid")
        if lines and lines[0].isdecimal() and Path("/proc", lines[0]).exists():
            (cluster / "postmaster.pid").unlink(missing_ok=True)

    def _password(self) -> str:
        line = self._kept("password", f"*:*:*:{USER}:{secrets.token_urlsafe(24)}")
        return line.rpartition(":")[2]

    def _kept(self, name: str, fresh: str) -> str:
        """A line that is written once, for the owner's eyes."""
        path = self.directory / name
        if not path.exists():
            replace_file(Files(), str(path), fresh.encode() + b"\n")
        return path.read_text().strip()

    def _read(self, name: str) -> str:
        path = self.directory / name
        return path.read_text().strip() if path.exists() else ""


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _path(handle: int) -> str:
    return f"/proc/self/fd/{handle}"


def _option(name: str, value: str) -> tuple[str, str]:
    return "-c", f"{name}={value}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _shorten(path: Path) -> None:
    if path.exists() and path.stat().st_size > LOG_BYTES:
        replace_file(Files(), str(path), path.read_bytes()[-LOG_BYTES // 2 :])


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
