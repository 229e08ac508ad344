from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from penstock.errors import DiskFull
from penstock.log import Columns, Log
from penstock.log.compaction import compaction
from penstock.log.housekeeping import _done_here
from tests.unit.log.faults import FaultyFiles, offsets, payloads
from tests.unit.log.scenes import RESTARTS, Restart, keyed


def filled(directory: Path, keys: list[bytes | None], per_segment: int) -> Log:
    """A topic of these keys, two events a frame, in sealed segments."""
    log = Log.open(directory)
    log.create_topic("t")
    for start in range(0, len(keys), per_segment):
        part = keys[start : start + per_segment]
        for at in range(0, len(part), 2):
            pair = part[at : at + 2]
            log.append("t", Columns([b"x" * 100] * len(pair), keys=pair))
            log.commit()
        log.roll("t")
    log.checkpoint(keep=1)
    log.flusher.forget(log.topic("t"))
    return log


def survivors(keys: list[bytes | None]) -> list[int]:
    last = {key: offset for offset, key in enumerate(keys)}
    return [o for o, key in enumerate(keys) if key is None or last[key] == o]


def compact(log: Log, max_keys: int) -> int:
    topic = log.topic("t")
    return _done_here(log, compaction(log, topic, topic.segments[:-1], max_keys))


@pytest.mark.slow
@pytest.mark.parametrize("max_keys", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("seed", range(4))
def test_any_number_of_rounds_keeps_the_last_event_of_each_key(
    tmp_path: Path, max_keys: int, seed: int
) -> None:
    random = Random(seed)
    keys = [random.choice([b"a", b"b", b"c", b"d", b"e", None]) for _ in range(40)]
    log = filled(tmp_path, keys, per_segment=7)

    compact(log, max_keys)

    assert offsets(log, "t") == survivors(keys), f"seed {seed}"
    assert list(log.damages) == []
    log.close()
    with Log.open(tmp_path) as log:
        assert offsets(log, "t") == survivors(keys), f"seed {seed}"
        assert list(log.damages) == []


def test_bytes_set_free_are_those_the_files_lost(tmp_path: Path) -> None:
    log = filled(tmp_path, [b"a", b"b"] * 20, per_segment=8)
    before = log.topic("t").bytes

    freed = compact(log, 10)

    assert freed == before - log.topic("t").bytes > 0
    sizes = [Path(s.path).stat().st_size for s in log.topic("t").segments]
    assert sizes == [segment.length for segment in log.topic("t").segments]
    log.close()


def test_segment_without_superseded_events_is_not_touched(tmp_path: Path) -> None:
    log = filled(tmp_path, [b"a", b"b", b"c", b"a"], per_segment=2)
    first, second = (Path(s.path) for s in log.topic("t").segments[:2])
    before = (first.stat().st_ino, second.stat().st_ino)

    compact(log, 10)

    assert first.stat().st_ino != before[0]
    assert second.stat().st_ino == before[1]
    log.close()


def test_compacting_twice_changes_nothing_more(tmp_path: Path) -> None:
    keys: list[bytes | None] = [b"a", b"b", None, b"a", b"c", b"b"]
    log = filled(tmp_path, keys, per_segment=3)
    compact(log, 10)

    assert compact(log, 10) == 0
    assert offsets(log, "t") == survivors(keys)
    log.close()


def test_segment_that_lost_all_its_events_is_read_over(tmp_path: Path) -> None:
    log = filled(tmp_path, [b"a", b"b", b"a", b"b", b"a", b"b"], per_segment=2)

    compact(log, 10)

    assert offsets(log, "t") == [4, 5]
    assert [batch.offsets() for batch in log.read("t", 0, 1)] == [[4, 5]]
    assert log.offset_at("t", 0) == 4
    log.close()


def test_compaction_stores_no_generated_ids(
    tmp_path: Path,
) -> None:
    log = Log.open(tmp_path)
    log.create_topic("t")
    keys = [b"%02d" % number for number in range(50)]
    log.append("t", Columns([b"x"] * 50, keys=keys))
    log.append("t", Columns([b"x"], keys=[b"00"]))
    log.commit()

    freed = log.compact("t")

    # One offset for each event kept, a column for them, and no 36 bytes of id each.
    assert freed >= -(4 * 49 + 32)
    log.close()


def test_leftover_of_a_crash_is_written_over(tmp_path: Path) -> None:
    log = filled(tmp_path, [b"a", b"b", b"a"], per_segment=2)
    leftover = Path(log.topic("t").segments[0].path + ".tmp")
    leftover.write_bytes(b"junk" * 10_000)

    compact(log, 10)

    assert offsets(log, "t") == [1, 2]
    assert not leftover.exists()
    log.close()


# Through the log


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles) -> Log:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("t")
    log.sync()
    return log


def numbers(log: Log) -> list[int]:
    return [int(payload) for payload in payloads(log, "t")]


@RESTARTS
def test_compaction_keeps_the_last_event_of_each_key_and_those_without(
    tmp_path: Path, log: Log, restart: Restart
) -> None:
    keyed(log, b"a", b"b", None, b"a")
    keyed(log, b"b", b"c")
    keyed(log, b"a")

    freed = log.compact("t")

    assert freed > 0
    assert offsets(log, "t") == [2, 4, 5, 6]
    assert numbers(log) == [2, 4, 5, 6]
    log = restart(log, tmp_path)
    assert numbers(log) == [2, 4, 5, 6]
    assert log.append("t", Columns([b"next"])).base_offset == 7
    assert list(log.damages) == []
    log.close()


def test_compaction_with_nothing_to_do_frees_nothing(log: Log) -> None:
    assert log.compact("t") == 0
    keyed(log, b"a", b"b")
    assert log.compact("t") == 0

    assert offsets(log, "t") == [0, 1]


def test_compaction_keeps_everything_an_event_has(log: Log) -> None:
    columns = Columns(
        [b"0", b"1"],
        [5, 6],
        ids=[None, "given"],
        keys=[b"a", b"b"],
        priorities=[1, 2],
        headers=[{}, {"h": "v"}],
        parents=["p", None],
        producer="me",
    )
    log.append("t", columns)
    log.commit()
    before = list(log.read("t", 1)[0].events())
    log.append("t", Columns([b"2"], keys=[b"a"]))
    log.commit()

    log.compact("t")

    assert [*log.read("t", 0)[0].events()][:1] == before


def test_compacted_topic_is_read_on_behind_a_segment_that_lost_its_end(
    log: Log,
) -> None:
    keyed(log, b"a", b"b")
    keyed(log, b"b", b"c")
    keyed(log, b"c")

    log.compact("t")

    assert offsets(log, "t") == [0, 2, 4]
    assert [b.offsets() for b in log.read("t", 1, 1)] == [[2]]


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename"])
def test_compaction_that_fails_loses_nothing(
    tmp_path: Path, log: Log, disk: FaultyFiles, call: str
) -> None:
    keyed(log, b"a", b"b")
    keyed(log, b"a", b"b")
    part = "seg" if call == "rename" else "seg.tmp"
    disk.fail(call, part)

    with pytest.raises(DiskFull, match="compacting"):
        log.compact("t")

    assert offsets(log, "t") == [0, 1, 2, 3]
    log.compact("t")
    assert offsets(log, "t") == [2, 3]
    log.abandon()
    log = Log.open(tmp_path)
    assert offsets(log, "t") == [2, 3]
    log.close()


def test_segment_in_front_of_the_start_is_left_alone(tmp_path: Path) -> None:
    """After two accidents a topic may know of one whose file was removed before."""
    log = filled(tmp_path, [b"a", b"b", b"c", b"a", b"c", b"c"], per_segment=3)
    topic = log.topic("t")
    topic.start_offset = 3
    Path(topic.segments[0].path).unlink()

    assert log.compact("t") > 0

    assert offsets(log, "t") == [3, 5]
