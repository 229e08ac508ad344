"""Where Spark looks for the format ``penstock``: a module of this kind of name.

Spark imports every ``pyspark_*`` module when a data source is first asked for, so this
one loads nothing before its class is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.spark.source import PenstockSource as DefaultSource

__all__ = ["DefaultSource"]


def __getattr__(name: str) -> object:
    if name != "DefaultSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock.spark import missing

    try:
        from penstock.spark.source import PenstockSource
    except ImportError as error:
        raise missing(error) from error
    return PenstockSource
