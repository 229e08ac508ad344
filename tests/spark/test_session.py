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


def test_the_format_is_known(spark: SparkSession, data: Path) -> None:
    assert rows(spark, data) == 1


def test_a_session_made_elsewhere_finds_the_format_by_itself(
    spark: SparkSession, data: Path
) -> None:
    assert rows(spark.newSession(), data) == 1


def test_a_session_can_be_told_of_the_format(spark: SparkSession, data: Path) -> None:
    other = spark.newSession()

    register(other)

    assert rows(other, data) == 1


def test_workers_are_this_python_with_the_installed_spark(spark: SparkSession) -> None:
    def who(_: int) -> str:
        import pyspark

        return f"{sys.executable} {pyspark.__file__}"

    who_ = udf(who, "string", useArrow=False)
    (row,) = spark.range(1).select(who_(lit(0))).collect()

    assert row[0] == f"{sys.executable} {pyspark.__file__}"


def test_what_workers_have_imported_is_not_collected_again(spark: SparkSession) -> None:
    def frozen(_: int) -> int:
        import gc

        return gc.get_freeze_count()

    frozen_ = udf(frozen, "int", useArrow=False)
    found = [spark.range(1).select(frozen_(lit(0))).first() for _ in range(3)]

    assert found[-1] is not None and found[-1][0] > 1000


def test_workers_have_the_source_from_the_beginning(spark: SparkSession) -> None:
    def known(_: int) -> bool:
        import sys

        return "penstock.spark.reader" in sys.modules

    known_ = udf(known, "boolean", useArrow=False)

    assert spark.range(1).select(known_(lit(0))).first() == (True,)


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
