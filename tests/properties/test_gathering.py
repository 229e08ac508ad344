"""Small frames are gathered, in a write-out or by upkeep, and nobody can tell.

The power is cut at every call that changes the disk, and a reader of another process
looks at every one of them: it finds the same events, with the same offsets, ids, times
and order, at any moment. The directories are those of a version that wrote every event
as a frame of its own, and those of a server that was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from random import Random

import pytest

from penstock.log import (
    Batch,
    Columns,
    Log,
    LogOptions,
    Reader,
    TopicOptions,
    frame_of,
    housekeeping,
    store,
)
from penstock.log.tail import TailFrame, TailPart
from penstock.model import ids
from penstock.model.event import Event
from penstock.testing import CrashDisk, PowerCut
from tests.effort import effort

DIRECTORY = "/data"
OPTIONS = LogOptions(write_out_bytes=1 << 20)
# Each takes some 30 frames of one event each.
TOPIC = TopicOptions(segment_bytes=4096)
NAMES = ("a", "b")
COUNT = 40

Events = dict[str, list[Event]]


def as_they_came(
    topic: str, parts: Iterable[TailPart], max_bytes: int
) -> Iterator[tuple[TailFrame, list[TailPart]]]:
    """As an earlier version wrote out: a frame is what a commit brought, and has ids
    that do not go on from those before it."""
    for part in parts:
        columns = Batch.whole(topic, *part.frame()).to_columns()
        low = ids.low_id(Random(part.base_offset).randbytes(10))
        base = ids.id_base(columns.timestamps[0], low)
        yield TailFrame.of(frame_of(columns, part.base_offset, base)), [part]


def publish(log: Log) -> None:
    """One event or two a commit: alone, or with those of the other topic."""
    random = Random(7)
    for name in NAMES:
        log.create_topic(name, TOPIC)
    for number in range(COUNT):
        stamp = 1_767_225_600_000 + number // 3
        keys = [b"k"] if number % 5 == 0 else None
        log.append("a", Columns([b"%d" % number], stamp, keys=keys))
        if random.random() < 0.5:
            log.append("b", Columns([b"with", b"others"], stamp))
        log.commit()
    for number in range(COUNT):
        log.append("b", Columns([b"%d" % number], ids=[f"id{number}"]))
        log.commit()
    log.sync()


def opened(disk: CrashDisk) -> Log:
    """With the same ids each time."""
    return Log.open(DIRECTORY, OPTIONS, files=disk, entropy=Random(1).randbytes)


def frames_in(log: Log | Reader) -> dict[str, int]:
    """How many frames the segments of each topic have."""
    return {
        name: sum(
            1
            for segment in log.topic(name).segments
            for _ in log.topic(name).frames_of(segment)
        )
        for name in NAMES
    }


def events_in(log: Log | Reader) -> Events:
    found: Events = {}
    for name in NAMES:
        found[name], offset = [], 0
        while batches := log.read(name, offset, 1000):
            for batch in batches:
                found[name] += batch.events()
            offset = batches[-1].end_offset
    return found


def of_an_earlier_version(
    patch: pytest.MonkeyPatch, *, sealed: bool = True
) -> CrashDisk:
    """Segments of small frames, and nothing else."""
    disk = CrashDisk()
    with patch.context() as older:
        older.setattr(store, "gathered", as_they_came)
        with opened(disk) as log:
            publish(log)
            for name in NAMES if sealed else ():
                log.roll(name)
    return disk


def growing(patch: pytest.MonkeyPatch) -> CrashDisk:
    """The same, in segments that were not sealed."""
    patch.setattr(housekeeping, "LEAST_ACTIVE_BYTES", 1000)
    return of_an_earlier_version(patch, sealed=False)


def killed() -> CrashDisk:
    """All of it in the journal, shared rows too."""
    disk = CrashDisk()
    log = opened(disk)
    publish(log)
    log.abandon()
    return disk


def maintain(log: Log) -> None:
    log.maintain()
    log.checkpoint()  # which stores the indexes of what was rewritten


def write_out(log: Log) -> None:
    log.checkpoint()


SCENES: dict[str, Callable[[pytest.MonkeyPatch], CrashDisk]] = {
    "upkeep": of_an_earlier_version,
    "upkeep of what grew": growing,
    "write-out": lambda _: killed(),
}
WORK = {"upkeep": maintain, "upkeep of what grew": maintain, "write-out": write_out}


@pytest.mark.parametrize("scene", SCENES)
def test_a_power_cut_at_any_call_of_gathering_loses_and_doubles_nothing(
    scene: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = SCENES[scene]
    wanted = events_of(make(monkeypatch))
    cuts = 0
    for at in range(1, 200):
        for seed in range(effort(2, 20)):
            disk = make(monkeypatch)
            log = opened(disk)
            disk.cut_power_in(at)
            with suppress(PowerCut):
                WORK[scene](log)
                log.abandon()
                assert cuts > 10, "so many calls that change the disk, at least"
                return
            disk.cut_power_in(None)
            cuts += 1
            log.abandon()
            disk = disk.crashed(Random(seed))

            with opened(disk) as log:
                assert events_in(log) == wanted, at
                WORK[scene](log)
                assert events_in(log) == wanted, at
                assert list(log.damages) == [], at
                assert all(count < 20 for count in frames_in(log).values()), at
    raise AssertionError("gathering has no end")


def events_of(disk: CrashDisk) -> Events:
    with Reader.open(DIRECTORY, files=disk) as reader:
        return events_in(reader)


@pytest.mark.parametrize("scene", SCENES)
def test_a_reader_of_another_process_sees_the_same_at_every_call(
    scene: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = SCENES[scene]
    disk = make(monkeypatch)
    log = opened(disk)
    wanted, looks = events_in(log), 0
    early = Reader.open(DIRECTORY, files=disk)  # knows the segments as they were
    events_in(early)
    waiting = Reader.open(DIRECTORY, files=disk)  # does so too, and has read nothing

    def look(action: str, path: str) -> None:
        nonlocal looks
        if looks < 0:  # by one of those below
            return
        seen, looks = looks + 1, -1
        fresh = Reader.open(DIRECTORY, files=disk)
        for reader in (early, fresh, *([waiting] if seen == 12 else [])):
            assert events_in(reader) == wanted, (seen, action, path)
            assert reader.damages == [], (seen, action, path)
        early.refresh()
        fresh.close()
        looks = seen

    disk.fail(look)
    WORK[scene](log)
    disk.fail(None)

    assert looks > 12
    assert events_in(early) == events_in(waiting) == events_in(log) == wanted
    assert all(count < 20 for count in frames_in(log).values())
    for reader in (early, waiting):
        reader.close()
    log.close()


def test_a_killed_one_has_rows_in_its_journal() -> None:
    """Or the tests above would be about something else."""
    with Reader.open(DIRECTORY, files=killed()) as reader:
        parts = [part for name in NAMES for part in reader.topic(name).tail.unwritten()]

    kinds = {type(part).__name__ for part in parts}
    assert kinds == {"FrameInJournal", "RowsInJournal"}


def test_what_grows_since_this_start_is_not_sealed_for_its_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(housekeeping, "LEAST_ACTIVE_BYTES", 1000)
    monkeypatch.setattr(store, "gathered", as_they_came)
    disk = CrashDisk()
    with opened(disk) as log:
        publish(log)
        log.checkpoint()
        before = [len(log.topic(name).segments) for name in NAMES]

        log.maintain()

        assert [len(log.topic(name).segments) for name in NAMES] == before
    with opened(disk) as log:
        log.maintain()
        sealed = [len(log.topic(name).segments) for name in NAMES]
        assert sealed == [count + 1 for count in before]
        log.maintain()
        assert [len(log.topic(name).segments) for name in NAMES] == sealed


def test_what_upkeep_gathered_is_whole_and_has_its_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = of_an_earlier_version(monkeypatch)
    with opened(disk) as log:
        before = frames_in(log), log.topic("a").bytes

        freed = log.maintain()
        log.checkpoint()

        assert frames_in(log)["a"] * 8 < before[0]["a"]
        assert log.topic("a").bytes < before[1]
        assert freed > 0
        for name in NAMES:
            topic = log.topic(name)
            for segment in topic.segments[:-1]:
                stored = topic.stored_index(segment)
                assert stored is not None
                assert stored == topic._build_index(segment)
        assert log.maintain() == 0  # what was looked at once is let alone
    assert events_of(disk)
