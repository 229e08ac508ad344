"""Which capture a URL stands for; each is loaded when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from penstock.cdc.capture import Capture
from penstock.cdc.snapshot import Snapshot
from penstock.errors import InvalidStore, MissingExtra

_POSTGRES = ("postgresql://", "postgres://")
_MONGO = ("mongodb://", "mongodb+srv://")


def open_capture(
    url: str, name: str, collections: Sequence[str], *, document: str | None = None
) -> Capture:
    """Raises InvalidStore, MissingExtra. It is begun by the run that uses it.

    ``document``: the column (PostgreSQL) or field (MongoDB) that is the document.
    """
    if url.startswith(_POSTGRES):
        postgres = _load("penstock.cdc.postgres")
        made: Capture = postgres.PostgresCapture(
            url, name, collections, document=document
        )
        return made
    if url.startswith(_MONGO):
        found: Capture = _load("penstock.cdc.mongo").MongoCapture(
            url, name, collections, document=document
        )
        return found
    raise _unknown(url)


def open_snapshot(
    url: str, name: str, collections: Sequence[str], *, document: str | None = None
) -> Snapshot:
    """What is there already, in front of the capture of the same name.

    Raises InvalidStore, MissingExtra. It is begun by the run that uses it.
    """
    if url.startswith(_POSTGRES):
        made: Snapshot = _load("penstock.cdc.postgres_snapshot").PostgresSnapshot(
            url, name, collections, document=document
        )
        return made
    if url.startswith(_MONGO):
        found: Snapshot = _load("penstock.cdc.mongo_snapshot").MongoSnapshot(
            url, name, collections, document=document
        )
        return found
    raise _unknown(url)


def drop_capture(url: str, name: str) -> bool:
    """Remove what a capture keeps in the database; whether there was something.

    Raises InvalidStore, StoreError.
    """
    if url.startswith(_POSTGRES):
        return bool(_load("penstock.cdc.slot").drop(url, name))
    if url.startswith(_MONGO):
        return False  # it keeps nothing for a capture
    raise _unknown(url)


def _unknown(url: str) -> InvalidStore:
    scheme = url.partition(":")[0][:20]
    return InvalidStore(scheme, "it has to begin with postgresql:// or mongodb://")


def _load(module: str):  # type: ignore[no-untyped-def]  # modules have no type of ours
    try:
        return import_module(module)
    except ImportError as error:
        package = (error.name or module).partition(".")[0]
        raise MissingExtra("change data capture", package, "pipeline") from error
