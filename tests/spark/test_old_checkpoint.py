"""What a pipeline of before left behind is refused, and the page says how to go on.

``four-queries.tar.gz`` is the data directory of a ``penstock up`` from when the
pipeline was four queries: 60 messages of two streams each, all of them done; without
its store.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import cli
from penstock.client import connect
from tests.serving import PENSTOCK, serving
from tests.spark.pipeline_scene import check, processed
from tests.spark.plain_pipeline import Expected
from tests.spark.test_pipeline_run import Stored, pipeline, until
from tests.spark.up_books import stored

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests" / "data" / "checkpoints" / "four-queries.tar.gz"
LIMIT_S = 120.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_up_refuses_and_leaves_everything_as_it_is(data: Path) -> None:
    before = contents(data)

    ended = CliRunner().invoke(cli, ["up", "--data", str(data), "--for", "1s"])

    assert ended.exit_code == 2
    assert "queries (tweets, running, hashtags, statistics) cannot be" in ended.stderr
    assert "hint: `penstock up`: give another --data" in ended.stderr
    assert contents(data) == before


@pytest.mark.slow
@pytest.mark.deep
def test_a_pipeline_of_its_own_goes_on_as_its_page_says(
    data: Path, postgres_database: str, tmp_path: Path
) -> None:
    checkpoint = data / "up" / "checkpoints"
    before = contents(checkpoint)
    with serving(tmp_path) as broker:
        with connect(broker.data) as client:
            payloads = [one.payload for one in stored(client, "firehose")]
        expected = Expected(payloads)
        refused = run(
            *("pipeline", "run", "--checkpoint", str(checkpoint)),
            *("--server", f"127.0.0.1:{broker.ports['native']}"),
            *("--store", postgres_database),
        )
        told_before = processed(broker)
        for command in steps():
            done = broker.run(*command)
            assert done.returncode == 0, done.stderr

        with pipeline(broker, postgres_database, tmp_path) as process:
            both = expected.count, expected.count
            until(lambda: processed(broker) == both, process, tmp_path)
            process.terminate()
            process.wait(LIMIT_S)

        assert refused.returncode == 2
        assert "was begun by an earlier version of the pipeline" in refused.stderr
        assert contents(checkpoint) == before
        assert told_before == both, "what was kept has told all of it"
        check(broker, Stored(postgres_database), payloads)


def steps() -> list[list[str]]:
    """The commands that the page gives, for all of the topics that it names."""
    page = (ROOT / "docs" / "pipeline.md").read_text()
    part = page.partition("### An older checkpoint")[2].partition("\n### ")[0]
    lines = re.findall(r"^penstock (.*)$", part, re.MULTILINE)
    delete, drop, _ = lines
    command, _, others = delete.partition("#")
    names = re.findall(r"\w+_stats", others)
    found = [command.split()]
    found += [command.replace("hashtag_stats", name).split() for name in names]
    return [*found, [*drop.split(" --because ")[0].split(), "--because", "x", "--yes"]]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *arguments], capture_output=True, text=True, timeout=LIMIT_S
    )


def contents(folder: Path) -> dict[Path, bytes]:
    return {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}
