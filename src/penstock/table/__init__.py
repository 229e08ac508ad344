"""Topics as tables of Arrow: where events are, and the columns they become.

    connection   how to get there: a data directory, or a server
    place        what topics there are, and the frames of a range of one
    columns      frames as record batches, of the columns that are wanted
    payloads     fields of JSON payloads as columns; typed, by Arrow; single, one by one
    registered   the columns that a schema promises

Spark and DuckDB read through it. Needs the extra ``penstock[arrow]``; importing this
package loads nothing of it.
"""

from __future__ import annotations
