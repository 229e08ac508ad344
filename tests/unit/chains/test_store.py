from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.chains import store as store_module
from penstock.chains.store import (
    APPLICATION_ID,
    MEMORY,
    TABLES,
    VERSION,
    ChainIndex,
    IndexRows,
    Unusable,
    boot_id,
    open_store,
)
from penstock.errors import DiskFull, WriteFailed
from penstock.files import Files
from penstock.log import Layout
from tests.unit.log.faults import FaultyFiles


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path))


@pytest.fixture
def store(layout: Layout) -> Iterator[ChainIndex]:
    store = ChainIndex(layout.chains)
    yield store
    store.abandon()


def fill(store: ChainIndex, count: int, topic: int = 1) -> int:
    with store.transaction():
        run = store.begin_run(topic, 0)
        rows = [(number, run.number, number) for number in range(count)]
        store.add(IndexRows(parents=list(rows)))
        run.next, run.rows = count, count
        store.keep(run)
    return run.number


def write(layout: Layout, *statements: str) -> None:
    db = sqlite3.connect(layout.chains)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def test_what_was_stored_is_there_after_a_clean_end(layout: Layout) -> None:
    store = ChainIndex(layout.chains)
    run = fill(store, 3)
    store.close()

    again = ChainIndex(layout.chains)

    assert again.find("parents", 1, (0, -1), 10) == [(run, 1)]
    assert [(one.topic, one.next, one.rows) for one in again.runs()] == [(1, 3, 3)]
    again.abandon()


def test_what_was_stored_is_there_after_a_process_has_died(layout: Layout) -> None:
    store = ChainIndex(layout.chains)
    fill(store, 3)
    store.abandon()

    again = open_store(layout, Files())

    assert again.count("parents") == 3
    again.abandon()


def test_an_index_in_use_when_the_machine_stopped_is_made_anew(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = ChainIndex(layout.chains)
    fill(store, 3)
    store.abandon()
    monkeypatch.setattr(store_module, "boot_id", lambda: "another boot")

    again = open_store(layout, Files())

    assert again.count("parents") == 0
    assert "in use when the machine stopped" in caplog.text
    assert getattr(caplog.records[0], "action", "") == "chains_rebuilt"
    again.abandon()


def test_a_closed_index_survives_another_boot(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ChainIndex(layout.chains)
    fill(store, 3)
    store.close()
    monkeypatch.setattr(store_module, "boot_id", lambda: "another boot")

    again = open_store(layout, Files())

    assert again.count("parents") == 3
    again.abandon()


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["CREATE TABLE mine (x)"], "not an index of chains"),
        (["PRAGMA application_id = 5"], "not an index of chains"),
        (
            [f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 99"],
            f"version 99, not {VERSION}",
        ),
        (
            [
                f"PRAGMA application_id = {APPLICATION_ID}",
                f"PRAGMA user_version = {VERSION}",
            ],
            "no such table: mark",
        ),
    ],
)
def test_what_is_not_ours_or_of_another_version_is_put_aside(
    layout: Layout,
    caplog: pytest.LogCaptureFixture,
    statements: list[str],
    reason: str,
) -> None:
    write(layout, *statements)

    again = open_store(layout, Files())

    assert again.count("parents") == 0
    assert reason in caplog.text
    assert (Path(layout.quarantine) / "chains.sqlite").exists()
    again.abandon()


@pytest.mark.parametrize("junk", [b"junk" * 5000, bytes(4096)])
def test_junk_is_put_aside(layout: Layout, junk: bytes) -> None:
    Path(layout.chains).write_bytes(junk)

    again = open_store(layout, Files())

    assert again.count("ids") == 0
    assert (Path(layout.quarantine) / "chains.sqlite").read_bytes() == junk
    again.abandon()


def test_an_empty_file_is_used(layout: Layout) -> None:
    Path(layout.chains).touch()

    ChainIndex(layout.chains).abandon()

    assert not Path(layout.quarantine).exists()


def test_a_torn_file_is_noticed_and_not_believed(layout: Layout) -> None:
    store = ChainIndex(layout.chains)
    fill(store, 20_000)
    store.close()
    whole = Path(layout.chains).read_bytes()
    Path(layout.chains).write_bytes(whole[: len(whole) // 3])

    with pytest.raises(Unusable):
        torn = ChainIndex(layout.chains)
        for number in range(20_000):
            torn.find("parents", number, (0, -1), 10)


def test_what_cannot_be_put_aside_is_an_error_of_writing(layout: Layout) -> None:
    Path(layout.chains).write_bytes(b"junk" * 1000)
    files = FaultyFiles()
    files.fail("rename", "chains")

    with pytest.raises(WriteFailed):
        open_store(layout, files)


def test_a_failed_step_leaves_nothing(store: ChainIndex) -> None:
    fill(store, 3)

    with pytest.raises(ZeroDivisionError), store.transaction():
        store.begin_run(2, 0)
        store.add(IndexRows(ids=[(1, 1, 1)]))
        _ = 1 // 0

    assert (len(store.runs()), store.count("ids")) == (1, 0)


def test_a_full_file_is_a_full_disk_and_leaves_nothing(store: ChainIndex) -> None:
    store._db.execute("PRAGMA max_page_count = 12")

    with pytest.raises(DiskFull, match="full"):
        fill(store, 10_000)

    assert (store.runs(), store.count("parents")) == ([], 0)


def test_the_last_room_on_a_disk_is_not_taken(
    store: ChainIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "RESERVE_BYTES", 1 << 60)

    with pytest.raises(DiskFull, match="stay free"):
        fill(store, 1)


def test_a_directory_that_is_gone_is_an_error_of_writing(tmp_path: Path) -> None:
    with pytest.raises(WriteFailed):
        ChainIndex(str(tmp_path / "gone" / "chains.sqlite"))


def test_rows_of_one_key_come_page_by_page(store: ChainIndex) -> None:
    with store.transaction():
        store.add(IndexRows(ids=[(5, 1, offset) for offset in range(5)]))

    first = store.find("ids", 5, (0, -1), 3)
    rest = store.find("ids", 5, first[-1], 3)

    assert [offset for _, offset in first + rest] == [0, 1, 2, 3, 4]


def test_a_sweep_removes_rows_of_ended_runs_and_trimmed_events(
    store: ChainIndex,
) -> None:
    fill(store, 10, topic=1)
    fill(store, 10, topic=2)
    (one, two) = store.runs()
    one.start = 4

    with store.transaction():
        store.keep(one)
        store.end_run(two)
        ends = [store.sweep("parents", 6) for _ in range(4)]

    assert ends == [6, 6, 6, 2]
    left = [offset for key in range(10) for _, offset in rows(store, key)]
    assert left == [4, 5, 6, 7, 8, 9]


def rows(store: ChainIndex, key: int) -> list[tuple[int, int]]:
    return store.find("parents", key, (0, -1), 10)


def test_a_batch_stays_while_any_of_it_does(store: ChainIndex) -> None:
    fill(store, 0)
    (run,) = store.runs()
    run.start = 10

    with store.transaction():
        batches = [(1, run.number, 0, 10), (2, run.number, 5, 6)]
        store.add(IndexRows(batches=[*batches]))
        store.keep(run)
        store.sweep("batches", 100)

    assert (store.count("batches"), len(TABLES)) == (1, 3)


def test_an_index_in_memory_needs_no_file() -> None:
    store = ChainIndex(MEMORY)

    fill(store, 3)

    assert store.count("parents") == 3
    store.close()


def test_where_no_boot_is_named_every_process_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert boot_id() == boot_id()

    def no_file(path: Path) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", no_file)

    assert boot_id().startswith("process ")
