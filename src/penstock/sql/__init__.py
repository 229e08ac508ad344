"""Questions in SQL over topics, answered by DuckDB in this process.

    engine    a connection of DuckDB that knows the topics of a broker as tables
    scanning  a topic as DuckDB reads it: the columns and ranges that are asked for
    pruning   which offsets and times a condition leaves
    words     ``offset``, which is a word of SQL and a column of every topic

Needs the extra ``penstock[sql]``; importing this package loads nothing of it.
"""

from __future__ import annotations

from penstock.errors import MissingExtra


def missing(error: ImportError) -> MissingExtra:
    """The error for a package of the extra that is not there."""
    package = (error.name or "duckdb").partition(".")[0]
    return MissingExtra("SQL", package, "sql")
