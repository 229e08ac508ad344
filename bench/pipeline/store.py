"""Bulk writes of a store against its driver's own bulk loader, in one run.

    python -m bench.pipeline.store [URL]

The loader is COPY into an empty table for PostgreSQL, ``insert_many`` into an empty
collection for MongoDB: it knows no keys, no versions and no second time. Both write the
same documents, in rounds that take turns, and the best round of each counts. Without a
URL a PostgreSQL of our own is measured.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from bench.peers.processes import Missing
from bench.pipeline.scene import Scene
from penstock.store import store as stores
from penstock.store.documents import Documents, documents_of
from penstock.store.own import OwnPostgres
from penstock.store.store import Store

ROUNDS = 3
DOCUMENTS, QUICK_DOCUMENTS = 50_000, 10_000
OURS, LOADED = "bench_upserted", "bench_loaded"


@dataclass(frozen=True, slots=True)
class Measured:
    """Documents a second; ``ratio`` says how many times as quick the loader is."""

    system: str
    documents: int
    document_bytes: int
    loader: float
    new: float
    newer: float
    again: float

    @property
    def ratio(self) -> float:
        return self.loader / self.new


def measure(
    url: str, *, documents: int = DOCUMENTS, rounds: int = ROUNDS, batch: int = 5_000
) -> Measured:
    """Write so many documents, a batch at a call, and load them, in a database.

    ``new``: into an empty collection; ``newer``: over older ones; ``again``: what is
    there already. The collections bench_… are dropped before and after.
    """
    rows = made(documents)
    best: dict[str, float] = {}

    def took(name: str, work: Callable[[], object]) -> None:
        begin = time.perf_counter()
        work()
        rate = documents / (time.perf_counter() - begin)
        best[name] = max(rate, best.get(name, 0.0))

    with _loader(url) as loader:
        for _ in range(rounds):
            loader.drop()
            with stores.open(url) as store:
                store.prepare([OURS, LOADED])
                took("loader", lambda: loader.load(rows))
                for name, version in (("new", 1), ("newer", 2), ("again", 2)):
                    took(name, lambda v=version: _upsert(store, rows, v, batch))  # type: ignore[misc]
        loader.drop()
    size = rows.column("doc").nbytes // documents
    return Measured(url.partition(":")[0], documents, size, **best)


def run(scene: Scene, notes: list[str]) -> list[Measured]:
    """PostgreSQL of our own, and MongoDB if there is one to be had."""
    documents = QUICK_DOCUMENTS if scene.settings.quick else DOCUMENTS
    much = {"documents": documents, "rounds": ROUNDS}
    with OwnPostgres(scene.fresh("store")) as server:
        found = [measure(server.url, **much)]
    try:
        with mongod() as other:
            found.append(measure(other.url, **much))
    except Missing as reason:
        notes.append(f"MongoDB is missing: {reason}")
    return found


class Server(NamedTuple):
    """A store that somebody else runs."""

    url: str
    pid: int


@contextlib.contextmanager
def mongod() -> Iterator[Server]:
    """The one that tests use; raises Missing, saying why there is none."""
    # Here, because it comes with what tests need.
    try:
        from tests import mongod as real
    except ImportError as error:
        raise Missing(str(error)) from error
    try:
        real.fetched()
    except real.Unavailable as error:
        raise Missing(str(error)) from error
    # As much as a MongoDB has by itself at least: less is gone within seconds here.
    with real.own_mongod(oplog_mib=990) as server, real.database_of(server.url) as url:
        yield Server(url, server.pid)


def made(count: int) -> Any:
    """Documents like those of tweets, keys in no order."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=5)) for _ in range(3000)]

    def document(number: int) -> bytes:
        said = chance.choices(words, k=20)
        return json.dumps(
            {
                "tw_id": str(number),
                "text": " ".join(said),
                "is_retweet": False,
                "user_id": str(chance.randrange(10_000)),
                "sentiments_data": {
                    "tweet_text": " ".join(said),
                    "tweet_words": said,
                    "words_emotion_values": [0] * len(said),
                },
                "engagement_data": {"favorite_count": 4, "followers_count": number},
                "engagement_score": chance.random(),
                "hashtags": chance.sample(words, 3),
                "original_tweet": {"text": " ".join(said)},
            }
        ).encode()

    keys = [str(10**17 + number * 7919) for number in range(count)]
    chance.shuffle(keys)
    docs = [document(number) for number in range(count)]
    return pa.table({"key": keys, "doc": pa.array(docs, pa.binary())})


class _Copy:
    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True)

    def drop(self) -> None:
        self._connection.execute(
            f"DROP TABLE IF EXISTS {OURS}, {LOADED}; CHECKPOINT".encode()
        )

    def load(self, rows: Any) -> None:
        from penstock.store.pgcopy import encoded

        target = f"COPY {LOADED} FROM STDIN (FORMAT binary)".encode()
        with self._connection.cursor().copy(target) as copy:
            for buffer in encoded(_documents(rows, 1)):
                copy.write(buffer)

    def close(self) -> None:
        self._connection.close()


class _InsertMany:
    def __init__(self, url: str) -> None:
        import pymongo

        self._client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(url)
        self._database = self._client.get_default_database()

    def drop(self) -> None:
        for name in (OURS, LOADED):
            self._database.drop_collection(name)

    def load(self, rows: Any) -> None:
        from pymongo.write_concern import WriteConcern

        kept = self._database.get_collection(
            LOADED, write_concern=WriteConcern("majority")
        )
        documents = _documents(rows, 1).rows()
        kept.insert_many(
            [
                {"_id": key, "version": version, "doc": msgspec.json.decode(doc)}
                for key, version, doc in documents
            ],
            ordered=False,
        )

    def close(self) -> None:
        self._client.close()


@contextlib.contextmanager
def _loader(url: str) -> Iterator[_Copy | _InsertMany]:
    loader = _InsertMany(url) if url.startswith("mongodb") else _Copy(url)
    try:
        yield loader
    finally:
        loader.close()


def _upsert(store: Store, rows: Any, version: int, batch: int) -> None:
    table = _versioned(rows, version)
    for begin in range(0, len(table), batch):
        store.upsert(OURS, table.slice(begin, batch))


def _documents(rows: Any, version: int) -> Documents:
    return documents_of(LOADED, _versioned(rows, version))


def _versioned(rows: Any, version: int) -> Any:
    return rows.append_column("version", pa.repeat(pa.scalar(version), len(rows)))


def main() -> None:
    if len(sys.argv) > 1:
        found = measure(sys.argv[1])
    else:
        directory = tempfile.mkdtemp(prefix="penstock-bench-")
        try:
            with OwnPostgres(directory) as server:
                found = measure(server.url)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    print(
        f"{found.system}: {found.documents} documents of {found.document_bytes} bytes"
    )
    for name in ("loader", "new", "newer", "again"):
        print(f"  {name:8}{getattr(found, name):>10,.0f}/s")
    print(f"  the loader is {found.ratio:.2f} times as quick as new documents")


if __name__ == "__main__":
    main()
