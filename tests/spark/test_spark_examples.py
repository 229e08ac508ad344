"""The examples for Spark print what their page says; the job for Kafka runs."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from examples.spark import batch_count, typed_payloads, word_count
from examples.spark_from_kafka import kafka_job, penstock_job
from penstock.client import connect
from tests.serving import serving

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "spark"
SECTION = re.compile(r"^## (\S+\.py)$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = dict(SECTION.findall((FOLDER / "README.md").read_text()))
EXAMPLES = {
    f"{module.__name__.rpartition('.')[2]}.py": module
    for module in (batch_count, typed_payloads, word_count)
}
MAX_LINES = 65
WAIT_S = 120


def test_every_example_has_its_section() -> None:
    files = sorted(path.name for path in FOLDER.glob("*.py"))

    assert sorted(EXPECTED) == sorted(EXAMPLES) == files


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_what_its_section_says(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    capfd.readouterr()

    EXAMPLES[name].main(spark)

    assert capfd.readouterr().out == EXPECTED[name]


@pytest.mark.parametrize("module", [*EXAMPLES.values(), penstock_job])
def test_example_is_short(module: ModuleType) -> None:
    assert len(lines(module)) <= MAX_LINES


def test_only_format_and_address_of_the_job_differ() -> None:
    pair = lines(kafka_job), lines(penstock_job)

    changes = [line for line in difflib.unified_diff(*pair, n=0, lineterm="")][2:]

    changes = [line for line in changes if not line.startswith("@@")]
    assert changes == [
        '-FORMAT = "kafka"',
        '-SERVERS = "127.0.0.1:9092"',
        '+FORMAT = "penstock"',
        '+SERVERS = "127.0.0.1:8410"',
    ]
    page = Path(penstock_job.__file__).with_name("README.md").read_text()
    assert "```diff\n" + "\n".join(changes) + "\n```\n" in page


def test_the_job_that_was_written_for_kafka_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders = [(b"Ann", b"de", 120), (b"Bob", b"fr", 30), (b"Cid", b"de", 100.5)]
    form = b'{"customer": "%s", "country": "%s", "amount": %s}'
    payloads = [form % (a, b, str(c).encode()) for a, b, c in orders]
    checkpoint = str(tmp_path / "checkpoint")

    with serving(tmp_path) as broker, connect(broker.data) as client:
        servers = f"127.0.0.1:{broker.ports['native']}"
        keys: list[bytes | None] = [name for name, _, _ in orders]
        headers = [{"from": "shop"}, {}, {}]
        client.publish("orders", payloads, keys=keys, headers=headers)
        table = penstock_job.turnover(spark, servers).collect()
        for _ in range(2):  # the second time there is nothing to do
            query = penstock_job.copy_large(spark, servers, checkpoint)
            assert query.awaitTermination(WAIT_S)
        found = client.fetch("large-orders", 0, 1 << 40).batches

    assert [tuple(row) for row in table] == [("de", 220.5), ("fr", 30.0)]
    events = [event for batch in found for event in batch.events()]
    assert [(event.key, event.headers, event.payload) for event in events] == [
        (b"Ann", {"from": "shop"}, b'{"customer":"Ann","amount":120.0}'),
        (b"Cid", {}, b'{"customer":"Cid","amount":100.5}'),
    ]


def lines(module: ModuleType) -> list[str]:
    assert module.__file__ is not None
    return Path(module.__file__).read_text().splitlines()
