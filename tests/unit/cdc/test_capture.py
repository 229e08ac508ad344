from __future__ import annotations

from penstock.cdc.capture import Capture
from penstock.cdc.mongo import MongoCapture
from penstock.cdc.postgres import PostgresCapture


def test_both_systems_are_captures() -> None:
    captures: list[Capture] = [
        PostgresCapture("postgresql://h/db", "a", ["t"]),
        MongoCapture("mongodb://h/db", "a", ["t"]),
    ]

    assert [one.lag for one in captures] == [None, None]
