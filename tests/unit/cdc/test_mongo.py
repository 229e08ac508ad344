"""Against a real MongoDB, where one can be had."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from bson.datetime_ms import DatetimeMS
from bson.errors import InvalidBSON
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure

from penstock.cdc.change import Change
from penstock.cdc.mongo import MongoCapture
from penstock.errors import CaptureLost, InvalidStore, StoreRefused, StoreUnreachable

IMAGES: Any = {"changeStreamPreAndPostImages": {"enabled": True}}


@pytest.fixture
def database(mongodb_database: str) -> Iterator[Any]:
    client: MongoClient[Any] = MongoClient(mongodb_database)
    database = client.get_default_database()
    database.create_collection("orders", **IMAGES)
    yield database
    client.close()


@pytest.fixture
def capture(database: Any, mongodb_database: str) -> Iterator[MongoCapture]:
    made = MongoCapture(mongodb_database, "shop", ["orders", "plain"])
    yield made
    made.close()


def taken(capture: MongoCapture, count: int) -> list[dict[str, Any]]:
    found: list[Change] = []
    while len(found) < count:
        some = capture.take(count - len(found), 20.0)
        assert some, f"{len(found)} of {count} came"
        found += some
    return [
        {**msgspec.json.decode(msgspec.json.encode(one.body)), "id": one.id}
        for one in found
    ]


def test_every_operation_is_told(capture: MongoCapture, database: Any) -> None:
    capture.begin("")
    database.orders.insert_one({"_id": "a", "n": 1})
    database.orders.update_one({"_id": "a"}, {"$set": {"n": 2}})
    database.orders.replace_one({"_id": "a"}, {"n": 3})
    database.orders.delete_one({"_id": "a"})
    database.orders.insert_one({"_id": 7})

    found = taken(capture, 5)

    assert [(one["op"], one["key"], one["before"], one["after"]) for one in found] == [
        ("insert", "a", None, {"_id": "a", "n": 1}),
        ("update", "a", {"_id": "a", "n": 1}, {"_id": "a", "n": 2}),
        ("update", "a", {"_id": "a", "n": 2}, {"_id": "a", "n": 3}),
        ("delete", "a", {"_id": "a", "n": 3}, None),
        ("insert", "7", None, {"_id": 7}),
    ]
    assert len({one["id"] for one in found}) == 5


def test_a_field_may_be_the_document(database: Any, mongodb_database: str) -> None:
    made = MongoCapture(mongodb_database, "shop", ["orders"], document="doc")
    made.begin("")
    database.orders.insert_one({"_id": "a", "version": 1, "doc": {"n": 1}})
    database.orders.update_one({"_id": "a"}, {"$set": {"version": 2, "doc": {"n": 2}}})
    database.orders.insert_one({"_id": "b"})

    found = taken(made, 3)

    made.close()
    assert [(one["key"], one["before"], one["after"]) for one in found] == [
        ("a", None, {"n": 1}),
        ("a", {"n": 1}, {"n": 2}),
        ("b", None, None),
    ]


def test_without_images_there_is_no_before(
    database: Any, mongodb_database: str
) -> None:
    made = MongoCapture(mongodb_database, "shop", ["plain"])
    database.create_collection("plain")
    made.begin("")
    database.plain.insert_one({"_id": "a"})
    database.plain.update_one({"_id": "a"}, {"$set": {"n": 2}})

    _, update = taken(made, 2)

    assert (update["before"], update["after"]) == (None, {"_id": "a", "n": 2})
    made.close()


def test_a_capture_goes_on_behind_its_place(
    capture: MongoCapture, database: Any
) -> None:
    capture.begin("")
    start = capture.place()
    database.orders.insert_many([{"_id": str(n)} for n in range(10)])
    ids = [one["id"] for one in taken(capture, 10)]

    for stop in (0, 1, 9):
        capture.begin(start)
        first = taken(capture, stop)
        capture.begin(capture.place())
        rest = taken(capture, 10 - stop)

        assert [one["id"] for one in first + rest] == ids
    assert capture.take(1, 0.0) == []
    assert capture.lag == 0


def test_a_collection_that_is_dropped_is_truncated(
    capture: MongoCapture, database: Any
) -> None:
    capture.begin("")
    database.orders.insert_one({"_id": "a"})
    database.orders.drop()
    database.orders.insert_one({"_id": "b"})

    found = taken(capture, 3)

    assert [(one["op"], one["key"]) for one in found] == [
        ("insert", "a"),
        ("truncate", None),
        ("insert", "b"),
    ]


def test_a_collection_that_is_renamed_is_truncated(
    capture: MongoCapture, database: Any, caplog: pytest.LogCaptureFixture
) -> None:
    database.plain.insert_one({"_id": "a"})
    capture.begin("")
    database.plain.rename("elsewhere")
    database.elsewhere.rename("plain")
    database.plain.rename("orders", dropTarget=True)
    database.orders.insert_one({"_id": "b"})

    found = taken(capture, 5)

    assert [(one["op"], one["source"]["collection"]) for one in found] == [
        ("truncate", "plain"),
        ("truncate", "plain"),
        ("truncate", "plain"),
        ("truncate", "orders"),
        ("insert", "orders"),
    ]
    assert len({one["id"] for one in found}) == 5
    assert "plain was renamed" in caplog.text


def test_a_database_that_is_dropped_may_come_again(
    capture: MongoCapture, database: Any
) -> None:
    capture.begin("")
    start = capture.place()
    database.orders.insert_one({"_id": "a"})
    database.client.drop_database(database.name)
    database.orders.insert_one({"_id": "b"})

    found = taken(capture, 3)

    expected = [("insert", "a"), ("truncate", None), ("insert", "b")]
    assert [(one["op"], one["key"]) for one in found] == expected
    places = [start]
    capture.begin(start)
    while len(places) < 4:  # one by one, from every place
        if capture.take(1, 20.0):
            places.append(capture.place())
            capture.begin(places[-1])
    assert capture.take(1, 0.5) == []


def test_documents_of_collections_with_and_without_images_are_told(
    capture: MongoCapture, database: Any
) -> None:
    database.create_collection("plain")
    capture.begin("")
    for name in ("orders", "plain"):
        database[name].insert_one({"_id": "a", "n": 1})
        database[name].update_one({"_id": "a"}, {"$set": {"n": 2}})

    _, imaged, _, plain = taken(capture, 4)

    assert (imaged["before"], imaged["after"]) == (
        *({"_id": "a", "n": 1}, {"_id": "a", "n": 2}),
    )
    assert (plain["before"], plain["after"]) == (None, {"_id": "a", "n": 2})


def test_large_documents_are_taken_in_smaller_numbers(
    capture: MongoCapture, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cdc.mongo.TAKE_BYTES", 50_000)
    capture.begin("")
    database.orders.insert_many([{"text": "x" * 20_000} for _ in range(10)])

    assert len(capture.take(1000, 20.0)) <= 3
    assert len(taken(capture, 7)) == 7


def test_times_are_those_of_the_server_in_any_zone(
    capture: MongoCapture, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    capture.begin("")
    before_ms = time.time() * 1000
    database.orders.insert_one({"_id": "a", "far": DatetimeMS(1 << 52)})

    [found] = taken(capture, 1)

    monkeypatch.undo()
    time.tzset()
    assert abs(found["source"]["at_ms"] - before_ms) < 60_000
    assert found["after"]["far"] == {"$date": {"$numberLong": str(1 << 52)}}


def test_a_place_that_is_none_is_refused(capture: MongoCapture) -> None:
    with pytest.raises(StoreRefused, match="resume token"):
        capture.begin('{"_data":"zz"}')


@pytest.mark.parametrize("url", ["mongodb://h", "mongodb://me:secret@h:port/db"])
def test_a_url_has_to_name_a_database(url: str) -> None:
    with pytest.raises(InvalidStore) as raised:
        MongoCapture(url, "a", ["t"]).begin("")

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AutoReconnect("gone"), StoreUnreachable),
        (OperationFailure("stepped down", 10107), StoreUnreachable),
        (OperationFailure("history lost", 286), CaptureLost),
        (OperationFailure("not allowed", 13), StoreRefused),
        (InvalidBSON("damaged"), StoreRefused),
    ],
)
def test_errors_pass_or_do_not(error: Exception, kind: type[Exception]) -> None:
    assert type(MongoCapture("mongodb://h/d", "a", []).judged(error, "p")) is kind


@pytest.mark.slow
def test_a_server_that_is_away_is_named_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.cdc.mongo.CONNECT_MS", 50)
    capture = MongoCapture("mongodb://me:secret@127.0.0.1:1/db", "a", ["t"])

    with pytest.raises(StoreUnreachable) as raised:
        capture.begin("")

    assert "secret" not in str(raised.value)
    assert "127.0.0.1:1/db" in str(raised.value)
