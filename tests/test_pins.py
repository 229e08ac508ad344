"""What is installed: bounds in pyproject.toml, versions and hashes in constraints/."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MAKE = shutil.which("make") or "make"
ROOT = Path(__file__).resolve().parent.parent
PINS = sorted((ROOT / "constraints").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
_PIN = re.compile(r"(\S+)==(\S+) \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)")


def foreign(requirements: list[str]) -> list[Requirement]:
    parsed = map(Requirement, requirements)
    return [one for one in parsed if one.name != "penstock"]


def pins_of(text: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version, _ in _PIN.findall(text)}


REQUIRED = [
    *foreign(PROJECT["build-system"]["requires"]),
    *foreign(PROJECT["project"]["dependencies"]),
    *(one for extra in EXTRAS.values() for one in foreign(extra)),
]


@pytest.mark.parametrize("one", REQUIRED, ids=lambda one: one.name)
def test_a_requirement_has_a_lower_and_an_upper_bound(one: Requirement) -> None:
    assert {clause.operator for clause in one.specifier} == {">=", "<"}


@pytest.mark.parametrize("one", REQUIRED, ids=lambda one: one.name)
def test_a_requirement_is_pinned_within_its_bounds(one: Requirement) -> None:
    text = "".join(path.read_text() for path in PINS)

    version = pins_of(text).get(canonicalize_name(one.name))

    assert version is not None, "run: make pins"
    assert one.specifier.contains(version)


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_nothing_else_is_said(path: Path) -> None:
    text = path.read_text()

    rest = _PIN.sub("", text).splitlines()

    assert pins_of(text)
    assert rest == ["# Written by `make pins`; do not edit by hand."]


def test_the_same_version_is_pinned_everywhere() -> None:
    build, dev, bench = (
        pins_of((ROOT / "constraints" / f"{name}.txt").read_text())
        for name in ("build", "dev", "bench")
    )

    for one, other in ((build, dev), (build, bench), (dev, bench)):
        both = one.keys() & other.keys()
        assert {name: one[name] for name in both} == {
            name: other[name] for name in both
        }


def test_packages_of_the_system_are_named_before_they_are_installed(
    tmp_path: Path,
) -> None:
    tools = {
        "id": "#!/bin/sh\necho 0\n",
        "apt-get": f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n',
    }
    for name, text in tools.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    said = make(tmp_path, "system-packages")
    asked = (tmp_path / "asked").read_text()
    (tmp_path / "asked").unlink()
    refused = make(tmp_path, "system-packages", "SYSTEM_PACKAGES=no")

    assert "chromium mosquitto-clients" in said.splitlines()[0]
    assert "SYSTEM_PACKAGES=no" in said
    assert "chromium mosquitto-clients" in asked
    assert refused == ""
    assert not (tmp_path / "asked").exists()


def make(tools: Path, *arguments: str) -> str:
    """What make says where nothing is installed but the tools and a shell."""
    for name in ("bash", "env", "find", "test", "cat"):
        if not (tools / name).exists():
            (tools / name).symlink_to(f"/bin/{name}")
    done = subprocess.run(
        [MAKE, "-s", *arguments],
        cwd=ROOT,
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
