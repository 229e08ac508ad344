"""Topics as Spark tables: a source, a sink, and a session that is ready for both.

    from penstock.spark import session

    spark = session()
    orders = spark.read.format("penstock").load(path="data", subscribe="orders")

Needs the extra ``penstock[spark]``. Importing this package loads nothing of it: not
Spark, not Arrow. A session made elsewhere finds the format by itself if Penstock is
installed beside Spark (module ``pyspark_penstock``); ``register`` is for one that does
not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from penstock.errors import MissingExtra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.spark.sessions import session

__all__ = ["register", "session"]


def register(spark: SparkSession) -> None:
    """Let ``format("penstock")`` be known to this session. Raises MissingExtra."""
    try:
        source = import_module("penstock.spark.source")
    except ImportError as error:
        raise missing(error) from error
    spark.dataSource.register(source.PenstockSource)


def __getattr__(name: str) -> object:
    if name != "session":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        made: object = import_module("penstock.spark.sessions").session
    except ImportError as error:
        raise missing(error) from error
    globals()[name] = made
    return made


def missing(error: ImportError) -> MissingExtra:
    """The error for a package of the extra that is not there."""
    package = (error.name or "pyspark").partition(".")[0]
    return MissingExtra("Spark", package, "spark")
