"""Every import contract holds, and is seen to fail on a planted violation.

Each case copies the package and its configuration, adds files, and runs the linter
there. Rooms that do not exist yet are created by the case.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
CONTRACTS = {
    contract["id"]: contract["name"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]["contracts"]
}


@dataclass(frozen=True, slots=True)
class Violation:
    """Files to add to the package, and the contracts which that breaks."""

    files: dict[str, str]
    breaks: set[str]


PLANTED = {
    "the log imports the broker": Violation(
        {"log/planted.py": "import penstock.broker", "broker/planted.py": ""},
        {"layers"},
    ),
    "the model imports its sibling": Violation(
        {"model/planted.py": "import penstock.clock"}, {"layers"}
    ),
    "the schemas import the model": Violation(
        {"schema/planted.py": "import penstock.model"}, {"layers"}
    ),
    "a type is asked by importing pydantic": Violation(
        {"schema/planted.py": "import pydantic"}, {"pydantic"}
    ),
    "accidents import the command line": Violation(
        {"torture/planted.py": "import penstock.cli"}, {"layers"}
    ),
    "a room is in no layer": Violation({"utils.py": ""}, {"layers"}),
    "one protocol imports another": Violation(
        {"wire/line/planted.py": "import penstock.wire.jsonq.packets"},
        {"protocols"},
    ),
    "the broker opens a socket": Violation(
        {"broker/planted.py": "import socket"}, {"io"}
    ),
    "an HTTP route opens a socket": Violation(
        {"http/planted.py": "import socket"}, {"io"}
    ),
    "an HTTP route starts a thread": Violation(
        {"http/planted.py": "import threading"}, {"io"}
    ),
    "HTTP imports a gateway": Violation(
        {"http/planted.py": "import penstock.gateway.outbox"}, {"layers"}
    ),
    "the command line imports a web server": Violation(
        {"cli/planted.py": "import uvicorn"}, {"web"}
    ),
    "the delivery room starts a thread": Violation(
        {"delivery/planted.py": "from concurrent.futures import Future"}, {"io"}
    ),
    "the log imports asyncio": Violation(
        {"log/planted.py": "import asyncio"}, {"io", "log-core"}
    ),
    "the log imports threading": Violation(
        {"log/planted.py": "from threading import Lock"}, {"io", "log-core"}
    ),
    "the log imports pyspark": Violation(
        {"log/planted.py": "import pyspark.sql"}, {"log-core", "spark"}
    ),
    "wire asks for the time": Violation(
        {"wire/line/planted.py": "import time"}, {"sans-io"}
    ),
    "wire replaces a file": Violation(
        {"wire/line/planted.py": "import penstock.files"}, {"sans-io"}
    ),
    "a gateway opens a socket": Violation(
        {"gateway/planted.py": "import socket"}, {"io", "sans-io"}
    ),
    "a gateway imports the clock": Violation(
        {"gateway/planted.py": "from penstock.clock import Clock"}, {"sans-io"}
    ),
    "the broker imports numpy": Violation(
        {"broker/planted.py": "import numpy"}, {"arrow"}
    ),
    "the command line imports pyarrow": Violation(
        {"cli/planted.py": "import pyarrow.parquet"}, {"arrow"}
    ),
    "importing the log loads pyarrow": Violation(
        {
            "log/__init__.py": "import penstock.log.arrow",
            "log/arrow.py": "import pyarrow",
        },
        {"arrow-lazy"},
    ),
    "a task of Spark imports the broker": Violation(
        {"spark/planted.py": "import penstock.broker.desk_views"}, {"executors"}
    ),
    "the command line imports DuckDB": Violation(
        {"cli/planted.py": "import duckdb"}, {"duckdb"}
    ),
    "a table asks the broker": Violation(
        {"table/planted.py": "import penstock.broker.desk"}, {"executors"}
    ),
    "the command line imports pyspark": Violation(
        {"cli/planted.py": "import pyspark"}, {"spark"}
    ),
}

ALLOWED = {
    "server/planted.py": "import asyncio, penstock.gateway.planted",
    "gateway/planted.py": "import penstock.broker.planted",
    "http/planted.py": "import asyncio, starlette.requests, penstock.broker.planted",
    "broker/planted.py": "import penstock.log",
    "client/planted.py": "import socket, threading",
    "embedded/__init__.py": "import threading",
    "testing/planted.py": "import asyncio, threading",
    "torture/planted.py": "import socket, penstock.testing.planted",
    "sql/planted.py": "import duckdb, pyarrow, penstock.table",
    "spark/planted.py": "import pyarrow, pyspark, penstock.log",
    "pipeline/planted.py": "import pyarrow, pyspark",
    "log/arrow.py": "import numpy, pyarrow",
}


def test_the_package_keeps_every_contract(tmp_path: Path) -> None:
    results = lint(copy_of_package(tmp_path))

    assert results == dict.fromkeys(CONTRACTS, "KEPT")


def test_exceptions_of_the_contracts_are_allowed(tmp_path: Path) -> None:
    project = copy_of_package(tmp_path)
    plant(project, ALLOWED)

    results = lint(project)

    assert results == dict.fromkeys(CONTRACTS, "KEPT")


@pytest.mark.parametrize("violation", PLANTED.values(), ids=PLANTED)
def test_a_planted_violation_breaks(violation: Violation, tmp_path: Path) -> None:
    project = copy_of_package(tmp_path)
    plant(project, violation.files)

    results = lint(project)

    assert {name for name in results if results[name] == "BROKEN"} == violation.breaks


def test_every_contract_has_a_planted_violation() -> None:
    planted = set().union(*(violation.breaks for violation in PLANTED.values()))

    assert planted == set(CONTRACTS)


@pytest.mark.parametrize("module", ["penstock", "penstock.log"])
def test_importing_loads_no_arrow(module: str) -> None:
    loaded = f"import sys, {module}; print(*sys.modules)"

    run = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )

    assert not {"numpy", "pyarrow", "asyncio"} & set(run.stdout.split())


def copy_of_package(tmp_path: Path) -> Path:
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(project: Path, files: dict[str, str]) -> None:
    """Append each text to its file, creating the packages on the way."""
    package = project / "src" / "penstock"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in path.relative_to(package).parents:
            (package / folder / "__init__.py").touch()
        with path.open("a") as file:
            file.write(f"\n{text}\n")


def lint(project: Path) -> dict[str, str]:
    """KEPT or BROKEN for each contract id."""
    run = subprocess.run(
        [LINT_IMPORTS, "--no-cache", "--no-logo"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    verdicts = dict(re.findall(r"^(.+) (KEPT|BROKEN)\b", run.stdout, re.MULTILINE))
    results = {id: verdicts[name] for id, name in CONTRACTS.items() if name in verdicts}
    assert results.keys() == CONTRACTS.keys(), run.stdout + run.stderr
    assert (run.returncode == 0) == ("BROKEN" not in results.values()), run.stdout
    return results
