"""What one run leaves to the next: which store it was, and what was in it before.

A directory belongs to one store: counts, checkpoints and the place of the capture are
worth nothing with another one.
"""

from __future__ import annotations

import json

from penstock.errors import OtherStore, StoreTaken
from penstock.files import Files, replace_file
from penstock.store.store import Store, place_of
from penstock.supervisor.part import Places, read_json
from penstock.supervisor.plan import COLLECTIONS

OWN = "its own PostgreSQL"


def check_store(places: Places, store: str | None) -> None:
    """Raises OtherStore if the directory is of a run with another one than ``store``
    (None: its own)."""
    given, kept = _shown(store), _kept(places)
    if kept is not None and kept != given:
        raise OtherStore(str(places.directory), kept, given)


def prepare(places: Places, store: Store, url: str | None) -> None:
    """Have the collections, and know what was in them before the first run.

    ``url``: what was asked for; None: our own. Raises StoreTaken, StoreError.
    """
    store.prepare(COLLECTIONS)
    _write(places, "store", {"store": _shown(url)})
    if not places.before.exists():
        found = {name: store.count(name) for name in COLLECTIONS}
        if any(found.values()):
            raise StoreTaken(store.place, found)
        _write(places, "before", found)


def before(places: Places) -> dict[str, int]:
    """How many documents the store had before the first run."""
    return {
        name: count
        for name, count in read_json(places.before).items()
        if isinstance(count, int)
    }


def _shown(store: str | None) -> str:
    return OWN if store is None else place_of(store)


def _kept(places: Places) -> str | None:
    found = read_json(places.which_store).get("store")
    if isinstance(found, str):
        return found
    # A directory from before this was written down.
    return OWN if (places.store / "cluster").exists() else None


def _write(places: Places, what: str, found: dict[str, int] | dict[str, str]) -> None:
    path = places.before if what == "before" else places.which_store
    replace_file(Files(), str(path), json.dumps(found).encode() + b"\n")
