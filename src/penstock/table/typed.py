"""JSON payloads as typed columns, decoded by Arrow many at a time.

The payloads of a chunk are joined by newlines and read in one go. That is sound if
each begins with ``{`` and ends with ``}``: a string cannot span a newline, and behind a
``}`` no document goes on with ``{``, so documents begin where payloads do; and if there
are as many documents as payloads, each payload is one.

If the chunk does not read, the payloads that fit no better alone are found: first by a
decoder that looks at one after the other (single.py), then by halving what is left.
They go to the column ``_corrupt``; a payload never fails a query. What Arrow takes and
that decoder does not is looked for in every chunk, so that a payload fits or does not
whatever its neighbours are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from penstock.table.single import Single

_NANOSECONDS = pa.timestamp("ns", "UTC")
_BLANKS = " \t\r\n"
_UNFIT = (pa.ArrowInvalid, pa.ArrowNotImplementedError)
# Of the text that is searched at once: what is made on the way stays in the caches.
_BLOCK = 1 << 16
# Words that Arrow takes for numbers, where they may be outside of a text.
_ODD_VALUE = r"[:\[,]\s*-?(NaN|Inf)"


class JsonDecoder:
    """Payloads to the columns of some fields."""

    def __init__(self, fields: list[pa.Field]) -> None:
        self._targets = [field.type for field in fields]
        self._names = [field.name for field in fields]
        self._decimals = any("decimal" in str(target) for target in self._targets)
        self._floats = any(_has_float(target) for target in self._targets)
        # Missing and null are nulls, whatever a schema calls NOT NULL.
        self._ways = [pj.ParseOptions(explicit_schema=self._as_read(None))]
        if any("timestamp" in str(target) for target in self._targets):
            # Nine digits of a second fit, but then not every century does.
            self._ways.append(pj.ParseOptions(self._as_read(_NANOSECONDS)))
        for way in self._ways:
            way.unexpected_field_behavior = "ignore"
        self._single = Single(fields)

    def decode(self, payloads: pa.Array) -> tuple[list[pa.Array], pa.Array | None]:
        """The columns, and which payloads fit none of them; None: all fit."""
        data = _joined(payloads)
        table = None if data is None else self._parsed(data, len(payloads))
        if table is not None and not self._has_odd(data, payloads):
            return [_whole(column) for column in table.columns], None
        sound = self._sound(payloads)
        parts: list[pa.Table] = []
        fit: list[int] = []
        texts = pa.array(sound.values(), pa.binary())
        self._halve(texts, list(sound), parts, fit)
        places: list[int | None] = [None] * len(payloads)
        for row, place in enumerate(fit):
            places[place] = row
        indices = pa.array(places, pa.int64())
        empty = pa.schema(list(zip(self._names, self._targets, strict=True)))
        whole = pa.concat_tables([empty.empty_table(), *parts])
        columns = [_whole(column).take(indices) for column in whole.columns]
        return columns, indices.is_null()

    def _has_odd(self, data: pa.Buffer, payloads: pa.Array) -> bool:
        """Whether Arrow has taken a payload that is no JSON."""
        if not _may_have_odd(data):
            return False
        odd = pc.match_substring_regex(payloads.cast(pa.string()), _ODD_VALUE)
        suspects = payloads.filter(odd).to_pylist()
        return any(self._single.sound(payload) is None for payload in suspects)

    def _read(self, payloads: pa.Array) -> pa.Table | None:
        """All payloads as a table; None if any does not fit."""
        data = _joined(payloads)
        return None if data is None else self._parsed(data, len(payloads))

    def _parsed(self, data: pa.Buffer, count: int) -> pa.Table | None:
        for way in self._ways:
            try:
                table = pj.read_json(
                    pa.BufferReader(data),
                    # In one block: blocks would be cut at newlines.
                    pj.ReadOptions(use_threads=False, block_size=data.size + 1),
                    way,
                )
                if table.num_rows == count:
                    return self._cast(table)
            except _UNFIT:
                continue
        return None

    def _cast(self, table: pa.Table) -> pa.Table:
        columns = [
            column if column.type == target else column.cast(target, safe=False)
            for column, target in zip(table.columns, self._targets, strict=True)
        ]
        cast = pa.table(columns, self._names)
        if self._decimals:
            # The reader lets numbers pass that have more digits than fit.
            cast.validate(full=True)
        if self._floats and not all(_finite(_whole(column)) for column in columns):
            raise pa.ArrowInvalid("a number is too large")
        return cast

    def _sound(self, payloads: pa.Array) -> dict[int, bytes]:
        """The payloads that look as if they would fit, by their places."""
        texts = map(self._single.sound, payloads.to_pylist())
        return {place: text for place, text in enumerate(texts) if text is not None}

    def _halve(
        self,
        payloads: pa.Array,
        places: list[int],
        parts: list[pa.Table],
        fit: list[int],
    ) -> None:
        if not places:
            return
        table = self._read(payloads)
        if table is not None:
            parts.append(table)
            fit += places
        elif (half := len(places) // 2) > 0:
            self._halve(payloads[:half], places[:half], parts, fit)
            self._halve(payloads[half:], places[half:], parts, fit)

    def _as_read(self, moment: pa.DataType | None) -> pa.Schema:
        return pa.schema(
            [
                (name, _as_read(target, moment))
                for name, target in zip(self._names, self._targets, strict=True)
            ]
        )


def _as_read(target: pa.DataType, moment: pa.DataType | None) -> pa.DataType:
    """The type that Arrow's JSON reader is asked for.

    Dates it knows as numbers, and a float that is too large as infinite.
    """
    if pa.types.is_list(target):
        return pa.list_(_as_read(target.value_type, moment))
    if pa.types.is_struct(target):
        return pa.struct([(one.name, _as_read(one.type, moment)) for one in target])
    if pa.types.is_date(target):
        return pa.string()
    if pa.types.is_float32(target):
        return pa.float64()
    if pa.types.is_timestamp(target) and moment is not None:
        return moment
    return target


def _joined(payloads: pa.Array) -> pa.Buffer | None:
    """All payloads as lines; None if one of them is no object at first sight."""
    try:
        text = payloads.cast(pa.string())  # JSON is UTF-8
    except pa.ArrowInvalid:
        return None
    if not _framed(text):
        text = pc.ascii_trim(text, _BLANKS)
        if not _framed(text):
            return None
    bounds = pa.array([0, len(text)], pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(bounds, text), "\n")[0].as_buffer()


def _may_have_odd(data: pa.Buffer) -> bool:
    """Whether N.N or I.f is there; bytes.find takes several times as long."""
    text = np.frombuffer(data, np.uint8)
    for at in range(0, len(text), _BLOCK):
        block = text[at : at + _BLOCK + 2]
        n = block == ord("N")
        if (n[:-2] & n[2:]).any():
            return True
        if ((block[:-2] == ord("I")) & (block[2:] == ord("f"))).any():
            return True
    return False


def _framed(text: pa.Array) -> bool:
    opened = pc.all(pc.starts_with(text, "{")).as_py()
    return bool(opened and pc.all(pc.ends_with(text, "}")).as_py())


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _has_float(target: pa.DataType) -> bool:
    if pa.types.is_list(target):
        return _has_float(target.value_type)
    if pa.types.is_struct(target):
        return any(_has_float(one.type) for one in target)
    return bool(pa.types.is_floating(target))


def _finite(column: pa.Array) -> bool:
    """Whether all numbers are such, however deep they are."""
    if pa.types.is_list(column.type):
        return _finite(column.flatten())
    if pa.types.is_struct(column.type):
        return all(map(_finite, column.flatten()))
    if not pa.types.is_floating(column.type):
        return True
    return pc.all(pc.is_finite(column)).as_py() is not False
