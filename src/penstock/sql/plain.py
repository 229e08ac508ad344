"""Values of rows as JSON has them, whichever engine they come from."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import msgspec


def plain(value: object) -> object:
    """A value as JSON has it: rows as objects, times as text, however deep they are."""
    if hasattr(value, "asDict"):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)  # DuckDB has sums of integers as such
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="replace")
    return value


encode = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode
