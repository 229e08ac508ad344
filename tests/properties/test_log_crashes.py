"""Any sequence of operations and accidents leaves the log as a plain list would be.

The model and the operations are in log_model.py; the accidents are those of
``penstock.testing.CrashDisk``. The last tests show that these tests bite: take away
the checksum, the sync or the directory sync, and they fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.files import read_file
from penstock.log import Layout, Log, frame, rows
from penstock.testing import CrashDisk
from tests.effort import effort
from tests.properties.log_model import (
    DIRECTORY,
    KIND,
    OPTIONS,
    Ledger,
    Simulation,
    State,
    TopicModel,
    extract,
)
from tests.unit.log.scenes import ends_in

SEEDS = st.integers(min_value=0, max_value=1 << 32)


@given(seed=SEEDS)
@example(seed=5690)  # a compacted segment that became no shorter
@example(seed=1069)  # a group whose sync failed is found, and a later compaction
@example(seed=16731102)  # such a group was not found, and came back later
@example(seed=501)  # a cut through a frame that the replay had gathered
def test_many_operations_and_accidents_keep_what_was_acknowledged(seed: int) -> None:
    Simulation(seed).run(60)


@given(seed=SEEDS)
@settings(max_examples=settings().max_examples // 5)
def test_a_long_life_with_accidents_keeps_what_was_acknowledged(seed: int) -> None:
    Simulation(seed).run(250)


@given(seed=SEEDS)
def test_losing_every_checkpoint_loses_no_acknowledged_event(seed: int) -> None:
    simulation = Simulation(seed)
    append_only(simulation, 40)
    layout = Layout(DIRECTORY)
    simulation.log.abandon()

    for name in simulation.disk.list(layout.checkpoints):
        simulation.disk.remove(f"{layout.checkpoints}/{name}")
    log = open_log(simulation.disk)

    found = extract(log, Ledger())
    assert found.topics == simulation.state.topics, f"seed {seed}"


TAILS: dict[str, Callable[[bytes, bytes, int], bytes]] = {
    "cut": lambda old, new, at: new[:at],
    "zeros": lambda old, new, at: new[:at] + bytes(len(new) - at),
    "junk": lambda old, new, at: new[:at] + Random(at).randbytes(len(new) - at),
    "old content": lambda old, new, at: new[:at] + (old * 9)[at : len(new)],
    "hole": lambda old, new, at: new[:at] + bytes(8) + new[at + 8 :],
}


@pytest.mark.parametrize("behind", [0, 1000], ids=["", "zeros behind"])
@pytest.mark.parametrize("tail", TAILS)
def test_a_torn_tail_of_any_kind_at_any_byte_leaves_a_prefix(
    tail: str, behind: int
) -> None:
    disk = CrashDisk()
    simulation = Simulation(7, disk)
    append_only(simulation, 12)
    before = simulation.state.copy()
    path = max(path for path in disk.paths() if path.endswith(".jnl"))
    old = read_file(disk, path)
    states, ends = [before], ends_in(old)[-1:]
    for _ in range(2):
        simulation._append("a")
        simulation.log.commit(sync=False)
        states.append(simulation.state.copy())
    ends += ends_in(read_file(disk, path))[-2:]
    new = read_file(disk, path)[: ends[-1]]
    simulation.log.abandon()

    for at in positions(ends, tail):
        torn = copy_of(disk)
        put(torn, path, TAILS[tail](old, new, at) + bytes(behind))
        log = open_log(torn)

        found = extract(log, Ledger())
        assert State(found.topics) in [State(one.topics) for one in states], at
        assert not len(log.damages), at
        whole = at in ends or found.topics == states[-1].topics
        assert log.report.cuts or whole, at


def positions(ends: list[int], tail: str) -> list[int]:
    """From the first end to the last: those around ends, and others.

    Every other kind of tail has other ones; make deep has all of them.
    """
    step = effort(4, 1)
    some = {*range(ends[0] + list(TAILS).index(tail) % step, ends[-1], step)}
    near = {end + by for end in ends for by in (-1, 0, 1)}
    return sorted(some | near & {*range(ends[0], ends[-1])})


@given(seed=SEEDS)
@example(seed=30796)  # a frame that said it was far behind the end ended the read
def test_a_flipped_bit_is_found_and_costs_only_its_own_frame(seed: int) -> None:
    random = Random(seed)
    simulation = Simulation(seed)
    append_only(simulation, 30)
    if random.random() < 0.5:
        simulation.log.close()
    else:
        simulation.log.abandon()
    disk = simulation.disk
    path = random.choice([p for p in disk.paths() if p.endswith((".jnl", ".seg"))])
    data = read_file(disk, path)
    position = random.randrange(len(data))

    disk.flip_bit(path, position, random.randrange(8))
    log = open_log(disk)

    found = extract(log, Ledger())
    where = f"seed {seed}: {path} at {position}"
    for name, topic in simulation.state.topics.items():
        check_damaged(log, topic, found.topics.get(name), name, where)


@pytest.mark.parametrize(
    "disk",
    [
        pytest.param({"honours_sync": False}, id="no sync"),
        pytest.param({"honours_directory_sync": False}, id="no directory sync"),
    ],
)
def test_without_a_sync_these_tests_fail(disk: dict[str, bool]) -> None:
    assert any(True for _ in failures(lambda: CrashDisk(**disk)))


def test_without_the_checksum_these_tests_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frame, "crc32c", lambda data, crc=0: 0)
    monkeypatch.setattr(rows, "crc32c", lambda data, crc=0: 0)

    assert any(True for _ in failures(CrashDisk))


def test_with_everything_in_place_the_same_runs_pass() -> None:
    assert list(failures(CrashDisk)) == []


def failures(make_disk: Callable[[], CrashDisk]) -> Iterator[int]:
    """The seeds of some runs that do not end well."""
    for seed in range(effort(30, 60)):
        try:
            Simulation(seed, make_disk()).run(60)
        except Exception:
            yield seed


def append_only(simulation: Simulation, steps: int) -> None:
    """Some appends, rolls and checkpoints, all acknowledged in the end."""
    for _ in range(steps):
        kind = simulation.random.choice(["append", "append", "append", "sync", "roll"])
        getattr(simulation, kind)()
    simulation.checkpoint()
    simulation.append()
    simulation.sync()


def check_damaged(
    log: Log, wanted: TopicModel, found: TopicModel | None, name: str, where: str
) -> None:
    """What is read is right; what is missing is reported, range by range."""
    rows = {} if found is None else found.rows
    assert all(wanted.rows[offset] == row for offset, row in rows.items()), where
    missing = wanted.rows.keys() - rows.keys()
    if missing:
        assert len(log.damages), f"{where}: {name} lost {sorted(missing)} silently"
    ranges = [
        range(one.first_offset or 0, one.end_offset or 0)
        for one in log.damages
        if one.topic == name
    ]
    behind = 0 if found is None else found.next
    for offset in missing:
        reported = any(offset in one for one in ranges)
        assert reported or offset >= behind, f"{where}: {name} {offset} not reported"


def open_log(disk: CrashDisk) -> Log:
    return Log.open(DIRECTORY, OPTIONS, files=disk, owners={KIND: Ledger()})


def put(disk: CrashDisk, path: str, data: bytes) -> None:
    handle = disk.open(path, write=True, create=True)
    disk.truncate(handle, 0)
    disk.write(handle, [data], 0)
    disk.close(handle)


def copy_of(disk: CrashDisk) -> CrashDisk:
    """The same disk with everything on it synced."""
    copy = CrashDisk()
    for path in disk.paths():
        copy.make_directory(path.rpartition("/")[0])
        put(copy, path, read_file(disk, path))
    return copy
