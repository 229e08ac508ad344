from __future__ import annotations

from pathlib import Path

import pytest

from penstock.log import Batch, Columns, Log, TopicOptions, frame_of
from penstock.log.commit import OpenGroup
from penstock.log.frame import intact, pack
from tests.unit.log.faults import FaultyFiles, payloads


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles) -> Log:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("t")
    log.create_topic("u", TopicOptions(durability="os"))
    log.sync()
    return log


def test_events_of_one_topic_in_one_group_are_one_frame(log: Log) -> None:
    for number in range(5):
        log.append("t", Columns([b"%d" % number]))
        log.append("u", Columns([b"u"]))

    commit = log.begin_commit()

    assert commit is not None
    assert [(topic.name, events) for topic, events, _ in commit.counts()] == [
        ("t", 5),
        ("u", 5),
    ]


def test_encoded_batch_stays_a_frame_of_its_own_in_its_place(log: Log) -> None:
    encoded = Batch.of(
        "t", frame_of(Columns([b"2", b"3"], 7, ids=["x", None]), 0, bytes(16))
    )
    log.append("t", Columns([b"1"]))
    log.append("t", encoded)
    appended = log.append("t", Columns([b"4"]))
    log.commit()

    found = log.read("t", 0)

    assert [batch.payloads() for batch in found] == [[b"1"], [b"2", b"3"], [b"4"]]
    assert [batch.base_offset for batch in found] == [0, 1, 3]
    assert found[1].ids()[0] == "x"
    assert appended.base_offset == 3
    frames = [memoryview(pack(batch.header) + bytes(batch.body)) for batch in found]
    assert all(intact(data, 0, b.header) for data, b in zip(frames, found, strict=True))


def test_generated_ids_are_known_when_appending(log: Log) -> None:
    encoded = Batch.of("t", frame_of(Columns([b"c", b"d"], 7), 0, bytes(16)))
    appended = [
        log.append("t", Columns([b"a"])),
        log.append("t", Columns([b"b", b"b"])),
        log.append("t", encoded),
    ]
    log.commit()

    known = [one.generated_id(i) for one in appended for i in range(one.count)]

    assert known == [id_ for one in appended for id_ in one.generated_ids()]
    assert known == [id_ for batch in log.read("t", 0) for id_ in batch.ids()]
    assert len(set(known)) == 5


@pytest.mark.parametrize(
    ("topics", "sync", "syncs"),
    [
        (["t"], None, 1),
        (["u"], None, 0),
        (["u", "t"], None, 1),
        (["t"], False, 0),
        (["u"], True, 1),
        ([], True, 0),
    ],
)
def test_group_is_synced_as_its_content_or_its_caller_demands(
    log: Log, topics: list[str], sync: bool | None, syncs: int
) -> None:
    before = log.syncs
    for name in topics:
        log.append(name, Columns([b"a"]))

    log.commit(sync=sync)

    assert log.syncs - before == syncs


def test_empty_group_syncs_what_was_written_before(log: Log) -> None:
    log.append("u", Columns([b"a"]))
    log.commit()
    before = log.syncs

    log.sync()

    assert log.syncs == before + 1
    assert payloads(log, "u") == [b"a"]


def test_position_is_published_after_the_sync(log: Log, disk: FaultyFiles) -> None:
    log.append("t", Columns([b"a"]))
    disk.calls.clear()

    log.commit()

    calls = [(call, path.rsplit("/", 1)[1]) for call, path in disk.calls]
    journal = "00000000000000000000.jnl"
    assert calls == [("write", journal), ("sync", journal), ("write", "position")]


def test_roll_back_runs_backwards() -> None:
    steps: list[int] = []
    group = OpenGroup(1)
    for number in (1, 2, 3):
        group.undo.append(lambda number=number: steps.append(number))  # type: ignore[misc]

    group.roll_back()

    assert steps == [3, 2, 1]
