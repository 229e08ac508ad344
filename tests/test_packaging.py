"""The wheel: what it holds, and what it does where Spark is not installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.effort import DEEP
from tests.environments import environment

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "src" / "penstock" / "http" / "static"
TIMEOUT_S = 300.0

IMPORTS = """
import penstock, pyspark_penstock, penstock.spark

for ask in (
    lambda: penstock.spark.session,
    lambda: penstock.spark.register(None),
    lambda: pyspark_penstock.DefaultSource,
):
    try:
        ask()
    except penstock.errors.MissingExtra as error:
        print(error)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
        *("--no-build-isolation", "--wheel-dir", str(directory), str(ROOT)),
    )
    (found,) = directory.glob("penstock-*.whl")
    return found


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_what_spark_looks_for(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "penstock",
        "pyspark_penstock.py",
    }
    assert {"penstock/spark/source.py", "penstock/spark/log4j2.properties"} < set(names)


@pytest.mark.slow
@pytest.mark.skipif(
    not (STATIC / "index.html").exists(),
    reason="component: dashboard (not built, run make web)",
)
def test_the_wheel_holds_the_dashboard_and_none_of_its_sources(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        page = archive.read("penstock/http/static/index.html").decode()

    held = {name for name in names if name.startswith("penstock/http/static/")}
    scripts = re.findall(r'src="/([^"]+)"', page)
    assert len(scripts) == 2
    assert {f"penstock/http/static/{name}" for name in scripts} < held
    assert not [name for name in names if name.endswith((".svelte", ".ts", ".map"))]


def test_what_the_dashboard_is_built_with_comes_from_no_fixed_place() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_bytes())

    packages = {name: one for name, one in lock["packages"].items() if name}
    assert len(packages) > 10
    assert [name for name, one in packages.items() if "resolved" in one] == []
    assert [name for name, one in packages.items() if "integrity" not in one] == []


# What each extra is for, as a program that ends well where it is installed alone.
USES = {
    "": "import penstock.client.aio, penstock.server.run, penstock.testing",
    "arrow": "import penstock.log.arrow, penstock.table.columns",
    "otel": "from penstock.tracing import of_options; from penstock.tracing.options "
    "import TracingOptions; of_options(TracingOptions(endpoint='http://127.0.0.1:1')).close()",
    "pipeline": "import penstock.cli.up_run, penstock.pipeline.run, penstock.cdc.run, "
    "penstock.ingest.run, penstock.tweets.run, penstock.store.mongo, "
    "penstock.store.postgres, penstock.store.own",
    "spark": "import penstock.spark.source, penstock.spark.sql; penstock.spark.session",
    "sql": "import penstock.sql.engine, penstock.cli.sql_shell; "
    "penstock.cli.sql_shell._session(list)",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra",
    [pytest.param(one, marks=[pytest.mark.deep] if one else []) for one in USES],
)
def test_each_extra_is_enough_by_itself(
    wheel: Path, tmp_path: Path, extra: str
) -> None:
    """With what it asks for, as it is installed here; for real in ``make deep``."""
    if DEEP:
        run(sys.executable, "-m", "venv", str(tmp_path / "env"))
        commands = tmp_path / "env" / "bin"
        named = f"{wheel}[{extra}]" if extra else str(wheel)
        run(str(commands / "python"), "-m", "pip", "install", "--quiet", named)
    else:
        commands = environment(tmp_path / "env", wheel, extra)

    run(str(commands / "python"), "-I", "-c", USES[extra])
    run(str(commands / "penstock"), "--help")
    published = subprocess.run(
        ["sh", "-ec", SESSION],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"},
    )

    assert published.stdout.splitlines()[-2] == "hello", published.stderr


SESSION = """
penstock serve --background --data data --no-line --no-json --no-maze --no-mqtt \\
  --native-port 0 --http-port 0
penstock publish t hello --data data
penstock subscribe t --from earliest --count 1 --data data
penstock stop --data data
"""


def test_every_extra_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert set(project["optional-dependencies"]) - {"bench", "dev"} == {*USES} - {""}


@pytest.mark.slow
def test_without_spark_it_can_be_imported_and_says_what_is_missing(
    wheel: Path, tmp_path: Path
) -> None:
    run(sys.executable, "-m", "venv", str(tmp_path / "env"))
    python = str(tmp_path / "env" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel))

    said = run(python, "-I", "-c", IMPORTS)

    assert (
        said.splitlines()
        == [
            "Spark needs pyspark, which is not installed: pip install 'penstock[spark]'"
        ]
        * 3
    )
