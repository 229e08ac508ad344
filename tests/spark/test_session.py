"""The session of ``penstock.spark.session()``, and sessions that are made elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit, udf

import penstock
from penstock.spark import register, session

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("session") / "data"
    with penstock.open(directory) as broker:
        broker.publish("t", b"payload")
    return directory


def rows(spark: SparkSession, data: Path) -> int:
    reader = spark.read.format("penstock").options(path=str(data), subscribe="t")
    return reader.load().filter("offset >= 0").count()


def test_a_session_made_elsewhere_finds_the_format_by_itself(
    spark: SparkSession, data: Path
) -> None:
    """And it can be told of it as well."""
    other = spark.newSession()

    assert rows(other, data) == 1
    register(other)
    assert rows(other, data) == 1


def test_workers_are_this_python_and_know_the_source_from_the_beginning(
    spark: SparkSession,
) -> None:
    """Of the installed Spark; what they have imported is not collected again."""

    def about(_: int) -> str:
        import gc
        import sys

        import pyspark

        known = "penstock.spark.reader" in sys.modules
        frozen = gc.get_freeze_count() > 1000
        return f"{sys.executable} {pyspark.__file__} {known} {frozen}"

    about_ = udf(about, "string", useArrow=False)
    found = [spark.range(1).select(about_(lit(0))).first() for _ in range(3)]

    assert found[-1] == (f"{sys.executable} {pyspark.__file__} True True",)


def test_a_session_that_runs_is_given_back(spark: SparkSession) -> None:
    again = session(spark_sql_ansi_enabled=False)

    assert again is spark
    assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    spark.conf.unset("spark.sql.ansi.enabled")


def test_what_was_measured_is_set(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    manager = spark.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    assert str(manager).endswith(".FileSystemBasedCheckpointFileManager")
    assert "-Xss4m" in str(spark.conf.get("spark.driver.extraJavaOptions"))
    assert spark.sparkContext.uiWebUrl is None
