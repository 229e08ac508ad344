from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.errors import DiskFull, InvalidBatch, WriteFailed
from penstock.log import Batch, Columns, Log, TopicOptions, frame_of
from penstock.log.intake import checked_size
from tests.unit.log.faults import FaultyFiles, journal_of, offsets, payloads
from tests.unit.log.scenes import actions, ends

UNSYNCED = TopicOptions(durability="os")


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles) -> Log:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("t")
    log.sync()
    return log


def add(log: Log, *texts: bytes, topic: str = "t") -> int:
    return log.append(topic, Columns(texts)).group


def encoded(count: int = 3) -> Batch:
    return Batch.of("t", frame_of(Columns([b"x"] * count), 0, bytes(16)))


def test_size_of_an_encoded_batch_is_that_of_its_frame() -> None:
    assert checked_size(encoded(), 100) == encoded().header.length


@pytest.mark.parametrize("batch", [encoded().since(1), encoded().before(2)])
def test_part_of_a_frame_cannot_be_appended(batch: Batch) -> None:
    with pytest.raises(InvalidBatch, match="must be a whole frame"):
        checked_size(batch, 100)


def test_frame_with_gaps_cannot_be_appended() -> None:
    columns = Columns([b"x"])
    columns.offsets = [1]

    with pytest.raises(InvalidBatch):
        checked_size(Batch.of("t", frame_of(columns, 0, bytes(16))), 100)


def test_append_gives_out_dense_offsets(log: Log) -> None:
    bases = [
        log.append("t", events).base_offset
        for events in (Columns([b"a", b"b"]), encoded(3), Columns([b"c"]))
    ]

    assert bases == [0, 2, 5]
    assert log.topic("t").next_offset == 6
    assert log.topic("t").end_offset == 0


def test_ids_of_an_encoded_batch_count_on_from_what_was_answered(log: Log) -> None:
    columns = Columns([b"a", b"b"], [1000, 2000])
    columns.ids_by_time = True

    appended = log.append("t", Batch.of("t", frame_of(columns, 0, bytes(16))))
    log.commit()

    (batch,) = log.read("t", 0)
    assert batch.ids() == appended.generated_ids()


def test_a_setting_does_not_part_the_events_of_a_topic(log: Log) -> None:
    log.append("t", Columns([b"a"]))
    log.set_options("t", log.topic("t").options)
    log.append("t", Columns([b"b"]))

    log.commit()

    assert [batch.payloads() for batch in log.read("t", 0)] == [[b"a", b"b"]]


@pytest.mark.slow
def test_failed_group_is_called_failed_however_often_it_fails_after_that(
    log: Log, disk: FaultyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.fail("write", "/journal", times=1200)
    groups = []
    for _ in range(1200):
        groups.append(log.append("t", Columns([b"x"])).group)
        with pytest.raises(DiskFull):
            log.commit()
    add(log, b"y")
    log.commit()

    assert {log.outcome(group) for group in groups} == {"failed"}
    assert payloads(log, "t") == [b"y"]


def test_batches_too_large_for_one_frame_get_several(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.log.intake.MAX_BATCH_BYTES", 12_000)
    for number in range(5):
        log.append("t", Columns([bytes([number]) * 5000]))

    log.commit()

    assert [len(batch) for batch in log.read("t", 0)] == [2, 2, 1]
    assert payloads(log, "t") == [bytes([number]) * 5000 for number in range(5)]


# Failures


@pytest.mark.parametrize(
    ("call", "code", "kind"),
    [
        ("write", errno.ENOSPC, DiskFull),
        ("write", errno.EDQUOT, DiskFull),
        ("write", errno.EIO, WriteFailed),
        ("sync", errno.EIO, WriteFailed),
    ],
)
def test_failed_commit_confirms_nothing_and_gives_its_offsets_out_again(
    log: Log, disk: FaultyFiles, call: str, code: int, kind: type[WriteFailed]
) -> None:
    add(log, b"kept")
    log.commit()
    failed = add(log, b"lost", b"lost too")
    disk.fail(call, "/journal", error=code)

    with pytest.raises(WriteFailed) as caught:
        log.commit()

    assert type(caught.value) is kind
    assert log.outcome(failed) == "failed"
    assert payloads(log, "t") == [b"kept"]
    assert log.append("t", Columns([b"again"])).base_offset == 1
    log.commit()
    assert payloads(log, "t") == [b"kept", b"again"]


@pytest.mark.parametrize("call", ["write", "sync"])
def test_failed_commit_is_gone_after_a_restart(
    tmp_path: Path, log: Log, disk: FaultyFiles, call: str
) -> None:
    add(log, b"kept")
    log.commit()
    add(log, b"lost")
    disk.fail(call, "/journal", error=errno.EIO, half=True)
    with pytest.raises(WriteFailed):
        log.commit()
    add(log, b"again")
    log.commit()
    log.abandon()

    log = Log.open(tmp_path)

    assert payloads(log, "t") == [b"kept", b"again"]
    assert (log.report.cuts, log.report.damages) == ([], [])
    log.close()


def test_group_collected_on_top_of_a_failed_one_fails_with_it(
    log: Log, disk: FaultyFiles
) -> None:
    first = add(log, b"a")
    commit = log.begin_commit()
    assert commit is not None
    second = add(log, b"b")
    disk.fail("sync", "/journal", error=errno.EIO)
    commit.run()

    error = log.end_commit(commit)

    assert isinstance(error, WriteFailed)
    assert (log.outcome(first), log.outcome(second)) == ("failed", "failed")
    third = add(log, b"c")
    log.commit()
    assert log.outcome(third) == "synced"
    assert offsets(log, "t") == [0]


def test_failed_commits_are_reported_once_and_so_is_their_end(
    log: Log, disk: FaultyFiles, caplog: pytest.LogCaptureFixture
) -> None:
    disk.fail("write", "/journal", times=3)
    for _ in range(3):
        add(log, b"lost")
        with pytest.raises(DiskFull):
            log.commit()

    add(log, b"kept")
    log.commit()

    assert actions(caplog) == ["commit_failed", "commit_resumed"]


def test_topic_of_a_failed_commit_does_not_exist(log: Log, disk: FaultyFiles) -> None:
    log.create_topic("new")
    log.append("new", Columns([b"a"]))
    disk.fail("write", "/journal")

    with pytest.raises(DiskFull):
        log.commit()

    assert log.topics() == ["t"]
    log.create_topic("new")
    log.commit()
    assert log.topics() == ["new", "t"]


def test_settings_of_a_failed_commit_are_as_before(log: Log, disk: FaultyFiles) -> None:
    log.set_options("t", TopicOptions(compact=True))
    disk.fail("write", "/journal")

    with pytest.raises(DiskFull):
        log.commit()

    assert log.topic("t").options == TopicOptions()


def test_sync_after_a_failed_sync_is_not_a_lie(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("u", UNSYNCED)
    log.sync()
    group = add(log, b"a", topic="u")
    log.commit()
    disk.fail("sync", "/journal", error=errno.EIO)
    with pytest.raises(WriteFailed):
        log.sync()
    before = disk.count("sync", "/journal")

    try:
        log.sync()
    except WriteFailed:
        assert log.outcome(group) != "synced"
    else:
        assert disk.count("sync", "/journal") > before, "nothing was synced"
    log.abandon()


def test_event_that_a_failed_sync_lost_is_not_called_synced_later(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("u", UNSYNCED)
    log.sync()
    path = Path(journal_of(log)._name())
    length = ends(path)[-1]
    unsynced = add(log, b"first", topic="u")
    log.commit()
    add(log, b"second", topic="u")
    disk.fail("sync", "/journal", error=errno.EIO)
    with pytest.raises(WriteFailed):
        log.sync()
    # What a kernel may do when a sync fails: the pages are dropped.
    path.write_bytes(path.read_bytes()[:length])
    add(log, b"third", topic="u")
    with pytest.raises(WriteFailed, match="the disk lost what it had taken"):
        log.sync()
    claimed = log.outcome(unsynced)
    log.abandon()

    log = Log.open(tmp_path)

    assert claimed == "written"
    assert payloads(log, "u") == []
    log.close()


def test_failing_position_file_does_not_stop_the_log(
    log: Log, disk: FaultyFiles
) -> None:
    disk.fail("write", "/position", error=errno.EIO)
    group = add(log, b"a")

    try:
        log.commit()
    except WriteFailed:
        assert log.outcome(group) == "failed"

    add(log, b"b")
    log.commit()
    assert payloads(log, "t")[-1] == b"b"
