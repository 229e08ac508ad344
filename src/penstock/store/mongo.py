"""Documents in MongoDB: ``{_id: key, version: number, doc: document}``.

A chunk is written in three steps, each a call or two: the versions that are there are
read; what is new is inserted, what is newer updated, both unordered and each on its
own. Whoever writes the same keys meanwhile is met by the conditions: an insert that
comes second fails with a duplicate key (E11000) and is judged again, an update only
matches an older version. Reading first is quicker than upserts with a condition: those
fail with an error for every document that is there already.

Writes are acknowledged by a majority. Collections keep what a document was before and
after a change, for change streams.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
import pymongo
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    CollectionInvalid,
    ConfigurationError,
    DocumentTooLarge,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)
from pymongo.write_concern import WriteConcern

from penstock.errors import BadDocument, InvalidStore, StoreRefused
from penstock.store.documents import documents_of
from penstock.store.retry import Away, retried
from penstock.store.store import RETRY_S, checked_name, place_of

if TYPE_CHECKING:
    from pymongo.collection import Collection
    from pymongo.database import Database

    from penstock.store.store import Row, Rows

    Document = dict[str, Any]

T = TypeVar("T")

CHUNK_ROWS = 2_000
CHUNK_BYTES = 16 << 20
# Looking for a primary once; ``retried`` looks again.
SELECT_S = 5.0
# One call; a majority that is away would keep it waiting for ever.
CALL_MS = 60_000
# Who loses the race to insert a key finds it there the next time.
ROUNDS = 5
DUPLICATE_KEY = 11000
TOO_DEEP = 15
# Codes of errors that pass by: a primary steps down, a server stops or starts.
AGAIN = frozenset(
    {6, 7, 89, 91, 112, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
)
IMAGES = {"enabled": True}
MAX_INT64 = (1 << 63) - 1


class MongoStore:
    """A Store; the driver connects by itself, and again when it must."""

    def __init__(self, url: str, *, retry_s: float = RETRY_S) -> None:
        self.place = place_of(url)
        self._retry_s = retry_s
        self._client, self._database = _opened(url, self.place, retry_s)
        self._prepared: set[str] = set()

    def prepare(self, collections: Sequence[str]) -> None:
        """Create what is missing; changes tell what was there before."""
        for name in map(checked_name, collections):
            self._tried(partial(_have_collection, self._database, name))
            self._prepared.add(name)

    def upsert(self, collection: str, rows: Rows) -> int:
        documents = documents_of(collection, rows)
        if collection not in self._prepared:
            self.prepare([collection])
        kept = self._collection(collection)
        changed = 0
        for chunk in documents.chunks(CHUNK_ROWS, CHUNK_BYTES):
            pending = _decoded(collection, chunk.rows())
            changed += self._tried(partial(_write, kept, pending))
        return changed

    def count(self, collection: str) -> int:
        kept = self._collection(collection)
        return self._tried(lambda: kept.count_documents({}))

    def read(
        self, collection: str, *, limit: int | None = None
    ) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Key, version and document of all, by key."""
        if limit == 0:  # which is no limit, in MongoDB
            return
        kept = self._collection(collection)
        try:
            for found in kept.find().sort("_id", 1).limit(limit or 0):
                yield found["_id"], found["version"], found["doc"]
        except PyMongoError as error:
            raise StoreRefused(self.place, _said(error)) from error

    def collections(self) -> list[str]:
        return sorted(self._tried(self._database.list_collection_names))

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _collection(self, name: str) -> Collection[Document]:
        return self._database.get_collection(
            checked_name(name), write_concern=WriteConcern("majority", wtimeout=CALL_MS)
        )

    def _tried(self, work: Callable[[], T]) -> T:
        return retried(lambda: self._once(work), self.place, self._retry_s)

    def _once(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except PyMongoError as error:
            if _passes(error):
                raise Away(_said(error)) from error
            raise StoreRefused(self.place, _said(error)) from error


def _opened(
    url: str, place: str, retry_s: float
) -> tuple[pymongo.MongoClient[Document], Database[Document]]:
    try:
        client: pymongo.MongoClient[Document] = pymongo.MongoClient(
            url,
            serverSelectionTimeoutMS=int(1000 * min(SELECT_S, retry_s)),
            socketTimeoutMS=CALL_MS,
            appname="penstock",
        )
    except (InvalidURI, ConfigurationError, ValueError, TypeError):
        # Not chained: what the driver says may quote the password.
        raise InvalidStore(place, "the URL cannot be read") from None
    try:
        return client, client.get_default_database()
    except ConfigurationError:
        client.close()
        raise InvalidStore(place, "the URL names no database") from None


def _have_collection(database: Database[Document], name: str) -> None:
    try:
        database.create_collection(name, changeStreamPreAndPostImages=IMAGES)
    except CollectionInvalid:
        _have_images(database, name)
    except OperationFailure as error:
        # 48: somebody else created it just now.
        if error.code != 48:
            raise
        _have_images(database, name)


def _have_images(database: Database[Document], name: str) -> None:
    options = database[name].options()
    if options.get("changeStreamPreAndPostImages") != IMAGES:
        database.command("collMod", name, changeStreamPreAndPostImages=IMAGES)


def _decoded(collection: str, rows: Iterator[Row]) -> list[Document]:
    """The documents as they are stored; raises BadDocument."""
    decode = msgspec.json.Decoder().decode
    found = []
    for key, version, text in rows:
        try:
            document = decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadDocument(collection, key, f"is no JSON: {error}") from error
        found.append({"_id": key, "version": version, "doc": document})
    return found


def _write(kept: Collection[Document], pending: list[Document]) -> int:
    """Have the newest of each; returns how many documents changed."""
    changed = 0
    for _ in range(ROUNDS):
        versions = _versions(kept, [document["_id"] for document in pending])
        new = [document for document in pending if document["_id"] not in versions]
        newer = [
            document
            for document in pending
            if versions.get(document["_id"], document["version"]) < document["version"]
        ]
        pending, inserted = _insert(kept, new)
        changed += inserted + _update(kept, newer)
        if not pending:
            return changed
    raise Away("others insert and delete the same documents")


def _versions(kept: Collection[Document], keys: list[str]) -> dict[str, int]:
    found = kept.find({"_id": {"$in": keys}}, {"version": 1})
    return {document["_id"]: document["version"] for document in found}


def _insert(
    kept: Collection[Document], new: list[Document]
) -> tuple[list[Document], int]:
    """Those that somebody else inserted meanwhile, and how many were ours."""
    if not new:
        return [], 0
    try:
        _checked(kept.name, new, lambda part: kept.insert_many(part, ordered=False))
    except BulkWriteError as error:
        beaten = [new[index] for index in _duplicates(kept.name, new, error)]
        return beaten, len(new) - len(beaten)
    return [], len(new)


def _update(kept: Collection[Document], newer: list[Document]) -> int:
    def work(part: list[Document]) -> int:
        steps = [
            pymongo.ReplaceOne(
                {"_id": one["_id"], "version": {"$lt": one["version"]}}, one
            )
            for one in part
        ]
        return kept.bulk_write(steps, ordered=False).modified_count

    if not newer:
        return 0
    try:
        return _checked(kept.name, newer, work)
    except BulkWriteError as error:
        _duplicates(kept.name, newer, error)
        raise


def _checked(
    name: str, documents: list[Document], work: Callable[[list[Document]], T]
) -> T:
    """The work, with numbers that fit; raises BadDocument for one beyond a limit."""
    try:
        return work(documents)
    except OverflowError:
        for one in documents:
            one["doc"] = with_numbers_that_fit(one["doc"])
        return work(documents)
    except DocumentTooLarge as error:
        largest = max(documents, key=lambda one: len(msgspec.json.encode(one["doc"])))
        raise BadDocument(name, largest["_id"], str(error)) from error
    except OperationFailure as error:
        if error.code != TOO_DEEP:
            raise
        deepest = max(documents, key=lambda one: _depth(one["doc"]))
        raise BadDocument(name, deepest["_id"], "is nested too deep") from error


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_depth, inner), default=0)


def with_numbers_that_fit(value: Any) -> Any:
    """The same with floats for integers beyond 64 bits, which MongoDB has none of."""
    match value:
        case dict():
            return {name: with_numbers_that_fit(one) for name, one in value.items()}
        case list():
            return [with_numbers_that_fit(one) for one in value]
        case int() if not -MAX_INT64 - 1 <= value <= MAX_INT64:
            beyond = math.copysign(sys.float_info.max, value > 0 or -1)
            return float(value) if abs(value) < 1 << 1023 else beyond
        case _:
            return value


def _duplicates(
    name: str, documents: list[Document], error: BulkWriteError
) -> list[int]:
    """Where a key was there already; raises what else went wrong."""
    if error.details.get("writeConcernErrors"):
        raise Away("not acknowledged by a majority") from error
    found = []
    for one in error.details["writeErrors"]:
        if one["code"] in AGAIN:
            raise Away(one["errmsg"]) from error
        if one["code"] != DUPLICATE_KEY:
            raise BadDocument(name, documents[one["index"]]["_id"], one["errmsg"])
        found.append(one["index"])
    return found


def _passes(error: PyMongoError) -> bool:
    """Whether the same may go well later."""
    if isinstance(error, AutoReconnect | WriteConcernError) or error.timeout:
        return True
    code = error.code if isinstance(error, OperationFailure) else None
    return code in AGAIN or error.has_error_label("RetryableWriteError")


def _said(error: PyMongoError) -> str:
    """What went wrong, in one line and without the topology of the cluster."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said.partition(", full error")[0].partition(", Topology Description")[0]
