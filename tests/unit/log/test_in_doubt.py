"""A log whose journal does not always say what became of a group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import Backlogged, Fenced, InDoubt, LogClosed, WriteFailed
from penstock.log import Columns, Log, LogOptions
from penstock.testing import MemoryJournal


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def log(tmp_path: Path, journal: MemoryJournal) -> Iterator[Log]:
    log = Log.open(tmp_path, journal=journal)
    log.create_topic("t")
    log.sync()
    yield log
    log.abandon()


def put(log: Log, *texts: bytes) -> int:
    return log.append("t", Columns(list(texts), 1)).group


def stored(log: Log) -> list[bytes]:
    return [one for batch in log.read("t", 0) for one in batch.payloads()]


def test_everything_comes_back_from_another_journal(
    tmp_path: Path, log: Log, journal: MemoryJournal
) -> None:
    put(log, b"a", b"b")
    log.sync()
    put(log, b"c")
    log.checkpoint()
    put(log, b"d")
    log.sync()
    log.abandon()

    with Log.open(tmp_path, journal=journal.reopened()) as again:
        assert stored(again) == [b"a", b"b", b"c", b"d"]
        assert not again.report.damages


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_group_in_doubt_is_neither_confirmed_nor_taken_back(
    log: Log, journal: MemoryJournal, is_stored: bool
) -> None:
    put(log, b"before")
    log.sync()
    journal.doubt(stored=is_stored, looks=2)
    group = put(log, b"doubtful")

    with pytest.raises(InDoubt):
        log.sync()
    behind = put(log, b"behind it")
    with pytest.raises(InDoubt):
        log.commit()

    assert log.outcome(group) == log.outcome(behind) == "pending"
    assert log.doubt is not None
    assert stored(log) == [b"before"]
    if is_stored:
        log.sync()
        assert log.outcome(group) == log.outcome(behind) == "synced"
        assert stored(log) == [b"before", b"doubtful", b"behind it"]
    else:
        with pytest.raises(WriteFailed):
            log.sync()
        assert log.outcome(group) == log.outcome(behind) == "failed"
        assert put(log, b"new") > behind
        log.sync()
        assert stored(log) == [b"before", b"new"]
    assert log.doubt is None


def test_no_topic_is_changed_while_a_group_is_in_doubt(
    log: Log, journal: MemoryJournal
) -> None:
    journal.doubt(stored=True, looks=9)
    put(log, b"a")
    with pytest.raises(InDoubt):
        log.sync()

    with pytest.raises(Backlogged):
        log.delete_topic("t")


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_log_that_is_closed_in_doubt_says_so_and_the_next_start_knows(
    tmp_path: Path, log: Log, journal: MemoryJournal, is_stored: bool
) -> None:
    journal.doubt(stored=is_stored, looks=9)
    put(log, b"a")
    with pytest.raises(InDoubt):
        log.sync()

    with pytest.raises(InDoubt):
        log.close()

    with pytest.raises(LogClosed):
        put(log, b"b")
    with Log.open(tmp_path, journal=journal.reopened()) as again:
        assert stored(again) == ([b"a"] if is_stored else [])


def test_a_log_whose_place_is_taken_appends_nothing_more(
    tmp_path: Path, log: Log, journal: MemoryJournal
) -> None:
    put(log, b"a")
    log.sync()
    successor = journal.reopened()

    group = put(log, b"b")
    with pytest.raises(Fenced):
        log.sync()

    assert log.outcome(group) == "failed"
    assert stored(log) == [b"a"]
    for refused in (
        lambda: put(log, b"c"),
        lambda: log.append_group({"t": Columns([b"c"], 1)}),
        lambda: log.create_topic("u"),
    ):
        with pytest.raises(Fenced):
            refused()
    log.abandon()
    with Log.open(tmp_path, journal=successor) as again:
        assert stored(again) == [b"a"]


def test_an_append_waits_for_no_journal_that_blocks(
    tmp_path: Path, journal: MemoryJournal
) -> None:
    options = LogOptions(group_bytes=4096)
    with Log.open(tmp_path / "other", options, journal=journal) as log:
        log.create_topic("t")
        log.sync()
        journal.hold()  # whoever writes now waits for ever

        put(log, b"a" * 3000)
        put(log, b"b" * 3000)
        with pytest.raises(Backlogged):
            put(log, b"c" * 3000)

        journal.release()


def test_a_commit_that_an_append_left_in_doubt_is_taken_up_again(
    tmp_path: Path, journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryJournal, "blocks", False)
    options = LogOptions(group_bytes=4096)
    with Log.open(tmp_path / "other", options, journal=journal) as log:
        log.create_topic("t")
        log.sync()
        journal.doubt(stored=True)
        group = put(log, b"a" * 3000)

        put(log, b"b" * 3000)

        assert (log.outcome(group), log.doubt is not None) == ("pending", True)
        commit = log.begin_commit()
        assert commit is not None
        commit.run()
        log.end_commit(commit)
        assert log.outcome(group) == "synced"
        log.commit()
        assert [text[:1] for text in stored(log)] == [b"a", b"b"]
