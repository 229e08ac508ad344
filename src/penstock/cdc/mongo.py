"""Changes of MongoDB collections, by a change stream over their database.

The place of a change is its resume token. Where a collection keeps images of its
documents (``changeStreamPreAndPostImages``), before and after are those of the change
itself; elsewhere there is no before, and after is the document as it is when it is
looked at.

A collection that is dropped, or renamed, is told of as truncated: its documents are not
told one by one. Nor are those that come with another collection's name.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec
from bson import Int64, Timestamp
from bson.errors import BSONError
from bson.json_util import RELAXED_JSON_OPTIONS, dumps
from pymongo import MongoClient
from pymongo.change_stream import DatabaseChangeStream
from pymongo.database import Database
from pymongo.errors import ConfigurationError, OperationFailure, PyMongoError

from penstock.cdc.change import (
    NOTHING,
    TAKE_BYTES,
    Change,
    ChangePayload,
    ChangeSource,
    Op,
)
from penstock.errors import (
    CaptureLost,
    InvalidStore,
    StoreError,
    StoreRefused,
    StoreUnreachable,
)
from penstock.store.mongobulk import AGAIN
from penstock.store.store import place_of

logger = logging.getLogger(__name__)

CONNECT_MS = 5_000
# How long the server waits for a change before it answers that there is none.
AWAIT_MS = 200
# The change stream's own past is gone: history lost, fatal, or a foreign token.
_LOST = frozenset({260, 280, 286, 50811})
# Servers that can keep images.
_IMAGES_SINCE = [6, 0]
_OPS: dict[str, Op] = {
    "insert": "insert",
    "update": "update",
    "replace": "update",
    "delete": "delete",
    "drop": "truncate",
}
# How a resume token begins that begins with a time.
_OF_TIME = "82"
# Ids that are longer are shortened to a hash.
MAX_ID = 200

MongoDocument = Mapping[str, Any]
Wanted = Callable[[str, list[Any]], bool]


class MongoCapture:
    """``collections`` of the database that the URL names.

    ``document``: the field that is the document; None: all of them are.
    """

    def __init__(
        self,
        url: str,
        name: str,
        collections: Sequence[str],
        *,
        document: str | None = None,
    ) -> None:
        self.lag: int | None = None
        self._document = document
        self._url = url
        self._name = name
        self._collections = list(collections)
        self._client: MongoClient[Any] | None = None
        self._stream: DatabaseChangeStream[Any] | None = None
        self._database = ""
        self._token: MongoDocument | None = None
        self._shown = place_of(url)
        self._until: Timestamp | None = None
        self._wanted: Wanted | None = None
        self.arrived = False

    def begin(
        self,
        place: str,
        *,
        until: Timestamp | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        """With ``until`` it has ``arrived`` when all was taken that happened up to
        then; ``wanted``: which changes are, by collection, and id if there is one."""
        self.close()
        self._until, self._wanted, self.arrived = until, wanted, False
        token = msgspec.json.decode(place) if place else None
        database = self._opened()
        try:
            self._watch(database, token)
        except PyMongoError as error:
            raise self.judged(error, place) from error

    def forget(self) -> None:
        """The server keeps nothing for a capture."""

    def take(self, most: int, wait_s: float) -> list[Change]:
        assert self._stream is not None, "begin comes first"
        changes: list[Change] = []
        size = 0
        limit_s = time.monotonic() + wait_s
        try:
            while len(changes) < most and size < TAKE_BYTES:
                found = self._stream.try_next()
                if self._is_behind(found):
                    break
                self._token = self._stream.resume_token
                if not self._stream.alive:  # the database was dropped
                    assert self._client is not None, "begin comes first"
                    self._watch(self._client.get_default_database(), self._token)
                self.lag = 0 if found is None else 1
                if found is not None:
                    for change in self._changes(found):
                        changes.append(change)
                        size += len(change.body.after) + len(change.body.before)
                elif self.arrived or changes or time.monotonic() >= limit_s:
                    break
        except (PyMongoError, BSONError) as error:
            raise self.judged(error, self.place()) from error
        return changes

    def _is_behind(self, found: MongoDocument | None) -> bool:
        """Whether it is not to be taken; takes note of having arrived."""
        if self._until is None:
            return False
        if found is not None:
            self.arrived = found["clusterTime"] > self._until
            return self.arrived
        assert self._stream is not None, "begin comes first"
        self.arrived = moment_of(self._stream.resume_token) >= self._until
        return False

    def place(self) -> str:
        return msgspec.json.encode(dict(self._token or {})).decode()

    def stored(self) -> None:
        """The server keeps its log by its own rules."""

    def close(self) -> None:
        client, self._client = self._client, None
        self._stream = None
        if client is not None:
            client.close()

    def _opened(self) -> Database[Any]:
        """Raises InvalidStore."""
        try:
            self._client = opened(self._url)
            return self._client.get_default_database()
        except InvalidStore:
            self.close()
            raise

    def _watch(self, database: Database[Any], token: MongoDocument | None) -> None:
        self._database = database.name
        wanted = {"$in": self._collections}
        of_interest = [{"ns.coll": wanted}, {"to.coll": wanted}]
        version = database.client.server_info()["versionArray"]
        images = version >= _IMAGES_SINCE
        self._stream = database.watch(
            [{"$match": {"$or": [*of_interest, {"operationType": "invalidate"}]}}],
            full_document="whenAvailable"
            if images and self._some_have_images(database)
            else "updateLookup",
            full_document_before_change="whenAvailable" if images else None,
            # As resume_after, but also behind a database that was dropped.
            start_after=token,
            max_await_time_ms=AWAIT_MS,
        )
        self._token = token
        while self._token is None:  # it is now: what comes first is in front of it
            self._stream.try_next()
            self._token = self._stream.resume_token

    def _some_have_images(self, database: Database[Any]) -> bool:
        return any(
            one.get("options", {})
            .get("changeStreamPreAndPostImages", {})
            .get("enabled")
            for one in database.list_collections()
            if one["name"] in self._collections
        )

    def _changes(self, found: MongoDocument) -> Iterator[Change]:
        kind = found["operationType"]
        if kind == "rename":
            yield from self._renamed(found)
        elif kind in _OPS:
            key, name = found.get("documentKey"), found["ns"]["coll"]
            if not self._is_wanted(name, [] if key is None else [key["_id"]]):
                return
            document_key = None if key is None else key_of(key["_id"])
            yield self._change(found, name, _OPS[kind], document_key)

    def _renamed(self, found: MongoDocument) -> Iterator[Change]:
        for number, name in enumerate((found["ns"]["coll"], found["to"]["coll"])):
            if name in self._collections and self._is_wanted(name, []):
                logger.warning(
                    "the collection %s was renamed, or another one is called so now: "
                    "its documents are not told one by one",
                    *(name,),
                    extra={"action": "capture_renamed"},
                )
                yield self._change(found, name, "truncate", None, number)

    def _is_wanted(self, collection: str, ids: list[Any]) -> bool:
        return self._wanted is None or self._wanted(collection, ids)

    def _change(
        self,
        found: MongoDocument,
        collection: str,
        op: Op,
        key: str | None,
        number: int = 0,
    ) -> Change:
        token = str(found["_id"]["_data"])
        at = found.get("wallTime")
        source = ChangeSource(
            system="mongodb",
            database=self._database,
            collection=collection,
            position=token,
            at_ms=None if at is None else int(at.timestamp() * 1000),
        )
        before = self.json(found.get("fullDocumentBeforeChange"))
        after = found.get("fullDocument")
        if op == "update" and after is None:
            after = self._looked_up(collection, found["documentKey"])
        body = ChangePayload(op, key, before, self.json(after), source)
        suffix = f".{number}" if number else ""
        return Change(_id(self._name, token) + suffix, body)

    def json(self, found: MongoDocument | None) -> msgspec.Raw:
        """A document, or the field of it that is one."""
        if found is not None and self._document is not None:
            found = found.get(self._document)
        return NOTHING if found is None else msgspec.Raw(_dumped(found).encode())

    def _looked_up(self, collection: str, key: MongoDocument) -> MongoDocument | None:
        """A document of a collection without images beside others that have some."""
        assert self._client is not None, "begin comes first"
        found: MongoDocument | None = self._client[self._database][collection].find_one(
            key
        )
        return found

    def judged(self, error: Exception, place: str) -> StoreError:
        """What an error means: whether the same may go well later."""
        self.close()
        if not isinstance(error, OperationFailure):
            if isinstance(error, PyMongoError):
                return StoreUnreachable(self._shown, 0.0, _text(error))
            return StoreRefused(self._shown, _text(error))
        if error.code in _LOST:
            return CaptureLost(self._shown, "the change stream", place)
        passes = error.has_error_label("ResumableChangeStreamError")
        if passes or error.code in AGAIN or error.timeout:
            return StoreUnreachable(self._shown, 0.0, _text(error))
        return StoreRefused(self._shown, _text(error))


def opened(url: str) -> MongoClient[Any]:
    """A client of a database that the URL names; raises InvalidStore."""
    client: MongoClient[Any] | None = None
    try:
        client = MongoClient(
            url,
            serverSelectionTimeoutMS=CONNECT_MS,
            appname="penstock cdc",
            # Times have a zone, and what is damaged stops no capture.
            tz_aware=True,
            unicode_decode_error_handler="replace",
            datetime_conversion="DATETIME_AUTO",
        )
        client.get_default_database()
        return client
    except (ConfigurationError, ValueError, TypeError):
        if client is not None:
            client.close()
        # Not chained: what the driver says may quote the password.
        reason = "the URL cannot be read, or names no database"
        raise InvalidStore(place_of(url), reason) from None


def moment_of(token: MongoDocument | None) -> Timestamp:
    """The time in a resume token: the first of its keys, behind a byte for its kind."""
    data = str((token or {}).get("_data", ""))
    if not data.startswith(_OF_TIME):
        return Timestamp(0, 0)
    return Timestamp(int(data[2:10], 16), int(data[10:18], 16))


def _id(name: str, token: str) -> str:
    found = f"{name}-{token}"
    if len(found) <= MAX_ID:
        return found
    return f"{name}-{hashlib.sha256(token.encode()).hexdigest()}"


def key_of(value: object) -> str:
    """An id as the key of an event."""
    return value if isinstance(value, str) else _dumped(value)


def _dumped(value: object) -> str:
    """As Extended JSON, relaxed: what JSON has itself is as it is there."""
    if _is_plain(value):
        with suppress(ValueError):  # a number that is none, or infinite
            return _plain_text(value)
    return dumps(value, json_options=RELAXED_JSON_OPTIONS, ensure_ascii=False)


def _is_plain(value: object) -> bool:
    """Whether it is of types that JSON has; by type, as code is a text as well."""
    kind = type(value)
    if kind is dict:
        return all(map(_is_plain, cast("dict[str, object]", value).values()))
    if kind is list:
        return all(map(_is_plain, cast("list[object]", value)))
    return kind in _PLAIN


_PLAIN = frozenset({str, int, float, bool, type(None), Int64})
# Several times as fast as the driver's, which asks for each value what it is.
_plain_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _text(error: Exception) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    said = said.partition(", full error")[0].partition(", Topology Description")[0]
    return said[:500]
