"""Every import contract holds, and is seen to fail on a planted violation.

The graph of all imports is made once; each case adds modules and imports to a copy of
it, and has the linter judge that.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph
from importlinter import configuration
from importlinter.application import use_cases
from importlinter.application.app_config import settings
from importlinter.application.user_options import UserOptions

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Violation:
    """What modules are to import besides, and the contracts which that breaks."""

    imports: dict[str, list[str]]
    breaks: set[str]


PLANTED = {
    "the log imports the broker": Violation(
        {"log.planted": ["penstock.broker"], "broker.planted": []},
        {"layers"},
    ),
    "the model imports its sibling": Violation(
        {"model.planted": ["penstock.clock"]}, {"layers"}
    ),
    "the schemas import the model": Violation(
        {"schema.planted": ["penstock.model"]}, {"layers"}
    ),
    "a type is asked by importing pydantic": Violation(
        {"schema.planted": ["pydantic"]}, {"pydantic"}
    ),
    "accidents import the command line": Violation(
        {"torture.planted": ["penstock.cli"]}, {"layers"}
    ),
    "a room is in no layer": Violation({"utils": []}, {"layers"}),
    "one protocol imports another": Violation(
        {"wire.line.planted": ["penstock.wire.jsonq.packets"]},
        {"protocols"},
    ),
    "the broker opens a socket": Violation({"broker.planted": ["socket"]}, {"io"}),
    "an HTTP route opens a socket": Violation({"http.planted": ["socket"]}, {"io"}),
    "an HTTP route starts a thread": Violation({"http.planted": ["threading"]}, {"io"}),
    "HTTP imports a gateway": Violation(
        {"http.planted": ["penstock.gateway.outbox"]}, {"layers"}
    ),
    "the command line imports a web server": Violation(
        {"cli.planted": ["uvicorn"]}, {"web"}
    ),
    "the delivery room starts a thread": Violation(
        {"delivery.planted": ["concurrent"]}, {"io"}
    ),
    "the log imports asyncio": Violation(
        {"log.planted": ["asyncio"]}, {"io", "log-core"}
    ),
    "the log imports threading": Violation(
        {"log.planted": ["threading"]}, {"io", "log-core"}
    ),
    "the log imports pyspark": Violation(
        {"log.planted": ["pyspark"]}, {"log-core", "spark"}
    ),
    "wire asks for the time": Violation({"wire.line.planted": ["time"]}, {"sans-io"}),
    "wire replaces a file": Violation(
        {"wire.line.planted": ["penstock.files"]}, {"sans-io"}
    ),
    "a gateway opens a socket": Violation(
        {"gateway.planted": ["socket"]}, {"io", "sans-io"}
    ),
    "a gateway imports the clock": Violation(
        {"gateway.planted": ["penstock.clock"]}, {"sans-io"}
    ),
    "the broker imports numpy": Violation({"broker.planted": ["numpy"]}, {"arrow"}),
    "the command line imports pyarrow": Violation(
        {"cli.planted": ["pyarrow"]}, {"arrow"}
    ),
    "importing the log loads pyarrow": Violation(
        {"log.batch": ["penstock.log.arrow"]}, {"arrow-lazy"}
    ),
    "the broker reaches below the door of the log": Violation(
        {"broker.planted": ["penstock.log.journal"]}, {"log-door"}
    ),
    "the command line reads the format of a group": Violation(
        {"cli.planted": ["penstock.log.journal.group"]}, {"log-door"}
    ),
    "a task of Spark imports the broker": Violation(
        {"spark.planted": ["penstock.broker.broker"]}, {"executors"}
    ),
    "a client imports the broker": Violation(
        {"client.planted": ["penstock.broker.broker"]}, {"no-broker"}
    ),
    "a client reaches the broker by way of the desk": Violation(
        {"client.planted": ["penstock.desk.desk"]}, {"no-broker"}
    ),
    "a view knows a subscription": Violation(
        {"desk.views.planted": ["penstock.delivery.subscription"]}, {"no-broker"}
    ),
    "a codec knows a session": Violation(
        {"wire.mqtt.planted": ["penstock.sessions.session"]}, {"no-broker"}
    ),
    "the broker asks the desk": Violation(
        {"broker.planted": ["penstock.desk.views"]}, {"layers"}
    ),
    "a session knows its broker": Violation(
        {"sessions.planted": ["penstock.broker.broker"]}, {"layers"}
    ),
    "the command line imports DuckDB": Violation(
        {"cli.planted": ["duckdb"]}, {"duckdb"}
    ),
    "a table asks the broker": Violation(
        {"table.planted": ["penstock.desk.desk"]}, {"executors"}
    ),
    "the command line imports pyspark": Violation(
        {"cli.planted": ["pyspark"]}, {"spark"}
    ),
}

ALLOWED = {
    "server.planted": ["asyncio", "penstock.gateway.planted"],
    "gateway.planted": ["penstock.broker.planted"],
    "http.planted": ["asyncio", "starlette", "penstock.broker.planted"],
    "broker.planted": ["penstock.log", "penstock.sessions", "penstock.access.accounts"],
    "desk.planted": ["penstock.broker.planted", "penstock.desk.views"],
    "client.planted": ["socket", "threading", "penstock.desk.views.letters"],
    "embedded": ["threading"],
    "testing.planted": ["asyncio", "threading"],
    "torture.planted": ["socket", "penstock.testing.planted"],
    "sql.planted": ["duckdb", "pyarrow", "penstock.table"],
    "spark.planted": ["pyarrow", "pyspark", "penstock.log"],
    "pipeline.planted": ["pyarrow", "pyspark"],
    "log.arrow": ["numpy", "pyarrow"],
}


@pytest.fixture(scope="module")
def options() -> UserOptions:
    configuration.configure()
    options = use_cases.read_user_options(str(ROOT / "pyproject.toml"))
    use_cases._register_contract_types(options)
    return options


@pytest.fixture(scope="module")
def imports() -> ImportGraph:
    return build_graph("penstock", include_external_packages=True)


@pytest.mark.slow
def test_the_package_keeps_every_contract(
    options: UserOptions, imports: ImportGraph
) -> None:
    assert broken(options, imports) == set()


def test_exceptions_of_the_contracts_are_allowed(
    options: UserOptions, imports: ImportGraph
) -> None:
    assert broken(options, planted(imports, ALLOWED)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("violation", PLANTED.values(), ids=PLANTED)
def test_a_planted_violation_breaks(
    violation: Violation, options: UserOptions, imports: ImportGraph
) -> None:
    graph = planted(imports, violation.imports)

    assert broken(options, graph, *violation.breaks) == violation.breaks


def test_every_contract_has_a_planted_violation(options: UserOptions) -> None:
    bitten = set().union(*(violation.breaks for violation in PLANTED.values()))

    assert bitten == {contract["id"] for contract in options.contracts_options}


# Those who put a broker together, or show what a log is; all others are handed one.
OPENS_A_LOG = {
    "cli/demo.py",
    "cli/demo_writer.py",
    "cli/offline.py",
    "embedded/local_broker.py",
    "server/run.py",
    "torture/on_power.py",
}
# Parts of a log that nobody reaches for through it.
PARTS = ("intake", "flusher", "catalog", "journal")
INSIDE = re.compile(rf"\blog\.(?:{'|'.join(PARTS)})\b|\.tail\.unwritten")


@pytest.mark.slow
def test_few_places_know_more_of_a_log_than_its_protocol() -> None:
    found = {
        name
        for name, text in modules().items()
        if "penstock.log import" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == "penstock.log"
        if "Log" in {alias.name for alias in node.names}
    }

    assert found == OPENS_A_LOG


@pytest.mark.slow
def test_nobody_reaches_through_a_log() -> None:
    found = {
        name
        for name, text in modules().items()
        # Comments may speak of it; code may be broken over lines.
        if INSIDE.search(re.sub(r"\n *", "", text))
        and INSIDE.search(ast.unparse(ast.parse(text)))
    }

    assert not found


@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_a_log_is_called_so_there(part: str) -> None:
    inside = (ROOT / "src/penstock/log").glob("*.py")

    assert re.search(rf"self\.{part}\b[^=\n]* = ", "".join(map(Path.read_text, inside)))
    assert INSIDE.search(f"broker.log.{part}.group")


def test_every_protocol_is_in_the_contract_of_protocols() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = [one for one in about["contracts"] if one["id"] == "protocols"]
    folders = (ROOT / "src/penstock/wire").glob("*/__init__.py")

    assert set(contract["modules"]) == {
        f"penstock.wire.{p.parent.name}" for p in folders
    }


@cache
def modules() -> dict[str, str]:
    """All modules of the package outside of the log."""
    package = ROOT / "src" / "penstock"
    return {
        str(path.relative_to(package)): path.read_text()
        for path in package.rglob("*.py")
        if not path.is_relative_to(package / "log")
    }


@pytest.mark.slow
@pytest.mark.parametrize("module", ["penstock", "penstock.log"])
def test_importing_loads_no_arrow(module: str) -> None:
    loaded = f"import sys, {module}; print(*sys.modules)"

    run = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )

    assert not {"numpy", "pyarrow", "asyncio"} & set(run.stdout.split())


def planted(imports: ImportGraph, more: Mapping[str, list[str]]) -> ImportGraph:
    """The graph with more imports; modules that are missing are added."""
    graph = deepcopy(imports)
    for importer, imported in more.items():
        name = f"penstock.{importer}"
        graph.add_module(name)
        for one in imported:
            if one not in graph.modules:
                graph.add_module(one, is_squashed=not one.startswith("penstock."))
            graph.add_import(importer=name, imported=one)
    return graph


def broken(options: UserOptions, graph: ImportGraph, *asked: str) -> set[str]:
    """The ids of the contracts that the graph breaks, of all or of those asked for."""

    class Builder:
        def build(self, **_: object) -> ImportGraph:
            return graph

    settings.configure(GRAPH_BUILDER=Builder())
    report = use_cases.create_report(options, asked, cache_dir=None)
    assert not report.could_not_run, report.invalid_contract_options
    ids = {contract["name"]: contract["id"] for contract in options.contracts_options}
    checks = list(report.get_contracts_and_checks())
    assert len(checks) == len(asked or ids)
    return {ids[contract.name] for contract, check in checks if not check.kept}
