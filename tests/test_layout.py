"""Files are where their names say, and none grows past the wall."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "penstock"
UNIT_TESTS = ROOT / "tests" / "unit"
MAX_LINES = 400

# Modules without a unit test of their own: path below src/penstock -> reason.
NO_UNIT_TEST: dict[str, str] = {
    f"pipeline/{name}.py": "nothing of it runs without Spark: tests/spark"
    for name in (
        *("changes", "documents", "engagement", "hashtags", "run", "running"),
        *("statistics", "users"),
    )
}

# Unit tests without a module of that name: path below tests/unit -> reason.
NO_MODULE: dict[str, str] = {}

# Modules longer than MAX_LINES: path below src/penstock -> reason.
LONG: dict[str, str] = {
    "errors.py": "the whole tree of errors is drawn and found in one place",
}

# What would tie a committed file to one machine or one package index.
MACHINE_BOUND = re.compile(
    r"(?<![\w.*/)}\]>-])/(?:home|opt|root|work|Users)/\w"
    r"|pypi\.org|pythonhosted\.org|anaconda\.org"
    r"|--(?:(?:extra-)?index-url|find-links|trusted-host)\b|\bfile:///"
)


def modules() -> list[Path]:
    return sorted(
        path.relative_to(PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
    )


def unit_tests() -> list[Path]:
    return sorted(
        path.relative_to(UNIT_TESTS) for path in UNIT_TESTS.rglob("test_*.py")
    )


def test_every_module_has_its_unit_test() -> None:
    missing = [
        f"{module} wants tests/unit/{unit_test_of(module)}"
        for module in modules()
        if has_code(PACKAGE / module)
        and module.as_posix() not in NO_UNIT_TEST
        and not (UNIT_TESTS / unit_test_of(module)).exists()
    ]

    assert not missing, "\n".join(missing)


def test_every_unit_test_has_its_module() -> None:
    known = {unit_test_of(module) for module in modules()}
    strays = [
        f"tests/unit/{test} mirrors no module"
        for test in unit_tests()
        if test not in known and test.as_posix() not in NO_MODULE
    ]

    assert not strays, "\n".join(strays)


def test_no_module_is_too_long() -> None:
    lengths = {
        path.relative_to(PACKAGE).as_posix(): len(path.read_text().splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    too_long = [
        f"{name} has {length} lines, more than {MAX_LINES}"
        for name, length in sorted(lengths.items())
        if length > MAX_LINES and name not in LONG
    ]

    assert not too_long, "\n".join(too_long)


def test_exceptions_name_files_that_exist() -> None:
    paths = [PACKAGE / name for name in [*NO_UNIT_TEST, *LONG]]
    paths += [UNIT_TESTS / name for name in NO_MODULE]

    assert [path for path in paths if not path.exists()] == []


def test_no_file_is_bound_to_a_machine_or_package_index() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files_of_the_checkout()
        for match in MACHINE_BOUND.finditer(text_of(path))
    ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "data in " + "/home" + "/me/data",
        "cd " + "/opt" + "/penstock",
        "https://" + "pypi" + ".org/simple",
        "pip install --" + "index-url x",
        "x @ file:" + "///somewhere",
    ],
)
def test_machine_bound_text_is_recognised(text: str) -> None:
    assert MACHINE_BOUND.search(text)


@pytest.mark.parametrize(
    "text", ["#!/usr/bin/env bash", "src/work/log", "$(HOME)/work/x", "a topic /work"]
)
def test_other_paths_are_left_alone(text: str) -> None:
    assert not MACHINE_BOUND.search(text)


def unit_test_of(module: Path) -> Path:
    return module.with_name(f"test_{module.stem.lstrip('_')}.py")


def has_code(path: Path) -> bool:
    """Whether the module defines a function or a class."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, kinds) for node in ast.parse(path.read_text()).body)


def files_of_the_checkout() -> list[Path]:
    """Committed files, and new ones that git would take."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if run.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in run.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def text_of(path: Path) -> str:
    """The text of the file, or nothing where it is binary."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        return ""
