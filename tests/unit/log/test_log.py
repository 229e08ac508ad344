from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import (
    Backlogged,
    DiskFull,
    InvalidBatch,
    InvalidName,
    InvalidOption,
    NotADataDirectory,
    OffsetOutOfRange,
    TopicExists,
    UnknownTopic,
)
from penstock.log import Batch, Columns, Log, LogOptions, TopicOptions, frame_of
from tests.unit.log.faults import FaultyFiles, payloads

NEW = TopicOptions(durability="os")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log.open(tmp_path)
    log.create_topic("t")
    log.sync()
    return log


def test_directory_is_created_only_if_wanted(tmp_path: Path) -> None:
    with pytest.raises(NotADataDirectory):
        Log.open(tmp_path / "a", create=False)

    assert not (tmp_path / "a").exists()
    Log.open(tmp_path / "a" / "b").close()
    Log.open(tmp_path / "a" / "b", create=False).close()


def test_every_new_directory_is_synced_in_its_parent(tmp_path: Path) -> None:
    disk = FaultyFiles()

    Log.open(tmp_path / "a" / "b", files=disk).close()

    synced = {path for call, path in disk.calls if call == "sync_directory"}
    assert {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")} <= synced


def test_log_on_other_files_that_fails_to_open_raises_what_happened(
    tmp_path: Path,
) -> None:
    disk = FaultyFiles()
    disk.fail("create", "/position")

    with pytest.raises(OSError, match="No space left"):
        Log.open(tmp_path, files=disk)


def test_topics_are_listed_by_name(log: Log) -> None:
    for name in ("z", "a/b", "é"):
        log.create_topic(name)

    assert log.topics() == ["a/b", "t", "z", "é"]


def test_topic_exists_once(log: Log) -> None:
    with pytest.raises(TopicExists):
        log.create_topic("t")


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 1025])
def test_name_that_cannot_be_one_is_refused(log: Log, name: str) -> None:
    with pytest.raises(InvalidName):
        log.create_topic(name)

    assert log.topics() == ["t"]


def test_topics_are_limited(tmp_path: Path) -> None:
    with Log.open(tmp_path, LogOptions(max_topics=1)) as log:
        log.create_topic("a")

        with pytest.raises(InvalidOption, match="max_topics"):
            log.create_topic("b")


def test_settings_of_a_topic_survive(tmp_path: Path) -> None:
    first = TopicOptions(retention_age_s=60, durability="os")
    then = TopicOptions(compact=True, segment_bytes=2048)
    log = Log.open(tmp_path)
    log.create_topic("a", first)
    log.create_topic("b", first)
    log.set_options("b", then)
    log.sync()
    log.abandon()

    log = Log.open(tmp_path)

    assert log.topic("a").options == first
    assert log.topic("b").options == then
    log.close()


def test_unknown_topic_is_named(log: Log) -> None:
    for call in (
        lambda: log.append("no", Columns([b"a"])),
        lambda: log.append_group({"t": Columns([b"a"]), "no": Columns([b"a"])}),
        lambda: log.read("no", 0),
        lambda: log.offset_at("no", 0),
        lambda: log.set_options("no", TopicOptions()),
        lambda: log.delete_topic("no"),
    ):
        with pytest.raises(UnknownTopic, match="topic no does not exist"):
            call()

    assert log.pending_bytes == 0


def test_group_of_several_topics_is_stored_whole(tmp_path: Path, log: Log) -> None:
    log.create_topic("u")

    appended = log.append_group({"t": Columns([b"a", b"b"]), "u": Columns([b"c"])})

    assert appended["t"].group == appended["u"].group
    assert (appended["t"].count, appended["u"].count) == (2, 1)
    log.sync()
    log.abandon()
    log = Log.open(tmp_path)
    assert (payloads(log, "t"), payloads(log, "u")) == ([b"a", b"b"], [b"c"])
    log.close()


def test_group_with_one_bad_batch_stores_nothing(log: Log) -> None:
    log.create_topic("u")
    log.commit()

    with pytest.raises(InvalidBatch):
        log.append_group({"t": Columns([b"a"]), "u": Columns([])})

    assert log.pending_bytes == 0
    assert log.topic("t").next_offset == 0


def test_event_over_the_limit_is_refused(tmp_path: Path) -> None:
    with Log.open(tmp_path, LogOptions(max_event_bytes=10)) as log:
        log.create_topic("t")
        log.append("t", Columns([bytes(10)]))

        with pytest.raises(
            InvalidBatch, match="payload size is 11: must be at most 10"
        ):
            log.append("t", Columns([bytes(11)]))


def test_group_that_would_grow_too_large_is_committed_on_the_way(
    tmp_path: Path,
) -> None:
    with Log.open(tmp_path, LogOptions(group_bytes=1024)) as log:
        log.create_topic("t")
        groups = [log.append("t", Columns([bytes(400)])).group for _ in range(6)]

        assert len(set(groups)) > 2
        assert log.pending_bytes <= 1024


def test_group_that_cannot_be_committed_is_refused_at_twice_its_limit(
    tmp_path: Path,
) -> None:
    log = Log.open(tmp_path, LogOptions(group_bytes=1024))
    log.create_topic("t")
    commit = log.begin_commit()

    with pytest.raises(Backlogged) as caught:
        for _ in range(100):
            log.append("t", Columns([bytes(400)]))

    assert caught.value.limit_bytes == 2048
    assert 1024 < log.pending_bytes <= 2048
    assert commit is not None
    commit.run()
    log.end_commit(commit)
    log.append("t", Columns([bytes(400)]))
    log.close()


def test_batch_larger_than_a_group_is_accepted_alone(tmp_path: Path) -> None:
    with Log.open(tmp_path, LogOptions(group_bytes=1024)) as log:
        log.create_topic("t")

        log.append("t", Columns([bytes(5000)]))
        log.append("t", Columns([bytes(5000)]))
        log.commit()

        assert payloads(log, "t") == [bytes(5000)] * 2


@pytest.mark.parametrize("offset", [-1, 3])
def test_reading_outside_the_topic_is_refused(log: Log, offset: int) -> None:
    log.append("t", Columns([b"a", b"b"]))
    log.commit()

    with pytest.raises(OffsetOutOfRange, match="outside 0..2"):
        log.read("t", offset)


def test_reading_at_the_end_finds_nothing(log: Log) -> None:
    log.append("t", Columns([b"a", b"b"]))
    log.commit()

    assert log.read("t", 2) == []


def test_time_is_found_by_the_first_event_that_reaches_it(log: Log) -> None:
    log.append("t", Columns([b"a", b"b", b"c"], [10, 30, 20]))
    log.commit()

    found = [log.offset_at("t", time) for time in (0, 10, 11, 20, 30, 31)]

    assert found == [0, 0, 1, 1, 1, 3]


def test_closed_log_does_not_open_files_again(tmp_path: Path) -> None:
    disk = FaultyFiles()
    log = Log.open(tmp_path, LogOptions(tail_cache_bytes=0), files=disk)
    log.create_topic("t")
    log.append("t", Columns([b"a"]))
    log.close()

    try:
        log.read("t", 0)
    except Exception as error:
        assert type(error).__name__ == "LogClosed"

    assert disk._paths == {}, "a handle nobody will close"


def batch_of(*texts: bytes) -> Batch:
    return Batch.of("", frame_of(Columns(texts), 0, bytes(16)))


def test_a_large_group_is_taken_whole_whatever_waits(tmp_path: Path) -> None:
    options = LogOptions(group_bytes=1024, journal_file_bytes=1024)
    with Log.open(tmp_path, options) as log:
        log.create_topic("t")
        log.commit()
        log.append("t", Columns([b"before"]))
        running = log.begin_commit()
        assert running is not None
        log.append("t", Columns([b"waits"]))

        group = log.open_group
        large = [("t", bytes(5000)), ("u", b"1"), ("t", b"2")]
        done = log.append_large([(name, batch_of(text)) for name, text in large], plain)

        assert {one.group for one in done} == {group}
        assert [one.base_offset for one in done] == [2, 0, 3]
        running.run()
        log.end_commit(running)
        log.commit()
    with Log.open(tmp_path) as log:
        assert payloads(log, "t") == [b"before", b"waits", bytes(5000), b"2"]
        assert payloads(log, "u") == [b"1"]


def plain(name: str) -> TopicOptions:
    return TopicOptions()


def test_a_large_group_that_fails_is_taken_back_whole(tmp_path: Path) -> None:
    disk = FaultyFiles()
    with Log.open(tmp_path, files=disk) as log:
        log.append_large([("t", batch_of(b"1")), ("u", batch_of(b"2"))], plain)
        disk.fail("write", "journal")
        with pytest.raises(DiskFull):
            log.commit()

        assert log.topics() == []


def test_a_large_group_is_refused_before_anything_is_done(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = batch_of(b"1")
    for batches, create, error in (
        ([("t", some), ("u", some)], None, UnknownTopic),
        ([("t", some), ("", some)], plain, InvalidName),
        ([("t", some.since(1))], None, InvalidBatch),
    ):
        with pytest.raises(error):
            log.append_large(batches, create)
    monkeypatch.setattr("penstock.log.log.MAX_GROUP_BYTES", some.header.length)
    with pytest.raises(InvalidBatch, match="group size"):
        log.append_large([("t", some), ("t", some)])

    assert (log.topics(), log.pending_bytes) == (["t"], 0)


@pytest.mark.parametrize("relaxed", [True, False])
def test_events_that_nobody_is_promised_are_written_and_not_synced(
    tmp_path: Path, *, relaxed: bool
) -> None:
    disk = FaultyFiles()
    with Log.open(tmp_path, files=disk) as log:
        log.create_topic("t")
        log.sync()
        before = disk.count("sync", "journal")

        log.append("t", Columns([b"a"]), relaxed=relaxed)
        log.commit()

        assert payloads(log, "t") == [b"a"]
        assert disk.count("sync", "journal") - before == (0 if relaxed else 1)


def test_one_event_that_was_promised_has_the_whole_group_synced(
    tmp_path: Path,
) -> None:
    disk = FaultyFiles()
    with Log.open(tmp_path, files=disk) as log:
        log.create_topic("t")
        log.sync()
        before = disk.count("sync", "journal")

        log.append("t", Columns([b"a"]), relaxed=True)
        log.append("t", Columns([b"b"]))
        log.append("t", Columns([b"c"]), relaxed=True)
        log.commit()

        assert disk.count("sync", "journal") == before + 1
        assert payloads(log, "t") == [b"a", b"b", b"c"]


def test_rows_of_several_topics_are_stored_together(log: Log) -> None:
    log.append("t", Columns([b"0"], 1))

    appended = log.append_rows(
        ["t", "new", "t"], Columns([b"1", b"2", b"3"], 1), create={"new": NEW}
    )

    assert appended.offsets == [1, 0, 2]
    assert appended.generated_ids() == [appended.generated_id(at) for at in range(3)]
    log.sync()
    assert payloads(log, "t") == [b"0", b"1", b"3"]
    assert payloads(log, "new") == [b"2"]
    given = [batch.ids() for name in ("t", "new") for batch in log.read(name, 0)]
    assert [one for ids in given for one in ids][-3:] == [
        appended.generated_id(at) for at in (0, 2, 1)
    ]
    assert log.topic("new").options == NEW


@pytest.mark.parametrize(
    ("names", "events", "error"),
    [
        (["t", "none"], [b"1", b"2"], UnknownTopic),
        (["t", "new"], [b"1", b"x" * 101], InvalidBatch),
        (["t"], [b"1", b"2"], InvalidBatch),
        ([], [], InvalidBatch),
        (["new", "newer"], [b"1", b"2"], InvalidOption),
    ],
)
def test_rows_are_stored_together_or_not_at_all(
    tmp_path: Path, names: list[str], events: list[bytes], error: type[Exception]
) -> None:
    options = LogOptions(max_topics=2, max_event_bytes=100)
    with Log.open(tmp_path, options) as log:
        log.create_topic("t")
        new = {name: NEW for name in names if name.startswith("new")}

        with pytest.raises(error):
            log.append_rows(names, Columns(events, 1), create=new)

        assert log.topics() == ["t"]
        assert log.topic("t").next_offset == 0


def test_relaxed_rows_ask_for_no_sync(log: Log) -> None:
    syncs = log.syncs

    log.append_rows(["t", "t"], Columns([b"1", b"2"], 1), relaxed=True)
    log.commit()

    assert log.syncs == syncs
    assert payloads(log, "t") == [b"1", b"2"]
