"""The pipeline over what there is, on executors that Spark has run slow tasks twice.

speculation_job.py MASTER SERVER DIRECTORY
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from penstock.pipeline.application import Application
from penstock.pipeline.options import BrokerAddress, PipelineOptions
from penstock.pipeline.run import drive
from penstock.spark import session
from tests.spark.sqlite_store import SlowStore

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ROOT = Path(__file__).resolve().parent.parent.parent
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}


class Nobody:
    """Is told how it goes, and never says stop."""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    def ready(self, **told: object) -> None: ...

    def tell(self, **told: object) -> None: ...


def main(master: str, server: str, directory: str) -> None:
    spark = session(
        master,
        **SPECULATION,
        **{
            "spark.driver.host": "127.0.0.1",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": LIGHT,
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": str(ROOT),
            "spark.sql.shuffle.partitions": "1",
        },
    )
    options = PipelineOptions(
        broker=BrokerAddress(server=server),
        store="",
        checkpoint=str(Path(directory, "checkpoint")),
        available_now=True,
    )
    opener = SlowStore(str(Path(directory, "store.db")))
    drive(Application(spark, options, opener), options, Nobody())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
