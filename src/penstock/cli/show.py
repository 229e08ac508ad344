"""Numbers and bytes as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.model.event import OPTIONAL
from penstock.model.printable import printable

# Of a payload or key, on a terminal.
PREVIEW_CHARACTERS = 200

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int) -> str:
    """A number of bytes with a unit: ``17 B``, ``1.5 MiB``."""
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:.1f} {_UNITS[power - 1]}"


def count(number: int, noun: str) -> str:
    """``1 event``, ``2 events``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def time(timestamp_ms: int) -> str:
    """Milliseconds since the epoch as UTC; as they are where no calendar reaches."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def preview(data: bytes) -> str:
    """The beginning of some bytes on one line: text where it is, else hexadecimal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "0x" + data[: PREVIEW_CHARACTERS // 2].hex()
        return text + "…" if len(data) > PREVIEW_CHARACTERS // 2 else text
    shown = text[:PREVIEW_CHARACTERS]
    line = "".join(c if c.isprintable() else escaped(c) for c in shown)
    return line + "…" if len(text) > PREVIEW_CHARACTERS else line


def facts(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What an event has that not every event has, by name; not its id."""
    # Any: the value of whichever field.
    for field in OPTIONAL:
        value = values[field.name]
        if field.name == "id" or value is None or value == field.blank:
            continue
        match field.kind:
            case "map":
                for name, one in value.items():
                    yield "header", preview(f"{name}: {one}".encode())
            case "time":
                yield field.name, time(value)
            case "bytes":
                yield field.name, preview(value)
            case _:
                yield field.name, preview(str(value).encode())


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the cells of each column below one another."""
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
