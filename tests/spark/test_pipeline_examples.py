"""The examples for the pipeline print what their page says."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.pipeline import sentiment_classifier, topics_and_store
from penstock.pipeline.application import Application, OpenStore
from penstock.pipeline.documents import COLLECTIONS
from penstock.pipeline.options import BrokerAddress, PipelineOptions
from penstock.pipeline.run import drive
from tests.serving import serving
from tests.spark.pipeline_scene import generated, publish

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).resolve().parent.parent.parent / "examples" / "pipeline"
SECTION = re.compile(r"^## (\S+\.py)$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = dict(SECTION.findall((FOLDER / "README.md").read_text()))
MAX_LINES = 80


class Nobody:
    """Is told how it goes, and never says stop."""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    def ready(self, **told: object) -> None: ...

    def tell(self, **told: object) -> None: ...


def test_every_example_has_its_section_and_is_short() -> None:
    lengths = {
        path.name: len(path.read_text().splitlines()) for path in FOLDER.glob("*.py")
    }

    assert sorted(EXPECTED) == sorted(lengths)
    assert max(lengths.values()) <= MAX_LINES


@pytest.mark.deep
def test_topics_and_store_are_read_as_the_page_says(
    session: SparkSession,
    postgres_database: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with serving(tmp_path) as broker:
        server = f"127.0.0.1:{broker.ports['native']}"
        publish(broker, generated(1, 600))
        options = PipelineOptions(
            broker=BrokerAddress(server=server),
            store=postgres_database,
            checkpoint=str(tmp_path / "checkpoint"),
            available_now=True,
        )
        opener = OpenStore(postgres_database)
        with opener() as store:
            store.prepare(COLLECTIONS)
        drive(Application(session, options, opener), options, Nobody())
        capfd.readouterr()

        topics_and_store.main(session, server, postgres_database)

    assert capfd.readouterr().out == EXPECTED["topics_and_store.py"]


@pytest.mark.deep
def test_the_classifier_prints_what_the_page_says(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()

    sentiment_classifier.main(spark)

    assert capfd.readouterr().out == EXPECTED["sentiment_classifier.py"]
