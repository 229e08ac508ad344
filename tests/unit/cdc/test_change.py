from __future__ import annotations

import msgspec

from penstock.cdc.change import NOTHING, Change, ChangePayload, ChangeSource, events_of
from penstock.cdc.shown import Shown


def change(number: int, collection: str, key: str | None) -> Change:
    source = ChangeSource("mongodb", "shop", collection, f"p{number}", 5)
    after = msgspec.Raw(b'{"n": %d}' % number)
    return Change(f"id-{number}", ChangePayload("insert", key, NOTHING, after, source))


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


def test_a_message_is_the_first_field_of_the_payload() -> None:
    shown = {"a": Shown(message=("n",), score=("n",), thresholds=(2, 3))}
    changes = [change(1, "a", "k"), change(2, "b", None), change(3, "a", None)]

    named, plain = events_of(changes, "db.", shown)

    first, second = map(msgspec.json.decode, named.payloads)
    assert list(first) == ["msg", "op", "key", "before", "after", "source"]
    assert (first["msg"], second["msg"]) == (1, 3)
    assert first["after"] == {"n": 1}
    assert named.priorities == [0, 2]
    assert named.headers == [{"message-field": "msg"}] * 2
    assert list(msgspec.json.decode(plain.payloads[0]))[0] == "op"
    assert (plain.headers, plain.priorities) == (None, None)


def test_of_a_deleted_document_people_see_what_it_was() -> None:
    source = ChangeSource("mongodb", "shop", "a", "p", 5)
    before = msgspec.Raw(b'{"n": 3}')
    deleted = Change("id", ChangePayload("delete", "k", before, NOTHING, source))
    shown = {"a": Shown(message=("n",), score=("n",), thresholds=(2,))}

    (found,) = events_of([deleted], "", shown)

    assert msgspec.json.decode(found.payloads[0])["msg"] == 3
    assert found.priorities == [1]


def test_a_priority_alone_leaves_the_payload_as_it_is() -> None:
    shown = {"a": Shown(score=("n",), thresholds=(1,))}

    (found,) = events_of([change(1, "a", "k")], "", shown)

    assert found.payloads == events_of([change(1, "a", "k")])[0].payloads
    assert (found.priorities, found.headers) == ([1], None)
