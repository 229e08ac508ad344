"""What every store can do, and how one is found by its URL.

Rules, the same for every backend:

- A document belongs to a key of a collection and has a version. An older or equal
  version never overwrites: what was written can be written again, and changes nothing.
- Of several documents with one key in one call the highest version wins.
- ``upsert`` returns when the documents are safe on the database's disk. If it raises,
  some of them may be written: write them all again.
- A database that restarts, or other writers who are in the way, are waited for, up to
  ``retry_s``; then it is StoreUnreachable.
- Some text cannot be stored, and must not stop a writer: the character U+0000, half of
  a surrogate pair, and bytes that are no UTF-8 become U+FFFD, in keys and documents.
- BadDocument names a document that is no JSON, or beyond a limit of documents.py.
- No message holds a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from penstock.errors import InvalidName, InvalidStore, MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

    DocumentRows: TypeAlias = "Sequence[DocumentRow] | pa.Table | pa.RecordBatch"

DocumentRow = tuple[str, int, bytes]
"""Key, version, and the document as JSON."""

# Where commands look for the URL of a store: there may be a password in it, and command
# lines are seen by every user.
VARIABLE = "PENSTOCK_STORE"
# How long a store that is away is waited for, unless told otherwise.
RETRY_S = 60.0
# What is a name everywhere, with no quoting; PostgreSQL cuts longer ones.
COLLECTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Store(Protocol):
    """Collections of documents in one database; one thread uses it."""

    place: str
    """Where it is, with no user and no password."""

    def prepare(self, collections: Sequence[str]) -> None:
        """Have these collections, ready for the capture of changes."""

    def upsert(self, collection: str, rows: DocumentRows) -> int:
        """Write what is newer; returns how many documents changed.

        ``rows`` may be Arrow data with the columns key (string), version (int64) and
        doc (string or binary). After a retry the number can be too low: what an
        attempt without an answer wrote is not counted. Raises BadDocument,
        StoreRefused, StoreUnreachable.
        """

    def count(self, collection: str) -> int:
        """How many documents there are; none if there is no such collection."""

    def read(
        self, collection: str, *, limit: int | None = None
    ) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Key, version and document of all, by key."""

    def collections(self) -> list[str]:
        """The collections that hold documents of this kind, sorted."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def open(url: str, *, retry_s: float = RETRY_S) -> Store:
    """The store at ``postgresql://…/database`` or ``mongodb://…/database``.

    Connects when it is used. Raises InvalidStore, and MissingExtra.
    """
    scheme = url.partition("://")[0]
    opener = _BACKENDS.get(scheme)
    if opener is None or "://" not in url:
        raise InvalidStore(place_of(url), "is no URL of a store")
    try:
        return opener(url, retry_s)
    except ImportError as error:
        package = (error.name or "a driver").partition(".")[0]
        raise MissingExtra("a store", package, "pipeline") from error


# Where "open" would say too little.
open_store = open


def place_of(url: str) -> str:
    """Scheme, hosts and database: what may be shown to every user.

    Where a password may be written in a wrong way, nothing more than the scheme.
    """
    scheme, found, rest = url.partition("://")
    if not found:
        return "(no URL)"
    head, *options = re.split("[?#]", rest, maxsplit=1)
    if "@" in head:
        return f"{scheme}://{head.rpartition('@')[2]}"
    return f"{scheme}://{'…' if '@' in ''.join(options) else head}"


def checked_name(collection: str) -> str:
    """The name, if it can be one; raises InvalidName."""
    if not COLLECTION.fullmatch(collection):
        raise InvalidName(
            collection,
            "must be 1 to 63 ASCII letters, digits and _, and not begin with a digit",
            "collection name",
        )
    return collection


def _postgres(url: str, retry_s: float) -> Store:
    from penstock.store.postgres import PostgresStore

    return PostgresStore(url, retry_s=retry_s)


def _mongo(url: str, retry_s: float) -> Store:
    from penstock.store.mongo import MongoStore

    return MongoStore(url, retry_s=retry_s)


_BACKENDS: dict[str, Callable[[str, float], Store]] = {
    "postgresql": _postgres,
    "postgres": _postgres,
    "mongodb": _mongo,
    "mongodb+srv": _mongo,
}
