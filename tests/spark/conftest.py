"""One Spark for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark import session
from penstock.spark.sessions import defaults

# Quick to start rather than quick in the end: tests do little of everything.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, three tries for every task."""
    scratch = tmp_path_factory.mktemp("spark")
    usual = defaults("local")["spark.driver.extraJavaOptions"]
    spark = session(
        "local[2,3]",
        **{
            "spark.driver.extraJavaOptions": f"{usual} {LIGHT}",
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        },
    )
    yield spark
    spark.stop()
