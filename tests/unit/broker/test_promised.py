from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.broker.promised import Promised, carrier, has_ended, is_lost
from penstock.errors import WriteFailed
from penstock.log import Columns, Log
from tests.unit.log.faults import FaultyFiles


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles) -> Iterator[Log]:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("t")
    log.commit()
    yield log
    log.abandon()


def put(log: Log) -> int:
    return log.append("t", Columns([b"x"], 1)).group


def fail(log: Log, disk: FaultyFiles) -> int:
    """A group that is lost."""
    group = put(log)
    disk.fail("write", "journal")
    with pytest.raises(WriteFailed):
        log.commit()
    return group


def test_things_come_in_their_order_when_their_groups_are_written(log: Log) -> None:
    promised: Promised[str] = Promised(log)
    promised.put(put(log), "first")
    promised.put(0, "nothing to wait for")

    assert list(promised.take()) == []
    log.commit()
    promised.put(put(log), "later")

    assert list(promised.take()) == [("first", True), ("nothing to wait for", True)]
    assert list(promised) == ["later"]


def test_what_is_lost_is_told_and_what_is_said_again_waits_on(
    log: Log, disk: FaultyFiles
) -> None:
    promised: Promised[str] = Promised(log)
    group = fail(log, disk)
    promised.put(group, "published")
    promised.put(group, "settled", again=True)

    assert list(promised.take()) == [("published", False)]
    assert carrier(log, group) > group
    assert is_lost(log, group) and has_ended(log, group)
    put(log)
    log.commit()

    assert list(promised.take()) == [("settled", True)]


def test_one_that_waits_holds_up_others_only_where_order_counts(log: Log) -> None:
    promised: Promised[str] = Promised(log)
    early = put(log)
    log.commit()
    promised.put(put(log), "late")
    promised.put(early, "early")

    assert list(promised.take()) == []
    assert list(promised.take_any()) == [("early", True)]
    assert list(promised) == ["late"]


def test_each_is_there_until_the_next_is_asked_for(log: Log) -> None:
    promised: Promised[str] = Promised(log)
    promised.put(0, "a")
    promised.put(0, "b")

    left = [list(promised) for _ in promised.take()]

    assert left == [["a", "b"], ["b"]]
    assert not promised
