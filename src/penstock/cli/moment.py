"""Moments as people write them: a time, or how long ago."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import click

_AGO = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


class Moment(click.ParamType[int]):
    """``2030-01-31T12:00Z`` (UTC if not said) or ``90m``: so long ago."""

    name = "when"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Milliseconds since 1970."""
        if isinstance(value, int):
            return value
        text = str(value)
        ago = _AGO.fullmatch(text)
        if ago is not None:
            seconds = float(ago[1]) * _SECONDS[ago[2]]
            return max(int((time.time() - seconds) * 1000), 0)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(
                f"{text!r} is no moment: use 2030-01-31T12:00Z, or 90m, 12h, 7d", param
            )
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(int(moment.timestamp() * 1000), 0)


MOMENT = Moment()
