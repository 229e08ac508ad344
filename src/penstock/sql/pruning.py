"""Which offsets and times a condition leaves, though nobody can read the condition.

DuckDB hands a condition over as an expression of Arrow, which cannot be taken apart,
but which Arrow simplifies by what is known of a file. So made-up files are shown to it,
of which it is known that offsets, or times, lie between two numbers: those that it
passes over hold nothing that is wanted. By halving, the bounds are found in some tens
of steps, however the condition is written.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

# Halves that are looked at: enough for the bounds of 2^63 numbers.
STEPS = 200

_format = ds.IpcFileFormat()
_nowhere = pyarrow.fs.LocalFileSystem()


def bounds(
    condition: ds.Expression,
    schema: pa.Schema,
    column: str,
    lowest: int,
    behind: int,
    scalar: Callable[[int], pa.Scalar],
) -> tuple[int, int]:
    """From where to where in front of ``behind`` a column may fulfil a condition.

    ``scalar`` is a number as a value of the column. Both are equal if nothing does.
    """

    def may_be(low: int, high: int) -> bool:
        field = pc.field(column)
        known = (field >= scalar(low)) & (field <= scalar(high - 1))
        return _is_possible(condition, known, schema)

    if lowest >= behind or not may_be(lowest, behind):
        return lowest, lowest
    return _first(may_be, lowest, behind), _last(may_be, lowest, behind)


def _first(may_be: Callable[[int, int], bool], low: int, high: int) -> int:
    """The lowest number that may be, of some that may."""
    steps = STEPS
    while high - low > 1 and (steps := steps - 1):
        middle = (low + high) // 2
        if may_be(low, middle):
            high = middle
        else:
            low = middle
    return low


def _last(may_be: Callable[[int, int], bool], low: int, high: int) -> int:
    """The number behind the highest that may be."""
    steps = STEPS
    while high - low > 1 and (steps := steps - 1):
        middle = (low + high) // 2
        if may_be(middle, high):
            low = middle
        else:
            high = middle
    return high


def _is_possible(
    condition: ds.Expression, known: ds.Expression, schema: pa.Schema
) -> bool:
    fragment = _format.make_fragment(
        "/nowhere", filesystem=_nowhere, partition_expression=known
    )
    files = ds.FileSystemDataset([fragment], schema, _format, _nowhere)
    return any(True for _ in files.get_fragments(filter=condition))
