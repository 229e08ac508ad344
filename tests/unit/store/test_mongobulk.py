"""How a chunk gets into a collection, whatever others do in it meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pymongo
import pytest
from pymongo.client_session import ClientSession
from pymongo.errors import OperationFailure

from penstock.errors import BadDocument, StoreUnreachable
from penstock.store import mongobulk
from penstock.store.mongo import MongoStore
from penstock.store.mongodocs import groups

pytestmark = pytest.mark.slow

KEYS = [f"{number:03}" for number in range(2 * mongobulk.GROUP_ROWS + 1)]


@pytest.fixture
def store(mongodb_database: str) -> Iterator[MongoStore]:
    with MongoStore(mongodb_database, retry_s=20) as opened:
        opened.upsert("tweets", bulk(1))
        yield opened


@pytest.fixture
def other(mongodb_database: str) -> Iterator[Any]:
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(mongodb_database)
    with client:
        yield client.get_default_database()


def bulk(version: int) -> list[tuple[str, int, bytes]]:
    return [(key, version, b'{"of": %d, "$a.b": "$x"}' % version) for key in KEYS]


def versions(store: MongoStore) -> set[int]:
    found = list(store.read("tweets"))
    assert [key for key, _, _ in found] == KEYS
    assert all(doc == {"of": n, "$a.b": "$x"} for _, n, doc in found)
    return {version for _, version, _ in found}


def test_groups_are_told_by_a_stream_as_before_and_after(
    store: MongoStore, other: Any
) -> None:
    with other.tweets.watch(
        full_document_before_change="required", full_document="required"
    ) as stream:
        assert store.upsert("tweets", bulk(2)) == len(KEYS)
        assert store.upsert("tweets", bulk(2)) == 0
        changes = [next(stream) for _ in KEYS]
        more = stream.try_next()

    assert {one["documentKey"]["_id"] for one in changes} == set(KEYS)
    for one in changes:
        key = one["documentKey"]["_id"]
        before, after = one["fullDocumentBeforeChange"], one["fullDocument"]
        assert before == {"_id": key, "version": 1, "doc": {"of": 1, "$a.b": "$x"}}
        assert after == {"_id": key, "version": 2, "doc": {"of": 2, "$a.b": "$x"}}
    assert more is None


DYING = """
import os, signal, sys
from pymongo.collection import Collection
from penstock.store.mongo import MongoStore
from tests.unit.store.test_mongobulk import bulk
write = Collection.bulk_write
def last(*args, **kwargs):
    write(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)
Collection.bulk_write = last
MongoStore(sys.argv[1]).upsert("tweets", bulk(2))
"""


def test_transaction_of_a_writer_that_was_killed_is_ended_by_who_meets_it(
    store: MongoStore, mongodb_database: str
) -> None:
    """MongoDB itself keeps it for 60 s; the store would not wait for so long."""
    died = subprocess.run([sys.executable, "-c", DYING, mongodb_database])
    assert died.returncode == -9
    assert versions(store) == {1}

    assert store.upsert("tweets", bulk(2)) == len(KEYS)
    assert versions(store) == {2}


HOLDING = """
import sys, pymongo
from penstock.store.mongobulk import APPLICATION
client = pymongo.MongoClient(sys.argv[1], appname=APPLICATION)
session = client.start_session()
session.start_transaction()
tweets = client.get_default_database().tweets
tweets.update_one({"_id": "007"}, {"$set": {"seen": 1}}, session=session)
print("has it", flush=True)
sys.stdin.read()
"""


def test_writer_that_waits_for_one_who_dies_goes_on(
    store: MongoStore, mongodb_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mongobulk, "CONTENDED_S", 0.3)
    met = threading.Event()
    true = mongobulk.end_orphans

    def looked(client: Any) -> None:
        true(client)
        met.set()

    monkeypatch.setattr(mongobulk, "end_orphans", looked)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, mongodb_database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as dying:
        assert dying.stdout is not None and dying.stdout.readline() == b"has it\n"
        writer = threading.Thread(target=store.upsert, args=("tweets", bulk(2)))
        writer.start()
        assert met.wait(20)
        dying.kill()
        writer.join(30)

    assert not writer.is_alive()
    assert versions(store) == {2}


@pytest.mark.parametrize("application", ["somebody else", mongobulk.APPLICATION])
def test_transaction_of_one_who_lives_is_waited_for_and_not_ended(
    application: str,
    mongodb_database: str,
    store: MongoStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mongobulk, "CONTENDED_S", 0.3)
    client: pymongo.MongoClient[Any] = pymongo.MongoClient(
        mongodb_database, appname=application
    )
    with client, client.start_session() as session:
        tweets = client.get_default_database().tweets
        session.start_transaction()
        tweets.update_one({"_id": "007"}, {"$set": {"seen": 1}}, session=session)
        with (
            MongoStore(mongodb_database, retry_s=0.5) as second,
            pytest.raises(StoreUnreachable),
        ):
            second.upsert("tweets", bulk(2))
        session.commit_transaction()
        seen = tweets.find_one({"seen": 1})

    assert seen is not None and seen["version"] == 1
    store.upsert("tweets", bulk(2))
    assert versions(store) == {2}


def test_server_without_transactions_gets_groups_as_well(
    store: MongoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OperationFailure("Transaction numbers are only allowed on …", 20)

    monkeypatch.setattr(ClientSession, "start_transaction", refused)

    assert store.upsert("tweets", bulk(2)) == len(KEYS)
    assert store.upsert("tweets", bulk(2)) == 0
    assert versions(store) == {2}


def test_update_that_is_too_deep_is_named_and_one_that_just_fits_is_not(
    store: MongoStore,
) -> None:
    def nested(depth: int) -> bytes:
        return b"[" * depth + b"]" * depth

    # MongoDB has 180 levels; a statement has levels of its own around the document.
    deep = [(key, 2, nested(179 if key == "007" else 1)) for key in KEYS]
    assert store.upsert("tweets", deep) == len(KEYS)

    for depth in (190, 300):
        deep = [(key, 3, nested(depth if key == "002" else 1)) for key in KEYS]
        with pytest.raises(BadDocument, match="deep|depth") as caught:
            store.upsert("tweets", deep)
        assert caught.value.key == "002"


def test_huge_documents_are_updated_beside_small_ones(store: MongoStore) -> None:
    huge = b'{"x": "' + b"x" * (14 << 20) + b'"}'

    newer = [(key, 2, huge if key in ("003", "004") else b"{}") for key in KEYS]

    assert store.upsert("tweets", newer) == len(KEYS)
    assert {version for _, version, _ in store.read("tweets")} == {2}


def test_document_that_the_collection_refuses_is_named(
    store: MongoStore, other: Any
) -> None:
    other.command("collMod", "tweets", validator={"doc.bad": {"$exists": False}})
    newer = [(key, 2, b'{"bad": 1}' if key == "050" else b"{}") for key in KEYS]

    with pytest.raises(BadDocument) as caught:
        store.upsert("tweets", newer)

    assert caught.value.key == "050"


def test_what_is_there_is_safe_on_disk_before_it_is_confirmed(
    store: MongoStore, other: Any
) -> None:
    """Somebody else may have written it a moment ago, and not be sure yet."""
    other.command("profile", 2)

    assert store.upsert("tweets", bulk(1)) == 0

    asked = other["system.profile"].find({"command.find": "tweets"}).sort("ts", 1)
    concerns = [one["command"].get("readConcern", {}) for one in asked]
    assert concerns[-1]["level"] == "majority"
    assert "afterClusterTime" in concerns[-1]


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([], []),
        ([1], [[1]]),
        ([1, 1, 1, 1], [[1, 1, 1], [1]]),
        ([5, 5, 1], [[5, 5], [1]]),
        ([6, 5], [[6], [5]]),
        ([1, 99, 1], [[1], [99], [1]]),
        ([99, 99], [[99], [99]]),
    ],
)
def test_groups_have_few_documents_and_few_bytes(
    sizes: list[int], found: list[list[int]]
) -> None:
    rows = [("k", 1, b"x" * size) for size in sizes]

    parts = groups(rows, 3, 10)

    assert [[len(row[2]) for row in part] for part in parts] == found


def test_numbers_are_made_to_fit_in_a_group_as_well(store: MongoStore) -> None:
    newer = [(key, 2, b'{"n": %d}' % 10 ** int(key)) for key in KEYS]

    assert store.upsert("tweets", newer) == len(KEYS)
    found = {key: doc["n"] for key, _, doc in store.read("tweets")}
    assert found["018"] == 10**18 and isinstance(found["018"], int)
    assert found["100"] == pytest.approx(10**100)
