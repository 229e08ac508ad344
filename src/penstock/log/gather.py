"""Small frames of a topic gathered into large ones, on their way into segments.

A frame costs whoever reads it more than some dozens of events do, and a segment keeps
its frames for ever after. So events that came a few at a time are written as if they
had come together: offsets, ids, timestamps and order stay as they were.

Generated ids stay generated where those of neighbours count on: all that a topic got
since it was opened do. Others, such as those of frames that an earlier version wrote,
are written out as if a publisher had given them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from penstock.log.batch import Batch
from penstock.log.frame import HEADER_BYTES, Column, FrameFlag
from penstock.log.rows import SMALL_BYTES, SMALL_EVENTS, RowsPart, frame_at, joined
from penstock.log.tail import TailFrame, TailPart
from penstock.model import ids
from penstock.model.columns import Columns

P = TypeVar("P", bound=TailPart)

# Up to which small ones are gathered into one.
GATHERED_BYTES = 1 << 17
# So many generated ids are worth a frame of their own: written out, one is 36 bytes.
_WORTH_A_FRAME = 64

_IDS_BY_TIME = int(FrameFlag.IDS_BY_TIME)
_KNOWN = frozenset(Column)


def gathered(
    topic: str, parts: Iterable[P], max_bytes: int = GATHERED_BYTES
) -> Iterator[tuple[TailFrame, list[P]]]:
    """The frames to be written, and the parts that each was made of, in their order."""
    # What is in a segment comes one by one, and is not to be in memory as a whole.
    if isinstance(parts, list):
        whole = _line_of_all(parts, max_bytes)
        if whole is not None:
            yield _joined(topic, parts, whole), parts
            return
    for run, line in runs(parts, max_bytes):
        yield _joined(topic, run, line), run


def _line_of_all(parts: Sequence[TailPart], max_bytes: int) -> int | None:
    """What generated ids count on from, where all parts are to be one frame, at a
    look: those of most topics that get little are."""
    rows = [part for part in parts if type(part) is RowsPart]
    if not rows or len(rows) < len(parts):
        return None
    lines = {part.low_id - part.base_offset for part in rows}
    if len(lines) > 1 or sum([part.size for part in rows]) > max_bytes:
        return None
    if not all([is_small(part) for part in rows]):
        return None
    ends = [part.end_offset for part in rows]
    if [part.base_offset for part in rows[1:]] != ends[:-1]:
        return None
    return lines.pop()


def runs(
    parts: Iterable[P], max_bytes: int = GATHERED_BYTES
) -> Iterator[tuple[list[P], int | None]]:
    """The parts again, those together that are to be one frame.

    With what the generated ids of all of them count on from, if that is the same.

    Of a frame that is no part of rows only the header and the column table are read.
    """
    run: list[P] = []
    # ``kept``: events whose generated ids would have to be written out otherwise.
    size = kept = 0
    line: int | None = None
    for part in parts:
        small = is_small(part)
        mine = _line_of(part) if small else None
        if mine is None and part.events >= _WORTH_A_FRAME:
            small = False  # its ids would have to be written out
        more = _body_bytes(part)
        if run and not (
            small
            and size + more <= max_bytes
            and part.base_offset == run[-1].end_offset
            and (mine == line or max(part.events, kept) < _WORTH_A_FRAME)
        ):
            yield run, line
            run, size, kept = [], 0, 0
        if not small:
            yield [part], None
            continue
        line = mine if not run or mine == line else None
        kept = 0 if line is None else kept + part.events
        run.append(part)
        size += more
    if run:
        yield run, line


def most_bytes(segment_bytes: int) -> int:
    """Up to which size frames are gathered: what fits well into a segment."""
    return min(GATHERED_BYTES, segment_bytes // 4)


def is_small(part: TailPart) -> bool:
    """Whether a part is worth gathering with its neighbours."""
    if part.events >= SMALL_EVENTS or _body_bytes(part) >= SMALL_BYTES:
        return False
    if isinstance(part, RowsPart):
        return True
    frame = part.frame()
    if frame.header.flags & ~_IDS_BY_TIME:  # gaps, or what a later version means by it
        return False
    return _KNOWN.issuperset(Batch.whole("", *frame).columns())


def _body_bytes(part: TailPart) -> int:
    """What a part adds to a frame: what it takes in memory may be three times that."""
    if isinstance(part, RowsPart):
        return part.body_bytes
    return part.size - HEADER_BYTES


def _joined(topic: str, parts: list[P], line: int | None) -> TailFrame:
    """One frame of neighbours; ``line``: that all of them have in common."""
    first = parts[0]
    if len(parts) == 1:
        return first.frame()
    rows = [part for part in parts if isinstance(part, RowsPart)]
    if line is not None and len(rows) == len(parts):
        columns = joined(rows)
    else:
        columns_of: Callable[[str, TailPart], Columns]
        columns_of = _with_ids if line is None else _columns_of
        columns = Columns()
        for part in parts:
            columns.extend(columns_of(topic, part))
    return frame_at(columns, first.base_offset, (line or 0) + first.base_offset)


def _line_of(part: TailPart) -> int | None:
    """What generated ids have below their time, less the offset.

    None: an id does not have the time of its event, so that it cannot be made up.
    """
    if isinstance(part, RowsPart):
        return part.low_id - part.base_offset
    header = part.frame().header
    if not header.flags & _IDS_BY_TIME:
        stamp = header.min_timestamp_ms
        if stamp != header.max_timestamp_ms or not ids.is_of(header.id_base, stamp):
            return None
    return ids.counted(header.id_base, 0) - header.base_offset


def _columns_of(topic: str, part: TailPart) -> Columns:
    if isinstance(part, RowsPart):
        return part.columns()
    return Batch.whole(topic, *part.frame()).to_columns()


def _with_ids(topic: str, part: TailPart) -> Columns:
    """The events as if their publisher had given the ids that were generated."""
    batch = Batch.whole(topic, *part.frame())
    columns = batch.to_columns()
    columns.ids = [*batch.ids()]
    return columns
