"""Who writes the same twice, at once or again after a kill, writes it once.

What a store holds then, and what a capture of changes was told, is what one writer who
is never disturbed would have made of it.
"""

from __future__ import annotations

import concurrent.futures
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pytest

from penstock.cdc.capture import Capture
from penstock.cdc.change import Change
from penstock.cdc.sources import drop_capture, open_capture
from penstock.store import store as stores
from penstock.store.store import DocumentRow
from tests.contract.stores import kept, row, rows

pytestmark = pytest.mark.slow

END = "the end"
WAIT_S = 30.0
# More than MongoDB has in a group, and PostgreSQL and MongoDB in one of two chunks.
KEYS = 300

Told = tuple[str, int | None, int]
"""Key, version before, version after."""


@pytest.fixture
def capture(url: str) -> Iterator[Capture]:
    with stores.open(url) as store:
        store.prepare(["tweets"])
    made = open_capture(url, "twice", ["tweets"])
    made.begin("")
    yield made
    made.close()
    drop_capture(url, "twice")


def told(url: str, capture: Capture) -> list[Told]:
    """All changes up to now; checks that each begins where the one before ended."""
    with stores.open(url) as store:
        store.upsert("tweets", [row(END, 1)])
    found: list[Told] = []
    last: dict[str, object] = {}
    while True:
        some = capture.take(1_000, WAIT_S)
        assert some, f"{len(found)} changes came, and not the last"
        for change in some:
            before, after = images(change)
            assert change.body.key is not None and after is not None
            if change.body.key == END:
                return found
            assert before == last.get(change.body.key)
            last[change.body.key] = after
            version = None if before is None else before["version"]
            found.append((change.body.key, version, after["version"]))


def images(change: Change) -> tuple[dict[str, int] | None, dict[str, int] | None]:
    return msgspec.json.decode(change.body.before), msgspec.json.decode(
        change.body.after
    )


def mixed(chance: random.Random, count: int) -> list[DocumentRow]:
    """Some keys again and again, old and new ones, with versions up and down."""
    found = []
    for _ in range(count):
        number, version = chance.randrange(KEYS), chance.randrange(20)
        found.append(row(f"k{number}", version, number=number, of=version, x="é" * 50))
    return found


def written(model: dict[str, int], bulk: list[DocumentRow]) -> list[Told]:
    """What a bulk changes in the model."""
    newest: dict[str, int] = {}
    for key, version, _ in bulk:
        newest[key] = max(version, newest.get(key, version))
    changes = []
    for key, version in newest.items():
        if version > model.get(key, -1):
            changes.append((key, model.get(key), version))
            model[key] = version
    return changes


def check(url: str, model: dict[str, int]) -> None:
    with stores.open(url) as store:
        found = kept(store, "tweets")
    found.pop(END, None)
    assert {key: version for key, (version, _) in found.items()} == model
    assert all(doc["of"] == version for version, doc in found.values())


def test_bulks_of_old_equal_newer_and_repeated_documents(
    url: str, capture: Capture
) -> None:
    chance = random.Random(15)
    model: dict[str, int] = {}
    expected: list[Told] = []

    with stores.open(url) as store:
        for count in (40, 400, 1, 400, 600):
            bulk = mixed(chance, count)
            changes = written(model, bulk)
            expected += changes
            keys, versions, docs = zip(*bulk, strict=True)
            table = pa.table({"key": keys, "version": versions, "doc": docs})
            assert store.upsert("tweets", table) == len(changes)
            assert store.upsert("tweets", table) == 0

    check(url, model)
    assert Counter(told(url, capture)) == Counter(expected)


def test_task_that_is_run_twice_at_once_changes_everything_once(
    url: str, capture: Capture
) -> None:
    chance = random.Random(16)
    bulks = [mixed(chance, 400) for _ in range(6)]
    model: dict[str, int] = {}
    for bulk in bulks:
        written(model, bulk)
    together = threading.Barrier(2)

    def task(_: int) -> int:
        changed = 0
        with stores.open(url) as store:
            for bulk in bulks:
                together.wait(WAIT_S)
                changed += store.upsert("tweets", bulk)
        return changed

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        changed = sum(pool.map(task, range(2)))

    check(url, model)
    assert len(told(url, capture)) == changed


WRITER = """
import sys
from penstock.store import store as stores
from tests.contract.stores import rows
with stores.open(sys.argv[1]) as store:
    for version in range(int(sys.argv[2]), 1_000_000):
        print(version, flush=True)
        store.upsert("tweets", list(rows(int(sys.argv[3]), version=version)))
"""


def test_writer_that_is_killed_is_repeated_by_another(
    url: str, capture: Capture
) -> None:
    """Killed early and late in a bulk; the next one writes the same bulk at once."""
    version = 0
    for bulks in (1, 3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, url, str(version), str(KEYS * 2)],
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdout is not None
            for _ in range(bulks):
                version = int(writer.stdout.readline())
            writer.kill()

    with stores.open(url, retry_s=WAIT_S) as store:
        store.upsert("tweets", list(rows(KEYS * 2, version=version)))

    check(url, {key: version for key, _, _ in rows(KEYS * 2, version=version)})
    changes = told(url, capture)
    assert len({(key, after) for key, _, after in changes}) == len(changes)
