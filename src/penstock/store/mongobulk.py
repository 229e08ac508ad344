"""A chunk of documents on its way into a collection of MongoDB.

The versions that are there are read; what is new is inserted, what is newer updated.
A writer of the same keys meanwhile is met by the conditions: an insert that comes
second fails with a duplicate key (E11000) and is judged again, an update only changes
an older version. Reading first is quicker than upserts with a condition: those fail
with an error for every document that is there already.

Updates go in groups, each one statement with the new documents in it, and all of them
in one transaction: most of what an update costs by itself is its statement, its commit
and its entry in the log. If others are in the way, or there can be no transaction, the
groups are written without one, and wait for the others. A group that is refused is
written again one by one, which names the document that is at fault.

MongoDB keeps the transaction of a writer that was killed for a minute. Who meets it
ends it: the connection that it came by is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pymongo
from pymongo.errors import BulkWriteError, OperationFailure, WriteConcernError
from pymongo.read_concern import ReadConcern

from penstock.errors import BadDocument
from penstock.store.mongodocs import depth_of, encoded, groups, literal
from penstock.store.retry import Away

if TYPE_CHECKING:
    from pymongo import MongoClient, ReplaceOne, UpdateMany
    from pymongo.client_session import ClientSession
    from pymongo.collection import Collection

    from penstock.store.store import DocumentRow

    StoredDocument = dict[str, Any]
    BulkSteps = list[ReplaceOne[Any] | UpdateMany]

# By which a store knows its own transactions.
APPLICATION = "penstock"
# Who loses the race to insert a key finds it there the next time.
ROUNDS = 5
# Documents are looked for one after the other in a group.
GROUP_ROWS = 50
GROUP_BYTES = 1 << 20
# Waiting for others who write the same; then one of them may be gone.
CONTENDED_S = 5.0
DUPLICATE_KEY = 11000
TOO_DEEP = 15
# Codes of errors that pass by: a primary steps down, a server stops or starts, and one
# that was killed knows nothing of the cursors of before.
AGAIN = frozenset(
    {6, 7, 43, 50, 89, 91, 112, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
)
SETTLED = ReadConcern("majority")


def write(kept: Collection[StoredDocument], rows: Sequence[DocumentRow]) -> int:
    """Have the newest of each; returns how many documents changed."""
    changed = 0
    with kept.database.client.start_session() as session:
        for _ in range(ROUNDS):
            versions = versions_of(kept, [row[0] for row in rows], session)
            new = [row for row in rows if row[0] not in versions]
            newer = [row for row in rows if versions.get(row[0], row[1]) < row[1]]
            # Before anything is written: it names what is no JSON.
            steps = _steps(kept.name, newer)
            for row in rows:
                if versions.get(row[0], -1) >= row[1]:
                    encoded(kept.name, row)
            beaten = _insert(kept, new, session)
            written = len(new) - len(beaten) + _update(kept, newer, steps, session)
            if not written:
                _settle(kept, session)
            changed += written
            if not beaten:
                return changed
            rows = [row for row in rows if row[0] in beaten]
    raise Away("others insert and delete the same documents")


def versions_of(
    kept: Collection[StoredDocument], keys: list[str], session: ClientSession
) -> dict[str, int]:
    """The versions of those that are there."""
    found = kept.find(
        {"_id": {"$in": keys}}, {"version": 1}, batch_size=len(keys), session=session
    )
    return {document["_id"]: document["version"] for document in found}


def _settle(kept: Collection[StoredDocument], session: ClientSession) -> None:
    """Wait until what was read is safe on disk.

    Another writer may have written it just now, and may not know either. After writes
    of our own there is nothing to wait for: they are safe, and came later.
    """
    kept.with_options(read_concern=SETTLED).find_one({}, {"_id": 1}, session=session)


def _insert(
    kept: Collection[StoredDocument], new: list[DocumentRow], session: ClientSession
) -> set[str]:
    """The keys that another writer inserted meanwhile."""
    if not new:
        return set()
    documents = [encoded(kept.name, row) for row in new]
    try:
        kept.insert_many(documents, ordered=False, session=session)
    except BulkWriteError as error:
        return _duplicates(kept.name, new, error)
    except OperationFailure as error:
        raise _judged(kept.name, new, error) from error
    return set()


def _update(
    kept: Collection[StoredDocument],
    newer: list[DocumentRow],
    steps: BulkSteps,
    session: ClientSession,
) -> int:
    """Write over those that are older; returns how many were."""
    if not newer:
        return 0
    try:
        with session.start_transaction(write_concern=kept.write_concern):
            return kept.bulk_write(steps, session=session).modified_count
    except WriteConcernError:
        raise
    except OperationFailure:
        end_orphans(kept.database.client)
    return _update_beside_others(kept, newer, steps, session)


def _update_beside_others(
    kept: Collection[StoredDocument],
    newer: list[DocumentRow],
    steps: BulkSteps,
    session: ClientSession,
) -> int:
    changed = 0
    try:
        with pymongo.timeout(CONTENDED_S):
            return _bulk(kept, steps, session)
    except BulkWriteError as error:
        _raise_what_passes(error)
        changed = error.details["nModified"]
    except OperationFailure as error:
        if error.timeout or error.code in AGAIN:
            raise
    return changed + _update_one_by_one(kept, newer, session)


def _update_one_by_one(
    kept: Collection[StoredDocument], newer: list[DocumentRow], session: ClientSession
) -> int:
    try:
        return _bulk(kept, [_step(kept.name, [row]) for row in newer], session)
    except BulkWriteError as error:
        _duplicates(kept.name, newer, error)
        raise
    except OperationFailure as error:
        raise _judged(kept.name, newer, error) from error


def _bulk(
    kept: Collection[StoredDocument], steps: BulkSteps, session: ClientSession
) -> int:
    return kept.bulk_write(steps, ordered=False, session=session).modified_count


def _steps(name: str, newer: list[DocumentRow]) -> BulkSteps:
    return [_step(name, group) for group in groups(newer, GROUP_ROWS, GROUP_BYTES)]


def _step(name: str, group: list[DocumentRow]) -> ReplaceOne[Any] | UpdateMany:
    """Replaces those that are older; others do not change, and no stream tells it."""
    if len(group) == 1:
        key, version, _ = group[0]
        older = {"_id": key, "version": {"$lt": version}}
        return pymongo.ReplaceOne(older, encoded(name, group[0]))
    keys = [row[0] for row in group]
    place = {"$indexOfArray": [{"$literal": keys}, "$_id"]}
    new = {"$arrayElemAt": [literal(name, group), place]}
    newest = {"$cond": [{"$lt": ["$version", "$$new.version"]}, "$$new", "$$ROOT"]}
    chosen = {"$let": {"vars": {"new": new}, "in": newest}}
    return pymongo.UpdateMany({"_id": {"$in": keys}}, [{"$replaceWith": chosen}])


def end_orphans(client: MongoClient[StoredDocument]) -> None:
    """End the transactions of writers that are gone, as far as we may."""
    asked = {"idleSessions": True, "idleConnections": True}
    of_ours = {"$match": {"appName": APPLICATION}}
    with contextlib.suppress(OperationFailure):
        found = list(client.admin.aggregate([{"$currentOp": asked}, of_ours]))
        alive = {one.get("connectionId") for one in found if not _is_idle(one)}
        orphans = [
            {"id": one["lsid"]["id"]}
            for one in found
            if _is_idle(one) and one.get("connectionId") not in alive
        ]
        if orphans:
            client.admin.command("killSessions", orphans)


def _is_idle(found: StoredDocument) -> bool:
    return bool(found["type"] == "idleSession")


def _duplicates(name: str, rows: list[DocumentRow], error: BulkWriteError) -> set[str]:
    """The keys that were there already; raises what else went wrong."""
    _raise_what_passes(error)
    found = set()
    for one in error.details["writeErrors"]:
        key = rows[one["index"]][0]
        if one["code"] != DUPLICATE_KEY:
            raise BadDocument(name, key, one["errmsg"])
        found.add(key)
    return found


def _raise_what_passes(error: BulkWriteError) -> None:
    if error.details.get("writeConcernErrors"):
        raise Away("not acknowledged by a majority") from error
    for one in error.details["writeErrors"]:
        if one["code"] in AGAIN:
            raise Away(one["errmsg"]) from error


def _judged(name: str, rows: list[DocumentRow], error: OperationFailure) -> Exception:
    """The error, or that of the document that is at fault."""
    if error.code != TOO_DEEP:
        return error
    return BadDocument(name, max(rows, key=depth_of)[0], "is nested too deep")
