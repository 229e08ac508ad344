"""JSON payloads as columns, also those with maps, which Arrow's reader does not know.

Fields without a map are decoded by Arrow (typed.py). Of one with a map the text is cut
out of every payload, and taken apart level by level; the values of all maps of a chunk
are decoded by Arrow again, at once. What does not fit anywhere spoils its payload, and
no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from penstock.table import typed

_NULL = b"null"
_UNFIT = (msgspec.MsgspecError, ValueError, RecursionError)

# The text of a value in each place; None: it is null, or missing.
Texts = Sequence[bytes | None]
# The values, and the places in which there is another one than was expected.
MadeColumn = tuple[pa.Array, set[int]]


class PayloadDecoder:
    """Payloads to the columns of some fields."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._names = [field.name for field in fields]
        plain = [field for field in fields if not has_map(field.type)]
        self._plain = {field.name: field for field in plain}
        self._arrow = typed.JsonDecoder(plain)
        deep = [field for field in fields if has_map(field.type)]
        self._deep = {field.name: _column(field.type) for field in deep}
        self._cut = _cutter(list(self._deep))

    def decode(self, payloads: pa.Array) -> tuple[list[pa.Array], pa.Array | None]:
        """The columns, and which payloads fit none of them; None: all fit."""
        if not self._deep:
            return self._arrow.decode(payloads)
        columns, bad = self._decode_deep(payloads.to_pylist())
        if self._plain:
            arrays, unfit = self._arrow.decode(payloads)
            columns |= dict(zip(self._plain, arrays, strict=True))
            bad |= _places(unfit)
        ordered = [columns[name] for name in self._names]
        if not bad:
            return ordered, None
        good = _but_for(bad, len(payloads))
        return [column.take(good) for column in ordered], good.is_null()

    def _decode_deep(
        self, payloads: Sequence[bytes]
    ) -> tuple[dict[str, pa.Array], set[int]]:
        rows, bad = _each(self._cut, payloads)
        columns = {}
        for place, (name, column) in enumerate(self._deep.items()):
            texts = [None if row is None else _text(row[place]) for row in rows]
            columns[name], unfit = column.made(texts)
            bad |= unfit
        return columns, bad


def has_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(has_map(field.type) for field in kind)
    if pa.types.is_list(kind):
        return has_map(kind.value_type)
    return bool(pa.types.is_map(kind))


class _Column(Protocol):
    def made(self, texts: Texts) -> MadeColumn: ...


class _PlainColumn:
    """Values in which there is no map."""

    def __init__(self, kind: pa.DataType) -> None:
        self._decoder = typed.JsonDecoder([pa.field("v", kind)])

    def made(self, texts: Texts) -> MadeColumn:
        payloads = [b'{"v":%b}' % (_NULL if text is None else text) for text in texts]
        (array,), unfit = self._decoder.decode(pa.array(payloads, pa.binary()))
        return array, _places(unfit)


class _Struct:
    def __init__(self, kind: pa.StructType) -> None:
        self._decoder = PayloadDecoder(list(kind))
        self._type = kind

    def made(self, texts: Texts) -> MadeColumn:
        there = [place for place, text in enumerate(texts) if text is not None]
        payloads = pa.array([texts[place] for place in there], pa.binary())
        columns, unfit = self._decoder.decode(payloads)
        bad = {there[row] for row in _places(unfit)}
        rows: list[int | None] = [None] * len(texts)
        for row, place in enumerate(there):
            rows[place] = None if place in bad else row
        spread = pa.array(rows, pa.int64())
        array = pa.StructArray.from_arrays(
            [column.take(spread) for column in columns],
            fields=list(self._type),
            mask=spread.is_null(),
        )
        return array, bad


class _Array:
    def __init__(self, kind: pa.ListType) -> None:
        self._element = _column(kind.value_type)
        self._type = kind
        self._parts = msgspec.json.Decoder(list[msgspec.Raw]).decode

    def made(self, texts: Texts) -> MadeColumn:
        rows, bad = _each(self._parts, texts)
        parts = [_text(one) for row in rows for one in row or ()]
        values, unfit = self._element.made(parts)
        bad |= _owners(rows, unfit)
        offsets, mask = _offsets(rows), _mask(rows)
        array = pa.ListArray.from_arrays(offsets, values, type=self._type, mask=mask)
        return array, bad


class _Map:
    def __init__(self, kind: pa.MapType) -> None:
        self._value = _column(kind.item_type)
        self._type = kind
        self._parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

    def made(self, texts: Texts) -> MadeColumn:
        rows, bad = _each(self._parts, texts)
        keys = pa.array([key for row in rows for key in row or ()], pa.string())
        values, unfit = self._value.made(
            [_text(one) for row in rows if row for one in row.values()]
        )
        bad |= _owners(rows, unfit)
        offsets, mask = _offsets(rows), _mask(rows)
        array = pa.MapArray.from_arrays(
            offsets, keys, values, type=self._type, mask=mask
        )
        return array, bad


def _column(kind: pa.DataType) -> _Column:
    if not has_map(kind):
        return _PlainColumn(kind)
    if pa.types.is_struct(kind):
        return _Struct(kind)
    return _Array(kind) if pa.types.is_list(kind) else _Map(kind)


def _cutter(names: Sequence[str]) -> Callable[[bytes], tuple[Any, ...]]:
    """What cuts the texts of these fields out of a payload."""
    inner = {f"f{place}": name for place, name in enumerate(names)}
    fields = [(own, msgspec.Raw, None) for own in inner]
    row = msgspec.defstruct("Texts", fields, rename=inner)
    decode = msgspec.json.Decoder(row).decode

    def cut(payload: bytes) -> tuple[Any, ...]:
        payload.decode()  # also what is not looked at is JSON, and that is UTF-8
        return msgspec.structs.astuple(decode(payload))

    return cut


def _each(decode: Callable[[bytes], Any], texts: Texts) -> tuple[list[Any], set[int]]:
    """What each text is; None where there is none, or where it does not fit."""
    rows: list[Any] = []
    bad = set()
    for place, text in enumerate(texts):
        try:
            rows.append(None if text is None else decode(text))
        except _UNFIT:
            rows.append(None)
            bad.add(place)
    return rows, bad


def _text(raw: msgspec.Raw | None) -> bytes | None:
    text = None if raw is None else bytes(raw)
    return None if text == _NULL else text


def _owners(rows: Iterable[Any], parts: set[int]) -> set[int]:
    """The rows that these parts belong to, counted through."""
    if not parts:
        return set()
    owners = [place for place, row in enumerate(rows) for _ in row or ()]
    return {owners[part] for part in parts}


def _offsets(rows: Sequence[Any]) -> pa.Array:
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row or ()))
    return pa.array(offsets, pa.int32())


def _mask(rows: Sequence[Any]) -> pa.Array:
    return pa.array([row is None for row in rows], pa.bool_())


def _places(unfit: pa.Array | None) -> set[int]:
    if unfit is None:
        return set()
    return {place for place, one in enumerate(unfit.to_pylist()) if one}


def _but_for(bad: set[int], count: int) -> pa.Array:
    """All places, but null for those."""
    return pa.array(
        [None if place in bad else place for place in range(count)], pa.int64()
    )
