"""Documents in MongoDB: ``{_id: key, version: number, doc: document}``.

Chunks are written by mongobulk.py. Writes are acknowledged by a majority. Collections
keep what a document was before and after a change, for change streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pymongo
from pymongo.errors import (
    AutoReconnect,
    CollectionInvalid,
    ConfigurationError,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from penstock.errors import InvalidStore, StoreRefused
from penstock.store.documents import documents_of
from penstock.store.mongobulk import AGAIN, APPLICATION, write
from penstock.store.retry import Away, retried
from penstock.store.store import RETRY_S, checked_name, place_of

if TYPE_CHECKING:
    from pymongo.collection import Collection
    from pymongo.database import Database

    from penstock.store.mongobulk import StoredDocument
    from penstock.store.store import DocumentRows

T = TypeVar("T")

CHUNK_ROWS = 2_000
CHUNK_BYTES = 16 << 20
# Looking for a primary once; ``retried`` looks again.
SELECT_S = 5.0
# One call; a majority that is away would keep it waiting for ever.
CALL_MS = 60_000
IMAGES = {"enabled": True}


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

    def upsert(self, collection: str, rows: DocumentRows) -> int:
        documents = documents_of(collection, rows)
        if collection not in self._prepared:
            self.prepare([collection])
        kept = self._collection(collection)
        changed = 0
        for chunk in documents.chunks(CHUNK_ROWS, CHUNK_BYTES):
            changed += self._tried(partial(write, kept, list(chunk.rows())))
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

    def _collection(self, name: str) -> Collection[StoredDocument]:
        return self._database.get_collection(
            checked_name(name),
            read_preference=ReadPreference.PRIMARY,
            write_concern=WriteConcern("majority", wtimeout=CALL_MS),
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
) -> tuple[pymongo.MongoClient[StoredDocument], Database[StoredDocument]]:
    try:
        client: pymongo.MongoClient[StoredDocument] = pymongo.MongoClient(
            url,
            serverSelectionTimeoutMS=int(1000 * min(SELECT_S, retry_s)),
            socketTimeoutMS=CALL_MS,
            appname=APPLICATION,
        )
    except (InvalidURI, ConfigurationError, ValueError, TypeError):
        # Not chained: what the driver says may quote the password.
        raise InvalidStore(place, "the URL cannot be read") from None
    try:
        return client, client.get_default_database()
    except ConfigurationError:
        client.close()
        raise InvalidStore(place, "the URL names no database") from None


def _have_collection(database: Database[StoredDocument], name: str) -> None:
    try:
        database.create_collection(name, changeStreamPreAndPostImages=IMAGES)
    except CollectionInvalid:
        _have_images(database, name)
    except OperationFailure as error:
        # 48: another client created it just now.
        if error.code != 48:
            raise
        _have_images(database, name)


def _have_images(database: Database[StoredDocument], name: str) -> None:
    options = database[name].options()
    if options.get("changeStreamPreAndPostImages") != IMAGES:
        database.command("collMod", name, changeStreamPreAndPostImages=IMAGES)


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
