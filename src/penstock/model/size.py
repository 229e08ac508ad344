"""Numbers of bytes as people write them: with a unit, which is a power of 1024."""

from __future__ import annotations

import re

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

NUMBER = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_SIZE = re.compile(rf"({NUMBER.pattern}) ?({'|'.join(UNITS)})", re.IGNORECASE)
_SCALES = {unit.lower(): scale for unit, scale in UNITS.items()}


def read_int(text: str) -> int | None:
    """A whole number; None if the text is none."""
    if not NUMBER.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return None


def read_size(text: str) -> int | None:
    """A number of bytes, perhaps with a unit: ``64KiB``; None if the text is none."""
    found = _SIZE.fullmatch(text)
    if not found:
        return read_int(text)
    number = read_int(found[1])
    return None if number is None else number * _SCALES[found[2].lower()]


def size_text(value: int) -> str:
    """The size as ``read_size`` reads it, with a unit where that is exact."""
    for unit, scale in reversed(UNITS.items()):
        if value > 0 and value % scale == 0:
            return f"{value // scale}{unit}"
    return str(value)
