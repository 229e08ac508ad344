"""Documents of MongoDB that are there already, by ``_id``, in front of their changes.

The change stream is begun first. Then documents are read in parts, each as of one
moment (read concern "snapshot"), which the server tells. In front of a part come the
changes up to that moment, of documents that were told; those of others are dropped, as
they are read at that moment or later. So nothing is missing and nothing comes twice,
however long it takes, and it can be cut off between any two parts. See frontier.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson import BSON, ObjectId, Timestamp
from bson.json_util import CANONICAL_JSON_OPTIONS, dumps, loads
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure, PyMongoError

from penstock.cdc.change import NOTHING, Change, ChangePayload, ChangeSource
from penstock.cdc.frontier import Frontier
from penstock.cdc.mongo import MongoCapture, MongoDocument, key_of, opened
from penstock.errors import StoreRefused, StoreUnreachable
from penstock.store.store import place_of

# Documents of a part, at most; of large ones it is fewer, up to a reply of 16 MB.
PART = 2_000
# The server has no such moment any more, or not yet for a collection that is new.
_PASSING = frozenset({239, 246})


class MongoSnapshot:
    """``collections`` and ``document`` as of MongoCapture."""

    def __init__(
        self,
        url: str,
        name: str,
        collections: Sequence[str],
        *,
        document: str | None = None,
    ) -> None:
        self.is_done = False
        self._url = url
        self._name = name
        self._shown = place_of(url)
        self._collections = list(collections)
        self._capture = MongoCapture(url, name, collections, document=document)
        self._client: MongoClient[Any] | None = None
        self._frontier = Frontier()
        self._place = ""
        self._moment = Timestamp(0, 0)
        self._part: list[MongoDocument] | None = None
        """Read, and to be told when changes have come as far."""

    def begin(self, place: str, frontier: str) -> None:
        self.close()
        self._frontier, self._place = Frontier.of(frontier), place
        if not place:
            self._capture.begin("")
            self._place = self._capture.place()
        self._client = opened(self._url)
        try:
            self._check(self._client.get_default_database())
        except PyMongoError as error:
            raise self._judged(error) from error
        except BaseException:
            self.close()
            raise

    def take(self, most: int, wait_s: float) -> list[Change]:
        if self._part is not None:
            return self._catch_up(most, wait_s)
        name = self._frontier.next_of(self._collections)
        if name is None:
            self.is_done = True
            return []
        try:
            self._part = self._read(name)
        except PyMongoError as error:
            raise self._judged(error) from error
        self._capture.begin(self._place, until=self._moment, wanted=self._holds)
        return []

    def place(self) -> str:
        return self._place

    def frontier(self) -> str:
        return self._frontier.text()

    def close(self) -> None:
        self._capture.close()
        self._part = None
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @property
    def _database(self) -> Database[Any]:
        assert self._client is not None, "begin comes first"
        return self._client.get_default_database()

    def _catch_up(self, most: int, wait_s: float) -> list[Change]:
        """Changes up to the moment of the part, and then the part."""
        changes = self._capture.take(most, wait_s)
        self._place = self._capture.place()
        if not self._capture.arrived:
            return changes
        self._capture.close()
        name = self._frontier.next_of(self._collections)
        part, self._part = self._part, None
        assert name is not None and part is not None, "it was read"
        if not part:
            self._frontier = self._frontier.finished(name)
            return changes
        changes += [
            self._change(name, document, self._frontier.count + number)
            for number, document in enumerate(part, 1)
        ]
        last = dumps(part[-1]["_id"], json_options=CANONICAL_JSON_OPTIONS)
        self._frontier = self._frontier.moved(name, last, len(part))
        return changes

    def _read(self, name: str) -> list[MongoDocument]:
        """Documents behind the frontier, as of a moment."""
        order = {"_id": 1}
        more: dict[str, Any] = {}
        last = None
        if self._frontier.collection == name and self._frontier.key is not None:
            last = loads(self._frontier.key)
            more = {"min": {"_id": last}}
        before = self._database.command("ping")["operationTime"]
        answer = self._database.command(
            "find",
            name,
            hint=order,
            sort=order,
            limit=PART,
            batchSize=PART,
            singleBatch=True,
            readConcern={"level": "snapshot"},
            **more,
        )["cursor"]
        # Of a collection that is not there the server tells no moment.
        self._moment = answer.get("atClusterTime", before)
        found: list[MongoDocument] = answer["firstBatch"]
        if last is not None and found and _is_same(found[0]["_id"], last):
            return found[1:]
        return found

    def _holds(self, collection: str, ids: list[Any]) -> bool:
        """Whether a change is of a document that was told; ``ids``: its id, or none."""
        if not ids:  # of the whole collection
            begun = self._frontier.holds(collection, lambda _: True)
            return begun or collection == self._frontier.collection
        return self._frontier.holds(
            collection, lambda last: self._is_up_to(ids[0], loads(last))
        )

    def _is_up_to(self, one: Any, last: Any) -> bool:
        """In the order of the server; it is asked where that is not plain."""
        for kinds in (str, ObjectId, (int, float)):
            if _is(one, kinds) and _is(last, kinds):
                return bool(_comparable(one) <= _comparable(last))
        pair = {"$lte": [{"$literal": one}, {"$literal": last}]}
        stages: list[MongoDocument] = [{"$documents": [{}]}, {"$project": {"is": pair}}]
        try:
            [found] = self._database.aggregate(stages)
        except PyMongoError as error:
            raise self._judged(error) from error
        return bool(found["is"])

    def _change(self, name: str, document: MongoDocument, number: int) -> Change:
        moment = f"{self._moment.time}.{self._moment.inc}-read-{number}"
        database = self._database.name
        source = ChangeSource("mongodb", database, name, moment, None)
        after = self._capture.json(document)
        body = ChangePayload("read", key_of(document["_id"]), NOTHING, after, source)
        return Change(f"{self._name}-{moment}", body)

    def _check(self, database: Database[Any]) -> None:
        """Raises StoreRefused for a collection that is not in the plain order."""
        for one in database.list_collections():
            if one["name"] in self._collections and "collation" in one["options"]:
                reason = f"the collection {one['name']} has a collation of its own"
                raise StoreRefused(self._shown, f"no snapshot: {reason}")

    def _judged(self, error: PyMongoError) -> Exception:
        self.close()
        if isinstance(error, OperationFailure) and error.code in _PASSING:
            return StoreUnreachable(self._shown, 0.0, str(error)[:200])
        return self._capture.judged(error, self._place)


def _is(value: Any, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _comparable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _is_same(one: Any, other: Any) -> bool:
    return BSON.encode({"": one}) == BSON.encode({"": other})
