"""One contract for all stores: each document once, the newest version kept."""

from __future__ import annotations

import concurrent.futures
import json
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.errors import BadDocument, InvalidName, StoreUnreachable
from penstock.store import store as stores
from penstock.store.documents import MAX_DOCUMENT_BYTES, MAX_KEY_BYTES
from penstock.store.store import Store
from tests.contract.stores import kept, row, rows
from tests.mongod import free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with stores.open(url) as opened:
        yield opened


def test_what_is_written_is_read_by_key(store: Store) -> None:
    changed = store.upsert("tweets", [row("b", 2, n=1), row("a", 1, n=2.5, t=[None])])

    assert changed == 2
    assert list(store.read("tweets")) == [
        ("a", 1, {"n": 2.5, "t": [None]}),
        ("b", 2, {"n": 1}),
    ]
    assert store.count("tweets") == 2


def test_writing_the_same_again_changes_nothing(store: Store) -> None:
    written = list(rows(50, version=7))
    store.upsert("tweets", written)
    before = kept(store, "tweets")

    changed = store.upsert("tweets", written)

    assert changed == 0
    assert kept(store, "tweets") == before


@pytest.mark.parametrize(
    ("version", "changed", "text"),
    [(4, 0, "old"), (5, 0, "old"), (6, 1, "new"), (1 << 62, 1, "new")],
)
def test_only_a_newer_version_overwrites(
    store: Store, version: int, changed: int, text: str
) -> None:
    store.upsert("tweets", [row("a", 5, text="old", gone=1)])

    assert store.upsert("tweets", [row("a", version, text="new")]) == changed
    assert kept(store, "tweets")["a"][1]["text"] == text


def test_newer_document_replaces_all_of_the_older(store: Store) -> None:
    store.upsert("tweets", [row("a", 1, old=1, both=1)])

    store.upsert("tweets", [row("a", 2, both=2)])

    assert kept(store, "tweets") == {"a": (2, {"both": 2})}


def test_highest_version_of_one_call_wins(store: Store) -> None:
    changed = store.upsert(
        "tweets", [row("a", 2, n=2), row("a", 3, n=3), row("b", 1), row("a", 1, n=1)]
    )

    assert changed == 2
    assert kept(store, "tweets") == {"a": (3, {"n": 3}), "b": (1, {})}


def test_new_newer_and_older_go_together(store: Store) -> None:
    store.upsert("tweets", [row("a", 5, n=1), row("b", 5, n=1)])

    changed = store.upsert(
        "tweets", [row("a", 6, n=2), row("b", 4, n=2), row("c", 0, n=2)]
    )

    assert changed == 2
    assert {key: doc["n"] for key, (_, doc) in kept(store, "tweets").items()} == {
        "a": 2,
        "b": 1,
        "c": 2,
    }


def test_nothing_to_write_changes_nothing(store: Store) -> None:
    assert store.upsert("tweets", []) == 0
    assert store.upsert("tweets", pa.table({"key": [], "version": [], "doc": []})) == 0
    assert store.count("tweets") == 0


def test_collection_that_is_not_there_holds_nothing(store: Store) -> None:
    assert store.count("nothing") == 0
    assert list(store.read("nothing")) == []
    assert store.collections() == []


def test_prepared_collections_are_listed_and_prepared_again(store: Store) -> None:
    store.prepare(["users", "tweets"])
    store.upsert("tweets", [row("a", 1)])

    store.prepare(["tweets", "users"])

    assert store.collections() == ["tweets", "users"]
    assert store.count("tweets") == 1


def test_collections_do_not_mix(store: Store) -> None:
    store.upsert("tweets", [row("a", 1, n=1)])
    store.upsert("users", [row("a", 1, n=2)])

    assert kept(store, "tweets") == {"a": (1, {"n": 1})}
    assert kept(store, "users") == {"a": (1, {"n": 2})}


@pytest.mark.parametrize(
    "name", ["", "1a", 'a"b', "a b", "é", "a" * 64, "a;drop", "$x"]
)
def test_name_that_cannot_be_one_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidName):
        store.upsert(name, [row("a", 1)])
    with pytest.raises(InvalidName):
        store.count(name)


@pytest.mark.parametrize("name", ["select", "Tweets", "_x", "a" * 63])
def test_name_that_means_something_elsewhere_is_one(store: Store, name: str) -> None:
    store.upsert(name, [row("a", 1)])

    assert store.collections() == [name]
    assert store.count(name) == 1


@pytest.mark.parametrize(
    "text",
    [
        "ümläut",
        "日本語",
        "👩‍👩‍👧‍👦🏳️‍🌈",
        'a"b\\c\n\t/',
        "$ref",
        "a.b",
        "\x7f\u2028\ufeff",
        "\x01\x1f",
    ],
)
def test_text_comes_back_as_it_was(store: Store, text: str) -> None:
    store.upsert("tweets", [row(text, 1, **{text: text})])

    assert list(store.read("tweets")) == [(text, 1, {text: text})]


def test_empty_key_is_a_key(store: Store) -> None:
    store.upsert("tweets", [row("", 1, n=1)])

    assert kept(store, "tweets") == {"": (1, {"n": 1})}


@pytest.mark.parametrize(
    ("document", "read"),
    [
        (rb'{"t": "a\u0000b"}', {"t": "a\ufffdb"}),
        (rb'{"a\u0000": 1}', {"a\ufffd": 1}),
        (rb'{"t": "\ud83d"}', {"t": "\ufffd"}),
        (rb'{"t": "\uDE00x"}', {"t": "\ufffdx"}),
        (rb'{"t": "\ud83d\ude00"}', {"t": "\U0001f600"}),
        (rb'{"t": "\\u0000"}', {"t": "\\u0000"}),
        (rb'{"t": "\\\u0000"}', {"t": "\\\ufffd"}),
        (b'{"t": "\xff"}', {"t": "\ufffd"}),
    ],
)
def test_text_that_cannot_be_stored_is_replaced(
    store: Store, document: bytes, read: dict[str, str]
) -> None:
    store.upsert("tweets", [("before", 1, b"{}"), ("k", 1, document), ("z", 1, b"{}")])

    assert kept(store, "tweets")["k"] == (1, read)
    assert store.count("tweets") == 3


@pytest.mark.parametrize("key", ["a\0b", "a\ud800b"])
def test_key_that_cannot_be_stored_is_replaced(store: Store, key: str) -> None:
    store.upsert("tweets", [row(key, 1)])

    assert list(kept(store, "tweets")) == ["a\ufffdb"]


def test_integer_beyond_64_bits_does_not_stop_anybody(store: Store) -> None:
    store.upsert("tweets", [row("a", 1, n=10**30), row("b", 1, n=1)])

    assert kept(store, "tweets")["a"][1]["n"] == pytest.approx(10**30)
    assert store.count("tweets") == 2


@pytest.mark.parametrize(
    "document", [b"", b"nonsense", b'{"a": }', b'{"a": 1} x', b'{"a": "\0"}', b"\x00"]
)
@pytest.mark.parametrize("version", [None, 0, 1, 2])
def test_what_is_no_json_is_named_by_its_key(
    store: Store, document: bytes, version: int | None
) -> None:
    """Whether it would be written or not."""
    if version is not None:
        store.upsert("tweets", [("the bad", version, b"{}")])

    with pytest.raises(BadDocument) as caught:
        store.upsert("tweets", [("good", 1, b"{}"), ("the bad", 1, document)])

    assert caught.value.key == "the bad"


def test_store_goes_on_after_a_bad_document(store: Store) -> None:
    with pytest.raises(BadDocument):
        store.upsert("tweets", [("bad", 1, b"nonsense")])

    assert store.upsert("tweets", [row("good", 1)]) == 1
    assert list(kept(store, "tweets")) == ["good"]


def test_huge_document_is_kept_whole(store: Store) -> None:
    text = random.Random(1).randbytes((MAX_DOCUMENT_BYTES - 100) // 2).hex()

    store.upsert("tweets", [row("huge", 1, text=text), row("small", 1)])

    assert kept(store, "tweets")["huge"] == (1, {"text": text})


def test_document_beyond_the_limit_is_named(store: Store) -> None:
    with pytest.raises(BadDocument, match="exceeds") as caught:
        store.upsert("t", [row("a", 1), row("big", 1, x="x" * MAX_DOCUMENT_BYTES)])

    assert caught.value.key == "big"


def test_longest_key_is_kept_and_a_longer_one_named(store: Store) -> None:
    digits = random.Random(2).randbytes(MAX_KEY_BYTES // 2).hex()

    assert store.upsert("tweets", [row(digits, 1)]) == 1
    with pytest.raises(BadDocument, match="exceeds 1024"):
        store.upsert("tweets", [row(digits + "x", 1)])


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()])
def test_arrow_tables_and_batches_are_written(store: Store, kind: pa.DataType) -> None:
    docs = [json.dumps({"n": n}).encode() for n in range(3)]
    table = pa.table(
        {
            "doc": pa.array(docs).cast(kind),
            "key": ["c", "a", "b"],
            "version": pa.array([1, 1, 1], pa.int32()),
        }
    )

    assert store.upsert("tweets", table) == 3
    assert store.upsert("users", table.slice(1).to_batches()[0]) == 2
    assert [doc["n"] for _, _, doc in store.read("tweets")] == [1, 2, 0]
    assert [doc["n"] for _, _, doc in store.read("users")] == [1, 2]


def test_more_than_one_chunk_is_written(store: Store) -> None:
    assert store.upsert("tweets", list(rows(12_345, version=1, size=1))) == 12_345
    assert store.upsert("tweets", list(rows(12_345, version=1, size=1))) == 0
    assert store.count("tweets") == 12_345


def test_reading_stops_at_the_limit(store: Store) -> None:
    store.upsert("tweets", list(rows(10, version=1)))

    assert len(list(store.read("tweets", limit=3))) == 3
    assert list(store.read("tweets", limit=0)) == []


def test_reading_does_not_keep_from_writing(store: Store) -> None:
    store.upsert("tweets", list(rows(5, version=1)))
    reading = store.read("tweets")
    next(reading)

    store.upsert("tweets", list(rows(5, version=2)))
    reading.close()  # type: ignore[attr-defined]  # a generator in both

    assert {version for version, _ in kept(store, "tweets").values()} == {2}


def test_writers_on_the_same_keys_leave_the_newest(url: str) -> None:
    """Every writer writes every key, with versions of its own, in its own order."""
    writers, keys, rounds = 4, 200, 5

    def write(writer: int) -> int:
        chance = random.Random(writer)
        changed = 0
        with stores.open(url) as mine:
            for turn in range(rounds):
                version = turn * writers + writer
                written = list(rows(keys, version=version, size=1))
                chance.shuffle(written)
                changed += mine.upsert("tweets", written)
        return changed

    with concurrent.futures.ThreadPoolExecutor(writers) as pool:
        changed = sum(pool.map(write, range(writers)))

    with stores.open(url) as store:
        found = kept(store, "tweets")
    assert len(found) == keys
    assert {version for version, _ in found.values()} == {rounds * writers - 1}
    assert all(doc["of"] == version for version, doc in found.values())
    assert keys <= changed <= keys * rounds * writers


def test_writers_that_prepare_at_once_all_succeed(url: str) -> None:
    def write(writer: int) -> int:
        with stores.open(url) as mine:
            mine.prepare(["tweets", "users"])
            return mine.upsert("tweets", [row(str(writer), 1)])

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert list(pool.map(write, range(6))) == [1] * 6


@pytest.mark.parametrize("scheme", ["postgresql", "mongodb"])
def test_store_that_is_not_there_is_waited_for_and_named(scheme: str) -> None:
    port = free_port()
    url = f"{scheme}://someone:secret@127.0.0.1:{port}/db"

    with (
        stores.open(url, retry_s=0.2) as store,
        pytest.raises(StoreUnreachable) as caught,
    ):
        store.count("tweets")

    assert f"{scheme}://127.0.0.1:{port}/db" in str(caught.value)
    assert "secret" not in str(caught.value)
