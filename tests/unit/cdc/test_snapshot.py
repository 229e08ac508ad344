from __future__ import annotations

from penstock.cdc.mongo_snapshot import MongoSnapshot
from penstock.cdc.postgres_snapshot import PostgresSnapshot
from penstock.cdc.snapshot import Snapshot


def test_both_databases_can_be_read_so() -> None:
    found: list[Snapshot] = [
        PostgresSnapshot("postgresql://h/d", "a", ["t"]),
        MongoSnapshot("mongodb://h/d", "a", ["t"]),
    ]

    assert not any(one.is_done for one in found)
