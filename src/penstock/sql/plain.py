"""Values of rows as JSON has them, whichever engine they come from."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import msgspec


def plain(value: object) -> object:
    """A value as JSON has it: rows as objects, times as text, however deep they are."""
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, tuple) and hasattr(value, "nanoseconds"):
        months, days, nanoseconds = value
        return interval(months, days, nanoseconds // 1000)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)  # DuckDB has sums of integers as such
    if isinstance(value, datetime):
        digits = "microseconds" if value.microsecond % 1000 else "milliseconds"
        return value.isoformat(timespec=digits).replace("+00:00", "Z")
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="replace")
    return value


def interval(months: int, days: int, micros: int) -> str:
    """As DuckDB has it: 1 year 2 months -3 days 04:05:06.5."""
    sign = -1 if months < 0 else 1
    years, months = divmod(abs(months), 12)
    counts = {"year": sign * years, "month": sign * months, "day": days}
    found = [
        f"{count} {unit}{'s' * (abs(count) != 1)}"
        for unit, count in counts.items()
        if count
    ]
    if micros or not found:
        seconds, rest = divmod(abs(micros), 1_000_000)
        fraction = f".{rest:06}".rstrip("0").rstrip(".")
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        found.append(f"{'-' * (micros < 0)}{clock}{fraction}")
    return " ".join(found)


encode = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode
