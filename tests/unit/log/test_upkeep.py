"""Retention, compaction and deletion while the log is at work: a step at a time."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from penstock.clock import ManualClock
from penstock.errors import BeingDeleted, DiskFull, UnknownTopic, WriteFailed
from penstock.log import Columns, Log, LogOptions, StoreWork, TopicOptions
from penstock.testing import CrashDisk
from tests.upkeep import keep_up

OPTIONS = LogOptions(
    write_out_bytes=1500, tail_cache_bytes=1000, checkpoint_bytes=20_000
)
COMPACT = TopicOptions(compact=True, segment_bytes=1500)


@pytest.fixture
def disk() -> CrashDisk:
    return CrashDisk()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def opened(disk: CrashDisk, clock: ManualClock) -> Log:
    return Log.open("/data", OPTIONS, files=disk, clock=clock)


@pytest.fixture
def log(disk: CrashDisk, clock: ManualClock) -> Iterator[Log]:
    log = opened(disk, clock)
    yield log
    log.abandon()


def publish(log: Log, topic: str, *keys: bytes) -> None:
    log.append(topic, Columns([b"x" * 100] * len(keys), log.now_ms(), keys=keys))
    log.commit()


def offsets(log: Log, topic: str) -> list[int]:
    found: list[int] = []
    at = log.topic(topic).start_offset
    while batches := log.read(topic, at):
        found += [offset for batch in batches for offset in batch.offsets()]
        at = batches[-1].header.end_offset
    return found


def kinds(steps: list[StoreWork]) -> list[str]:
    return [type(step).__name__ for step in steps]


def nothing() -> None:
    """Nobody wants to know when a topic is gone."""


# Deleting


def test_a_deleted_topic_takes_no_events_and_is_gone_with_its_group(log: Log) -> None:
    log.create_topic("t")
    publish(log, "t", b"a")
    told: list[str] = []

    log.append("t", Columns([b"last"]))
    group = log.drop_topic("t", lambda: told.append("gone"))

    assert group == log.open_group
    refused = [
        lambda: log.append("t", Columns([b"x"])),
        lambda: log.append_group({"t": Columns([b"x"])}),
        lambda: log.create_topic("t"),
        lambda: log.set_options("t", TopicOptions()),
        lambda: log.drop_topic("t", nothing),
    ]
    for act in refused:
        with pytest.raises(BeingDeleted):
            act()
    assert offsets(log, "t") == [0]
    assert told == []
    log.commit()
    assert told == ["gone"]
    assert log.topics() == []
    with pytest.raises(UnknownTopic):
        log.append("t", Columns([b"x"]))


@pytest.mark.parametrize("crash", [False, True])
def test_a_topic_made_anew_at_once_has_nothing_of_the_old_one(
    log: Log, disk: CrashDisk, clock: ManualClock, crash: bool
) -> None:
    log.create_topic("t")
    publish(log, "t", *[b"a"] * 50)
    old = log.topic("t").directory

    log.append("t", Columns([b"last"]))
    log.drop_topic("t", nothing)
    log.commit()
    log.create_topic("t")
    publish(log, "t", b"new")
    keep_up(log)
    assert not disk.exists(old)
    log.sync()
    if crash:
        log.abandon()
        log = opened(disk.crashed(Random(1)), clock)

    assert log.topics() == ["t"]
    assert offsets(log, "t") == [0]
    log.abandon()


def test_a_deletion_that_cannot_be_stored_is_none(log: Log, disk: CrashDisk) -> None:
    log.create_topic("t")
    publish(log, "t", b"a")
    log.drop_topic("t", lambda: pytest.fail("it is not gone"))
    disk.fail(lambda what, path: OSError(errno.ENOSPC, "simulated"))

    with pytest.raises(WriteFailed):
        log.commit()

    disk.fail(None)
    publish(log, "t", b"b")
    assert offsets(log, "t") == [0, 1]


def test_a_topic_that_is_being_written_out_is_deleted_when_that_has_ended(
    log: Log, disk: CrashDisk
) -> None:
    log.create_topic("t")
    log.append("t", Columns([b"x" * 100] * 50))
    commit = log.begin_commit()
    assert commit is not None
    commit.run()
    log.end_commit(commit)
    writing = log.begin_store()
    assert writing is not None
    log.drop_topic("t", nothing)
    deleting = log.begin_commit()
    assert deleting is not None
    deleting.run()
    folder = log.topic("t").directory
    log.end_commit(deleting)
    assert log.topics() == []

    writing.run()
    log.end_store(writing)

    assert disk.exists(folder)
    keep_up(log)
    assert not disk.exists(folder)
    assert log.unwritten_bytes == 0


def test_a_checkpoint_waits_for_files_that_are_to_go(
    log: Log, disk: CrashDisk, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Or nobody would know any more that they are."""
    log.create_topic("t")
    log.create_topic("other")
    publish(log, "t", *[b"a"] * 50)
    folder = log.topic("t").directory
    disk.fail(lambda what, path: OSError(errno.EIO, what) if "remove" in what else None)
    log.drop_topic("t", nothing)

    for _ in range(300):
        publish(log, "other", b"k")
        log.store()

    assert "stay for now" in caplog.text
    assert disk.exists(folder)
    disk.fail(None)
    log.abandon()
    with opened(disk, clock) as log:
        assert log.topics() == ["other"]
        assert not disk.exists(folder)


# Retention and compaction


def steps_of(log: Log) -> Iterator[StoreWork]:
    """The steps of a round, each handed out before it is run."""
    log.maintain_soon()
    for _ in range(1000):
        log.commit()
        log.store()
        if (work := log.begin_upkeep()) is not None:
            yield work
            log.end_upkeep(work)


def a_round(log: Log) -> list[StoreWork]:
    """The steps of a round that nothing comes between."""
    done = []
    for work in steps_of(log):
        work.run()
        done.append(work)
    return done


def test_compaction_goes_on_beside_publishers_and_readers(
    log: Log, disk: CrashDisk, clock: ManualClock
) -> None:
    log.create_topic("t", COMPACT)
    for number in range(60):
        publish(log, "t", b"%d" % (number % 5), b"k%d" % number)
    published, sizes = 120, []

    for work in steps_of(log):
        publish(log, "t", b"0")
        published += 1
        work.run()
        found = offsets(log, "t")
        assert found == sorted(set(found))
        assert found[-1] == published - 1
        sizes.append(len(found))

    assert len(sizes) > 10, "a step for each segment at least"
    keys = {b"%d" % number for number in range(5)}
    assert len(offsets(log, "t")) <= 60 + len(keys) + len(sizes)
    log.close()
    with opened(disk.crashed(Random(2)), clock) as log:
        assert offsets(log, "t") == found
        assert not log.damages


@pytest.mark.slow
@pytest.mark.parametrize("change", ["delete", "trim", "crash", "crash in a step"])
@pytest.mark.parametrize("after", range(0, 40, 3))
def test_whatever_happens_between_two_steps_nothing_is_lost(
    log: Log, disk: CrashDisk, clock: ManualClock, change: str, after: int
) -> None:
    log.create_topic("t", COMPACT)
    log.create_topic("other")
    publish(log, "other", b"o")
    for number in range(40):
        publish(log, "t", b"%d" % (number % 3), b"k%d" % number)
    last = {number % 3: 2 * number for number in range(40)}
    kept = {*last.values(), *range(1, 80, 2)}

    for number, work in enumerate(steps_of(log)):
        if number == after and change == "delete":
            log.drop_topic("t", nothing)
            log.commit()
        elif number == after and change == "trim":
            start_at(log, 41)
        work.run()
        if number == after and change.startswith("crash"):
            if change == "crash":
                log.end_upkeep(work)
            log.abandon()
            disk = disk.crashed(Random(after))
            log = opened(disk, clock)
            assert kept <= set(offsets(log, "t"))
            break
    log.maintain_soon()
    keep_up(log)

    assert offsets(log, "other") == [0]
    if "t" in log.topics():
        first = log.topic("t").start_offset
        assert offsets(log, "t") == sorted(one for one in kept if one >= first)
    assert not log.damages
    assert not [path for path in disk.paths() if path.endswith(".tmp")]
    log.close()


def start_at(log: Log, offset: int) -> None:
    from penstock.log import housekeeping

    housekeeping.start_at(log, log.topic("t"), offset)
    log.commit()


def test_a_topic_that_did_not_change_is_not_compacted_again(log: Log) -> None:
    log.create_topic("t", COMPACT)
    for _ in range(20):
        publish(log, "t", b"a", b"b")

    assert len(a_round(log)) > 0
    assert len(a_round(log)) == 0


def test_after_a_restart_retention_asks_the_files_in_a_step(
    log: Log, disk: CrashDisk, clock: ManualClock
) -> None:
    log.create_topic("t", TopicOptions(retention_age_s=100.0, segment_bytes=1500))
    for _ in range(30):
        publish(log, "t", b"a")
    log.close()
    for path in disk.paths():
        if path.endswith(".idx"):
            disk.remove(path)
    clock.advance(99)
    with opened(disk, clock) as log:
        publish(log, "t", b"young")
        assert kinds(a_round(log)) == ["Survey", "LookAtFrames"]
        assert log.topic("t").start_offset == 0

        clock.advance(2)
        assert kinds(a_round(log)) == ["LookAtFrames"]
        assert 0 < log.topic("t").start_offset <= 30
        assert offsets(log, "t")[-1] == 30


def test_a_round_that_fails_is_said_and_the_next_one_does_it(
    log: Log, disk: CrashDisk, caplog: pytest.LogCaptureFixture
) -> None:
    log.create_topic("t", COMPACT)
    for _ in range(20):
        publish(log, "t", b"a", b"b")
    disk.fail(
        lambda what, path: OSError(errno.EIO, "planned") if ".tmp" in path else None
    )

    a_round(log)

    assert [vars(one).get("action") for one in caplog.records][-1] == "maintain_failed"
    assert len(offsets(log, "t")) == 40
    disk.fail(None)
    log.maintain_soon()
    keep_up(log)
    assert len(offsets(log, "t")) == 2


def test_a_segment_that_grows_while_its_file_is_asked_is_as_young_as_it_was_made(
    log: Log, disk: CrashDisk, clock: ManualClock
) -> None:
    log.create_topic("t", TopicOptions(retention_age_s=100.0, segment_bytes=4000))
    for _ in range(10):
        publish(log, "t", b"old")
    log.close()
    clock.advance(150)
    with opened(disk, clock) as log:
        log.maintain_soon()
        survey = log.begin_upkeep()
        assert survey is not None
        for _ in range(30):
            publish(log, "t", b"young")
        assert log.topic("t").segments[0].sealed

        survey.run()
        log.end_upkeep(survey)
        keep_up(log)

        assert log.topic("t").start_offset == 0
        assert offsets(log, "t") == list(range(40))


def test_files_that_cannot_be_erased_end_the_round_and_keep_nothing_busy(
    log: Log, disk: CrashDisk, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Compaction waits for a checkpoint, which waits for the files to go."""
    log.create_topic("c", COMPACT)
    log.create_topic("r", TopicOptions(retention_bytes=2000, segment_bytes=1500))
    for _ in range(20):
        publish(log, "c", b"k")
        publish(log, "r", b"k")
    planned = OSError(errno.EACCES, "planned")
    disk.fail(lambda what, path: planned if "remove" in what else None)

    keep_up_for(log, turns=100)
    failures = [one for one in caplog.records if "stay for now" in one.getMessage()]
    assert len(failures) == 1
    assert not log.checkpoint_wanted
    with pytest.raises(WriteFailed):
        log.maintain()

    disk.fail(None)
    clock.advance(2)
    log.maintain()
    assert offsets(log, "c") == [19]


def keep_up_for(log: Log, turns: int) -> None:
    log.maintain_soon()
    for _ in range(turns):
        log.commit()
        for begin, end in (
            (log.begin_store, log.end_store),
            (log.begin_upkeep, log.end_upkeep),
        ):
            if (work := begin()) is not None:
                work.run()
                end(work)


def test_a_checkpoint_that_fails_is_not_taken_for_one_that_did_not(
    log: Log, disk: CrashDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """Although a write-out behind it went well."""
    log.create_topic("t", COMPACT)
    for _ in range(20):
        publish(log, "t", b"a", b"b")
    log.maintain_soon()
    planned = OSError(errno.ENOSPC, "planned")
    while True:
        step = log.begin_upkeep()
        log.commit() if not log.checkpoint_wanted else log.begin_commit()
        work = log.begin_store()
        if work is not None and type(work).__name__ == "TakeCheckpoint":
            break
        for one, end in ((work, log.end_store), (step, log.end_upkeep)):
            if one is not None:
                one.run()
                end(one)
    disk.fail(lambda what, path: planned if "checkpoints" in path else None)
    work.run()
    disk.fail(None)
    log.end_store(work)
    log.append("t", Columns([bytes(2000)]))
    log.commit()
    assert log.flusher.error is None

    assert log.begin_upkeep() is None

    assert [vars(one).get("action") for one in caplog.records][-1] == "maintain_failed"


@pytest.mark.parametrize("name", ["frames", "build_index"])
def test_a_mistake_in_a_step_ends_the_round_and_not_the_thread(
    log: Log, disk: CrashDisk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log.create_topic("t", COMPACT)
    log.create_topic("r", TopicOptions(retention_age_s=10.0))
    for _ in range(20):
        publish(log, "t", b"a", b"b")
        publish(log, "r", b"k")
    log.checkpoint()
    log.topic("r").segments[-1].index = None

    def mistake(*_: object, **__: object) -> None:
        raise MemoryError("planned")

    module = "compaction" if name == "frames" else "survey"
    monkeypatch.setattr(f"penstock.log.{module}.{name}", mistake)

    done = a_round(log)

    assert isinstance(done[-1].error, WriteFailed)
    assert len(offsets(log, "t")) == 40


# A disk that is full, or behind


def turn(log: Log) -> None:
    """One turn of the pump."""
    if (commit := log.begin_commit()) is not None:
        commit.run()
        log.end_commit(commit)
    if (work := log.begin_store()) is not None:
        work.run()
        log.end_store(work)


def test_a_deletion_makes_room_on_a_disk_that_is_full(
    log: Log, disk: CrashDisk
) -> None:
    for name in ("large", "t"):
        log.create_topic(name)
    publish(log, "large", *[b"a"] * 50)
    large = log.topic("large").directory
    log.checkpoint()

    def full(what: str, path: str) -> OSError | None:
        wanted = what == "write" and "/topics/" in path and disk.exists(large)
        return OSError(errno.ENOSPC, "simulated") if wanted else None

    disk.fail(full)
    for _ in range(40):
        with suppress(DiskFull):
            log.append("t", Columns([b"x" * 100], log.now_ms()))
        turn(log)
    with pytest.raises(DiskFull):
        log.append("t", Columns([b"x" * 100], log.now_ms()))

    log.drop_topic("large", nothing)
    for _ in range(40):
        turn(log)

    assert not disk.exists(large)
    publish(log, "t", b"again")


def test_files_are_erased_however_much_there_is_to_write(
    log: Log, disk: CrashDisk
) -> None:
    for name in ("large", "t"):
        log.create_topic(name)
    publish(log, "large", *[b"a"] * 50)
    log.checkpoint()
    large = log.topic("large").directory
    log.drop_topic("large", nothing)

    for _ in range(10):  # more comes than is due to be written, in every turn
        log.append("t", Columns([b"x" * 100] * 20, log.now_ms()))
        turn(log)

    assert not disk.exists(large)


def test_a_segment_that_is_lost_keeps_no_other_topic_from_being_compacted(
    log: Log, disk: CrashDisk, clock: ManualClock
) -> None:
    for name in ("first", "second"):
        log.create_topic(name, COMPACT)
        publish(log, name, *[b"a"] * 50)
    log.checkpoint()
    disk.remove(log.topic("first").segments[0].path)

    with pytest.raises(WriteFailed, match="compacting"):
        log.maintain()

    assert offsets(log, "second") == [49]
