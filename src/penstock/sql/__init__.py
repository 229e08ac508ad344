"""Questions in SQL over topics, answered by DuckDB.

    engine    a connection of DuckDB that knows the topics of a broker as tables
    scanning  a topic as DuckDB reads it: the columns and ranges that are asked for
    pruning   which offsets and times a condition leaves
    words     ``offset``, which is a word of SQL and a column of every topic
    plain     values of rows as JSON has them
    question  one question for a process of its own, and what comes of it
    boxed     that process: one SELECT, within limits, and nothing but topics to read

Needs the extra ``penstock[sql]``; importing this package loads nothing of it.
"""

from __future__ import annotations

from importlib.util import find_spec

from penstock.errors import MissingExtra

PACKAGES = ("duckdb", "pyarrow")


def missing(error: ImportError) -> MissingExtra:
    """The error for a package of the extra that is not there."""
    package = (error.name or "duckdb").partition(".")[0]
    return MissingExtra("SQL", package, "sql")


def check_installed() -> None:
    """Raises MissingExtra, and loads nothing."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise MissingExtra("SQL", package, "sql")
