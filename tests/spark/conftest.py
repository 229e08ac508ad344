"""One Spark for all tests of this folder."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark import register
from penstock.spark.sessions import opened


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, three tries for every task."""
    scratch = tmp_path_factory.mktemp("spark")
    on_sigint = signal.getsignal(signal.SIGINT)
    spark = opened(
        "local[2,3]",
        {
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        },
        short=True,
    )
    signal.signal(signal.SIGINT, on_sigint)  # Spark has put its own there, for good
    yield spark
    spark.stop()


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """With settings of its own: the pipeline changes some."""
    session = spark.newSession()
    register(session)
    yield session
    spark.createDataFrame([], "n INT")  # and so it is the active one again
