from __future__ import annotations

import msgspec

from penstock.cdc.change import NOTHING, Body, Change, Source, events_of


def change(number: int, collection: str, key: str | None) -> Change:
    source = Source("mongodb", "shop", collection, f"p{number}", 5)
    after = msgspec.Raw(b'{"n": %d}' % number)
    return Change(f"id-{number}", Body("insert", key, NOTHING, after, source))


def test_changes_are_events_of_their_collections_in_their_order() -> None:
    changes = [change(1, "a", "k"), change(2, "b", None), change(3, "a", "ü")]

    first, second = events_of(changes, "db.")

    assert (first.topic, second.topic) == ("db.a", "db.b")
    assert first.ids == ["id-1", "id-3"]
    assert first.keys == [b"k", "ü".encode()]
    assert second.keys == [None]
    assert msgspec.json.decode(first.payloads[0]) == {
        "op": "insert",
        "key": "k",
        "before": None,
        "after": {"n": 1},
        "source": {
            "system": "mongodb",
            "database": "shop",
            "collection": "a",
            "position": "p1",
            "at_ms": 5,
        },
    }


def test_without_changes_there_are_no_events() -> None:
    assert events_of([]) == []
