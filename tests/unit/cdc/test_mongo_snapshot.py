"""Against a real MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pymongo
import pytest
from bson import Decimal128, ObjectId
from bson.json_util import RELAXED_JSON_OPTIONS, dumps

from penstock.cdc import mongo_snapshot as module
from penstock.cdc.change import Change
from penstock.cdc.mongo import MongoCapture, key_of
from penstock.cdc.mongo_snapshot import MongoSnapshot
from penstock.errors import StoreRefused

# In the order of the server; an integer and a float may be the same number.
IDS: list[Any] = [
    *(-1, 0.5, Decimal128("0.7"), 2, "10", "9", "Z", "a", "ü", {"a": 1}),
    *(ObjectId("0" * 24), ObjectId("f" * 24), False, True),
]
Told = tuple[str, str, str | None, Any]


@pytest.fixture
def database(mongodb_database: str) -> Iterator[Any]:
    client: pymongo.MongoClient[Any] = pymongo.MongoClient(mongodb_database)
    database = client.get_default_database()
    images: Any = {"changeStreamPreAndPostImages": {"enabled": True}}
    for name in ("orders", "items"):
        database.create_collection(name, **images)
    database.orders.insert_many([{"_id": f"k{n:03}", "n": n} for n in range(100)])
    database.items.insert_many([{"_id": id_} for id_ in reversed(IDS)])
    yield database
    client.close()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", 7)


def snapshot(url: str) -> MongoSnapshot:
    return MongoSnapshot(url, "shop", ["orders", "items"])


def told(changes: list[Change]) -> list[Told]:
    return [
        (
            one.body.source.collection,
            one.body.op,
            one.body.key,
            msgspec.json.decode(one.body.after),
        )
        for one in changes
    ]


def some(one: MongoSnapshot, count: int) -> list[Told]:
    found: list[Told] = []
    while len(found) < count:
        found += told(one.take(1000, 1.0))
    return found


def rest(one: MongoSnapshot) -> list[Told]:
    found: list[Told] = []
    while not one.is_done:
        found += told(one.take(1000, 1.0))
    return found


def test_every_document_is_told_once_whatever_its_id(
    database: Any, mongodb_database: str
) -> None:
    made = snapshot(mongodb_database)
    made.begin("", "")

    found = rest(made)

    made.close()
    orders = [one for one in found if one[0] == "orders"]
    assert [key for _, _, key, _ in orders] == [f"k{n:03}" for n in range(100)]
    assert orders[3] == ("orders", "read", "k003", {"_id": "k003", "n": 3})
    assert len(found) == 100 + len(IDS)
    assert len({key for name, _, key, _ in found if name == "items"}) == len(IDS)


def test_changes_of_what_was_told_come_in_their_turn(
    database: Any, mongodb_database: str
) -> None:
    made = snapshot(mongodb_database)
    made.begin("", "")
    database.orders.update_one({"_id": "k050"}, {"$set": {"n": -1}})
    first = some(made, 14)

    database.orders.update_one({"_id": "k001"}, {"$set": {"n": -2}})
    database.orders.delete_one({"_id": "k002"})
    database.orders.update_one({"_id": "k099"}, {"$set": {"n": -3}})
    database.orders.delete_one({"_id": "k098"})
    database.orders.insert_many([{"_id": "k0001"}, {"_id": "k0991"}])
    found = first + rest(made)
    place = made.place()
    made.close()

    changes = [(op, key) for _, op, key, _ in found if op != "read"]
    assert changes == [("update", "k001"), ("delete", "k002"), ("insert", "k0001")]
    reads = {key: after for _, op, key, after in found if op == "read"}
    assert reads["k050"]["n"] == -1 and reads["k099"]["n"] == -3
    assert "k0991" in reads and "k098" not in reads
    assert state_of(found) == documents_of(database)
    capture = MongoCapture(mongodb_database, "shop", ["orders", "items"])
    capture.begin(place)
    assert capture.take(1, 0.5) == []
    capture.close()


def test_one_that_was_cut_off_goes_on(database: Any, mongodb_database: str) -> None:
    found: list[Told] = []
    place = frontier = ""
    for turn in range(12):
        made = snapshot(mongodb_database)
        made.begin(place, frontier)
        found += some(made, 8)
        place, frontier = made.place(), made.frontier()
        made.close()
        for key in (f"k{turn:03}", f"k{99 - turn:03}", f"k{50 + turn:03}"):
            database.orders.update_one({"_id": key}, {"$inc": {"n": 1000}})
        database.orders.delete_one({"_id": f"k{20 + turn:03}"})
        database.items.update_one({"_id": IDS[turn]}, {"$set": {"turn": turn}})
        database.items.insert_one({"_id": f"new {turn}"})

    made = snapshot(mongodb_database)
    made.begin(place, frontier)
    found += rest(made)
    made.close()

    assert state_of(found) == documents_of(database)


def test_a_collection_that_is_dropped_between_two_parts_of_it(
    database: Any, mongodb_database: str
) -> None:
    made = snapshot(mongodb_database)
    made.begin("", "")
    first = some(made, 14)
    database.orders.drop()
    database.items.drop()
    database.orders.insert_many([{"_id": "k000"}, {"_id": "k090"}])

    found = first + rest(made)

    made.close()
    assert ("orders", "truncate", None) in [one[:3] for one in found[14:]]
    assert state_of(found) == documents_of(database)


def test_ids_are_compared_as_the_server_does(
    database: Any, mongodb_database: str
) -> None:
    made = snapshot(mongodb_database)
    made.begin("", "")

    for at, one in enumerate(IDS):
        for other_at, other in enumerate(IDS):
            assert made._is_up_to(one, other) is (at <= other_at), (one, other)
    made.close()


def test_collections_that_are_not_there_are_empty(
    database: Any, mongodb_database: str
) -> None:
    made = MongoSnapshot(mongodb_database, "shop", ["nothing"])
    made.begin("", "")

    assert rest(made) == []
    made.close()


def test_a_collection_in_another_order_is_refused(
    database: Any, mongodb_database: str
) -> None:
    database.create_collection("names", collation={"locale": "de"})

    with pytest.raises(StoreRefused, match="names has a collation"):
        MongoSnapshot(mongodb_database, "shop", ["names"]).begin("", "")


def state_of(found: list[Told]) -> dict[tuple[str, str], Any]:
    """What somebody has who believes the events; none makes no sense."""
    state: dict[tuple[str, str], Any] = {}
    for name, op, key, after in found:
        if key is None:
            state = {place: one for place, one in state.items() if place[0] != name}
            continue
        there = (name, key) in state
        assert there is (op in ("update", "delete")), (name, op, key)
        state[name, key] = after
        if after is None:
            del state[name, key]
    return state


def documents_of(database: Any) -> dict[tuple[str, str], Any]:
    return {
        (name, key_of(one["_id"])): msgspec.json.decode(
            dumps(one, json_options=RELAXED_JSON_OPTIONS)
        )
        for name in ("orders", "items")
        for one in database[name].find()
    }
