"""What is MongoDB's alone; the contract is in tests/contract/test_store.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymongo
import pytest

from penstock.errors import BadDocument, StoreRefused
from penstock.store import mongo, mongobulk
from penstock.store.mongo import MongoStore
from penstock.store.mongodocs import with_numbers_that_fit

pytestmark = pytest.mark.slow

Database = Any
IMAGES = "changeStreamPreAndPostImages"


@pytest.fixture
def store(mongodb_database: str) -> Iterator[MongoStore]:
    with MongoStore(mongodb_database, retry_s=20) as opened:
        yield opened


@pytest.fixture
def other(mongodb_database: str) -> Iterator[Database]:
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_database)
    with client:
        yield client.get_default_database()


def test_changes_will_tell_what_was_before(store: MongoStore, other: Database) -> None:
    other.create_collection("users")

    store.prepare(["tweets", "users"])

    for name in ("tweets", "users"):
        assert other[name].options()[IMAGES] == {"enabled": True}


def test_what_is_there_already_is_no_change_for_a_stream(
    store: MongoStore, other: Database
) -> None:
    store.prepare(["tweets"])

    with other.tweets.watch(
        full_document_before_change="required", full_document="required"
    ) as stream:
        for _ in range(3):
            store.upsert("tweets", [("a", 1, b"{}"), ("b", 1, b"{}")])
        store.upsert("tweets", [("a", 2, b'{"n": 1}')])
        changes = [next(stream) for _ in range(3)]
        more = stream.try_next()

    assert [change["operationType"] for change in changes] == [
        "insert",
        "insert",
        "replace",
    ]
    assert changes[2]["fullDocumentBeforeChange"]["doc"] == {}
    assert changes[2]["fullDocument"]["doc"] == {"n": 1}
    assert more is None


def test_who_loses_the_race_to_insert_is_judged_again(
    store: MongoStore, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody inserts between our reading and our inserting, one older, one newer."""
    true = mongobulk.versions_of
    store.prepare(["tweets"])

    def late(kept: Any, keys: list[str], session: Any) -> dict[str, int]:
        found = true(kept, keys, session)
        monkeypatch.setattr(mongobulk, "versions_of", true)
        other.tweets.insert_many(
            [
                {"_id": "a", "version": 1, "doc": {}},
                {"_id": "b", "version": 9, "doc": {}},
            ]
        )
        return found

    monkeypatch.setattr(mongobulk, "versions_of", late)
    changed = store.upsert("tweets", [(key, 5, b'{"n": 5}') for key in "abc"])

    assert changed == 2
    assert list(store.read("tweets")) == [
        ("a", 5, {"n": 5}),
        ("b", 9, {}),
        ("c", 5, {"n": 5}),
    ]


def test_document_that_was_written_meanwhile_is_not_overwritten(
    store: MongoStore, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.upsert("tweets", [("a", 1, b"{}")])
    true = mongobulk.versions_of

    def late(kept: Any, keys: list[str], session: Any) -> dict[str, int]:
        found = true(kept, keys, session)
        other.tweets.update_one({"_id": "a"}, {"$set": {"version": 9}})
        return found

    monkeypatch.setattr(mongobulk, "versions_of", late)

    assert store.upsert("tweets", [("a", 5, b'{"n": 5}')]) == 0
    assert list(store.read("tweets")) == [("a", 9, {})]


def test_cursor_that_a_killed_server_knew_is_asked_for_again(
    store: MongoStore, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def write(*given: Any) -> int:
        calls.append(given)
        if len(calls) == 1:
            raise pymongo.errors.CursorNotFound("cursor id 1 not found", 43)
        return mongobulk.write(*given)

    monkeypatch.setattr(mongo, "write", write)

    store.upsert("tweets", [("a", 1, b"{}")])

    assert len(calls) == 2
    assert other["tweets"].count_documents({}) == 1


def test_document_that_is_too_large_as_bson_is_named(store: MongoStore) -> None:
    """Small numbers take two bytes in JSON and eleven or more in BSON."""
    numbers = b"[" + b",".join([b"1"] * 1_500_000) + b"]"

    with pytest.raises(BadDocument) as caught:
        store.upsert("tweets", [("a", 1, b"{}"), ("large", 1, numbers)])

    assert caught.value.key == "large"


def test_document_that_is_too_deep_is_named(store: MongoStore) -> None:
    with pytest.raises(BadDocument) as caught:
        store.upsert("tweets", [("a", 1, b"{}"), ("deep", 1, b"[" * 300 + b"]" * 300)])

    assert caught.value.key == "deep"


def test_documents_beyond_one_message_are_all_written(store: MongoStore) -> None:
    """MongoDB takes 48 MB at once."""
    rows = [(str(n), 1, b'{"x": "' + b"x" * (14 << 20) + b'"}') for n in range(4)]

    assert store.upsert("tweets", rows) == 4
    assert store.count("tweets") == 4


@pytest.mark.parametrize(
    ("number", "fits"),
    [
        ((1 << 63) - 1, (1 << 63) - 1),
        (-(1 << 63), -(1 << 63)),
        (1 << 63, 2.0**63),
        (10**400, 1.7976931348623157e308),
        (-(10**400), -1.7976931348623157e308),
        (True, True),
    ],
)
def test_numbers_are_made_to_fit(number: int, fits: float) -> None:
    assert with_numbers_that_fit({"a": [{"b": number}], "c": "x"}) == {
        "a": [{"b": fits}],
        "c": "x",
    }


def test_what_mongodb_refuses_is_said(store: MongoStore, other: Database) -> None:
    other.create_collection("base")
    other.command("create", "tweets", viewOn="base", pipeline=[])

    with pytest.raises(StoreRefused):
        store.upsert("tweets", [("a", 1, b"{}")])
