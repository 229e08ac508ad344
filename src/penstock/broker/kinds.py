"""Kinds of the broker's journal records.

They are on disk: a number is never given another meaning.
"""

from __future__ import annotations

SUBSCRIPTIONS = 256
PENDING = 257
DEDUP = 258
LETTERS = 259
LEVELS = 260
MAZE = 261
CARDS = 262
SINKS = 263
SESSIONS = 264
DELAYS = 265
