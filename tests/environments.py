"""Environments of Python that hold Penstock, one extra, and nothing else.

Made of what is installed here: the packages that an extra asks for, and those that they
ask for, are linked into an environment of their own, so it takes a moment and needs no
network. What is not asked for is not there.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def environment(folder: Path, wheel: Path, extra: str = "") -> Path:
    """The directory of the commands of a new environment."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"),
            *("--python", str(folder / "bin" / "python")),
            *("install", "--no-deps", "--no-index", str(wheel)),
        ],
        check=True,
        capture_output=True,
    )
    for name in needed(wheel, extra):
        _link(name, site)
    return folder / "bin"


def needed(wheel: Path, extra: str) -> set[str]:
    """All packages that Penstock needs with an extra, but for itself."""
    (found,) = metadata.Distribution.discover(name="penstock", path=[str(wheel)])
    todo = list(_wanted(found.requires or [], {extra}))
    done: set[tuple[str, str]] = set()
    while todo:
        name, asked = todo.pop()
        if (name, asked) in done:
            continue
        done.add((name, asked))
        own = found if name == "penstock" else metadata.distribution(name)
        todo += _wanted(own.requires or [], {asked})
    return {name for name, _ in done} - {"penstock"}


def _wanted(requirements: list[str], extras: set[str]) -> Iterator[tuple[str, str]]:
    for one in map(Requirement, requirements):
        fits = one.marker is None or any(
            one.marker.evaluate({"extra": extra}) for extra in extras
        )
        if fits:
            name = canonicalize_name(one.name)
            yield name, ""
            yield from ((name, extra) for extra in one.extras)


def _link(name: str, site: Path) -> None:
    """Let a package be in the other environment as it is here."""
    found = metadata.distribution(name)
    for file in found.files or []:
        top = file.parts[0]
        source, target = Path(str(found.locate_file(top))), site / top
        if top not in ("..", "__pycache__") and not target.exists():
            target.symlink_to(source)
