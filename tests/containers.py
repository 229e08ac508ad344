"""Images and containers for tests, with podman, and nothing left of them.

    with engine() as podman:
        podman.run("images")

Images, containers and volumes are kept in a folder of their own, which goes at the end;
what else is on the machine is not looked at. Base images come from a registry if one
answers, otherwise they are made on the spot: Debian's from the system's own package
sources, with debootstrap, and MongoDB's from the mongod of ``tests/mongod.py``. What
cannot be had is a skipped component.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.mongod import LIBC_LOADER, LIBRARIES, Unavailable, fetched

NEEDED = ("podman", "debootstrap", "conmon", "iptables")
RUNTIMES = ("crun", "runc")
DRIVERS = ("overlay", "vfs")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
BASE = f"python:{VERSION}-slim"
OWN_BASE = "penstock-test-base"
MONGO = "mongo:8"
# The mongod of the tests wants libcurl4.
PACKAGES = "python3,python3-venv,libcurl4"
# Podman's own are more than a root without CAP_SYS_RESOURCE may set.
LIMITS = ["nofile=4096:4096", "nproc=4096:4096"]
PULL_S = 120.0
STEP_S = 600.0

# In place of the image's own, for a mongod with a C library beside it.
ENTRY = f"""#!/bin/sh
test "$1" != mongosh || exec "$@"
exec /mongo/libc/{LIBC_LOADER} \\
  --library-path /mongo/libc/{Path(LIBC_LOADER).parent}:{LIBRARIES} /mongo/mongod "$@"
"""
# It understands no JavaScript: it does what the text of --eval is there for.
MONGOSH = """#!/usr/local/penstock/bin/python3
import re, sys, pymongo
host, text = sys.argv[sys.argv.index("--host") + 1], sys.argv[-1]
name, member = re.search(r"_id: '(\\w+)', members: .*host: '([\\w:]+)'", text).groups()
with pymongo.MongoClient(host, directConnection=True) as client:
    try:
        client.admin.command("replSetGetStatus")
    except pymongo.errors.OperationFailure:
        members = [{"_id": 0, "host": member}]
        client.admin.command("replSetInitiate", {"_id": name, "members": members})
"""
MONGO_FILE = """FROM penstock-pipeline
USER root
COPY . /mongo/
RUN mv /mongo/mongosh /usr/bin/ && install -d -o 10001 -g 10001 /data/db
USER 10001:10001
VOLUME /data/db
ENTRYPOINT ["/mongo/entry"]
"""


class Engine:
    """Podman, with a place and settings of its own in ``folder``."""

    def __init__(self, folder: Path, driver: str) -> None:
        self.folder = folder
        self._settings = folder / "containers.conf"
        self._storage = folder / "storage.conf"
        self._storage.write_text(
            f'[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/images"\n'
            f'runroot = "{folder}/run"\n'
        )
        self.use(RUNTIMES[0])
        place = self.tried("info", "--format", "{{.Store.GraphRoot}}").stdout.strip()
        if place != f"{folder}/images":
            skip("podman keeps its images elsewhere than it is told")

    def use(self, runtime: str) -> None:
        """Have this program start containers."""
        self._settings.write_text(
            f"[containers]\ndefault_ulimits = {LIMITS}\n"
            f'[engine]\nruntime = "{runtime}"\nlock_type = "file"\n'
            f'tmp_dir = "{self.folder}/libpod"\n'
            '[network]\nnetwork_backend = "netavark"\n'
        )

    def run(self, *arguments: str, timeout_s: float = STEP_S) -> str:
        """What podman says to this; an error is one of the test."""
        done = self.tried(*arguments, timeout_s=timeout_s)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def tried(
        self, *arguments: str, timeout_s: float = STEP_S
    ) -> subprocess.CompletedProcess[str]:
        return self.program("podman", *arguments, timeout_s=timeout_s)

    def program(
        self, *command: str, timeout_s: float = STEP_S
    ) -> subprocess.CompletedProcess[str]:
        """Some other program that finds podman as it is here."""
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            env={
                **os.environ,
                "CONTAINERS_CONF": str(self._settings),
                "CONTAINERS_STORAGE_CONF": str(self._storage),
            },
        )

    def has(self, image: str) -> bool:
        return self.tried("image", "exists", image).returncode == 0

    def pulled(self, image: str) -> bool:
        """Whether there is a registry that has it."""
        try:
            return self.tried("pull", "-q", image, timeout_s=PULL_S).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def imported(self, tree: Path, image: str) -> None:
        """Make an image of a folder that holds a whole system."""
        tarball = self.folder / f"{image}.tar"
        done = self.program("tar", "-C", str(tree), "-cf", str(tarball), ".")
        assert done.returncode == 0, done.stderr
        self.run("import", "-q", str(tarball), image)
        tarball.unlink()

    def ended(self, container: str) -> tuple[int, float]:
        """Have a container stop as anybody would; its exit code and the seconds."""
        begun_s = time.monotonic()
        self.run("stop", "--time", "30", container)
        code = self.run("inspect", "--format", "{{.State.ExitCode}}", container)
        return int(code), time.monotonic() - begun_s

    def cleared(self) -> None:
        """End and forget the containers that are in this place."""
        for container in self.run("ps", "--all", "--quiet").split():
            self.tried("rm", "--force", "--volumes", "--time", "1", container)


@contextlib.contextmanager
def engine() -> Iterator[Engine]:
    """Podman with a base image in it; skips by name where that cannot be had."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        skip(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        skip("debootstrap needs root")
    folder = Path(tempfile.mkdtemp(prefix="penstock-containers-"))
    try:
        podman = working(folder)
        try:
            yield podman
        finally:
            podman.cleared()
    finally:
        removed(folder)


def skip(reason: str) -> NoReturn:
    pytest.skip(f"component: containers ({reason})")


def working(folder: Path) -> Engine:
    """The first way to run a container that works here, with a base image."""
    tree: Path | None = None
    problems = []
    for driver in DRIVERS:
        place = folder / driver
        place.mkdir()
        podman = Engine(place, driver)
        if not podman.pulled(BASE):
            tree = tree or debian(folder / "debian")
            podman.imported(tree, OWN_BASE)
        for runtime in filter(shutil.which, RUNTIMES):
            podman.use(runtime)
            tried = podman.tried("run", "--rm", "--network=none", base(podman), "true")
            if tried.returncode == 0:
                return podman
            problems.append(f"{driver}, {runtime}: {last_line(tried.stderr)}")
        removed(place)
    skip("; ".join(problems))


def base(podman: Engine) -> str:
    return BASE if podman.has(BASE) else OWN_BASE


def debian(tree: Path) -> Path:
    """A small Debian with Python, of the release that this machine has."""
    release = Path("/etc/os-release").read_text()
    suite = re.search(r"^VERSION_CODENAME=(\w+)$", release, re.MULTILINE)
    source = mirror()
    if suite is None or source is None:
        skip("no registry, and no Debian whose package sources are known")
    done = subprocess.run(
        [
            *("debootstrap", "--variant=minbase", f"--include={PACKAGES}"),
            *(suite[1], str(tree), source),
        ],
        capture_output=True,
        text=True,
        timeout=STEP_S,
    )
    if done.returncode != 0:
        skip(f"debootstrap: {last_line(done.stdout + done.stderr)}")
    if not (tree / "usr" / "bin" / f"python{VERSION}").exists():
        skip(f"no registry, and this Debian has no Python {VERSION}")
    for package in (tree / "var" / "cache" / "apt" / "archives").glob("*.deb"):
        package.unlink()
    return tree


def mirror() -> str | None:
    """Where this machine has its packages of Debian from."""
    asked = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)"],
        capture_output=True,
        text=True,
    )
    found = re.search(r"^(\S+/debian/?) ", asked.stdout, re.MULTILINE)
    return found and found[1]


def with_mongo(podman: Engine) -> None:
    """Have an image of MongoDB: the real one, or a stand-in around a real mongod."""
    if podman.pulled(MONGO):
        return
    try:
        home = fetched()
    except Unavailable as reason:
        pytest.skip(f"component: MongoDB ({reason})")
    if not (home / "libc").is_dir() or podman.has(BASE):
        pytest.skip("component: MongoDB (no image of it, and none can be made)")
    context = podman.folder / "mongo"
    context.mkdir()
    shutil.copytree(home / "libc", context / "libc", symlinks=True)
    shutil.copy(home / "mongod", context)
    for name, text in (("entry", ENTRY), ("mongosh", MONGOSH)):
        (context / name).write_text(text)
        (context / name).chmod(0o755)
    file = podman.folder / "Containerfile.mongo"
    file.write_text(MONGO_FILE)
    podman.run("build", "-q", "--network=none", "-t", MONGO, f"-f={file}", str(context))
    shutil.rmtree(context)


def eventually(
    what: Callable[[], bool], within_s: float, said: Callable[[], str]
) -> None:
    """Wait for it; ``said`` is told where it does not come."""
    deadline_s = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline_s, said()
        time.sleep(0.5)


def removed(folder: Path) -> None:
    """Take away a folder in which containers were, and what is mounted there."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    for place in sorted((line.split()[4] for line in mounts), reverse=True):
        if place.startswith(f"{folder}/"):
            subprocess.run(["umount", place], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]
