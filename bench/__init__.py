"""Measurements of the log: ``make bench``, or ``python -m bench --help``."""

from __future__ import annotations
