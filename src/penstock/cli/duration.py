"""Durations as people write them: ``90``, ``60s``, ``5m``, ``1h30m``, ``250ms``."""

from __future__ import annotations

import re

import click

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


class Duration(click.ParamType[float]):
    """Seconds, as a float above 0."""

    name = "duration"

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip().lower()
        if re.fullmatch(r"\d+(?:\.\d+)?", text):
            text += "s"
        seconds = 0.0
        if _WHOLE.fullmatch(text):
            pieces = _PIECE.findall(text)
            seconds = sum(float(number) * _UNITS[unit] for number, unit in pieces)
        if seconds <= 0:
            self.fail(f"{value!r} is no time: write it as 60s, 5m or 1h30m", param, ctx)
        return seconds
