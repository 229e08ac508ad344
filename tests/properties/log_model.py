"""A log beside a plain list: the same operations on both, then the same answers.

``Simulation`` drives a real log on a ``CrashDisk`` and keeps, beside it, the states
the log may be found in: the last acknowledged one, and one for every group since. A
crash must lead to one of them. Everything is drawn from a seed.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from penstock.clock import ManualClock
from penstock.errors import WriteFailed
from penstock.log import (
    Batch,
    Columns,
    Layout,
    Log,
    LogOptions,
    Record,
    TopicOptions,
    frame_of,
)
from penstock.testing import CrashDisk, PowerCut

DIRECTORY = "/data"
KIND = 300
# Small enough that a few dozen operations roll, recycle and checkpoint.
OPTIONS = LogOptions(
    journal_file_bytes=4096,
    checkpoint_bytes=6000,
    group_bytes=4096,
    write_out_bytes=1500,
    tail_cache_bytes=1000,
)
TOPIC_OPTIONS = {
    "a": TopicOptions(segment_bytes=1500),
    # So that many small frames are gathered into one.
    "B/ü": TopicOptions(segment_bytes=1 << 20),
    "c": TopicOptions(segment_bytes=1500),
}
TOPICS = tuple(TOPIC_OPTIONS)


@dataclass(frozen=True)
class Row:
    payload: bytes
    timestamp_ms: int
    key: bytes | None
    id: str
    priority: int
    headers: tuple[tuple[str, str], ...]


@dataclass
class TopicModel:
    start: int = 0
    next: int = 0
    rows: dict[int, Row] = field(default_factory=dict)

    def copy(self) -> TopicModel:
        return TopicModel(self.start, self.next, dict(self.rows))


@dataclass
class State:
    topics: dict[str, TopicModel] = field(default_factory=dict)
    records: list[bytes] = field(default_factory=list)

    def copy(self) -> State:
        """Of its own, but for the rows: they do not change."""
        topics = {name: topic.copy() for name, topic in self.topics.items()}
        return State(topics, list(self.records))


class Ledger:
    """An owner of records: remembers them all."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def restore(self, snapshot: bytes) -> None:
        self.records = [] if not snapshot else snapshot.split(b"|")

    def replay(self, record: Record) -> None:
        self.records.append(record.data)

    def collect(self) -> list[tuple[bytes, bool]]:
        return []

    def taken_back(self) -> None:
        pass

    def snapshot(self) -> bytes:
        return b"|".join(self.records)


class Simulation:
    def __init__(self, seed: int, disk: CrashDisk | None = None) -> None:
        self.random = Random(seed)
        self.disk = disk or CrashDisk()
        self.clock = ManualClock()
        self.state = State()
        self.history = [self.state.copy()]
        self.trace: list[str] = []
        self.ghosts: list[tuple[int, State]] = []
        self.ledger = Ledger()
        self.log = self._open()

    def run(self, steps: int) -> None:
        """Do ``steps`` random operations, checking as it goes."""
        for _ in range(steps):
            operation = self.random.choices(OPERATIONS, WEIGHTS)[0]
            self.trace.append(operation.__name__)
            self._attempt(lambda: operation(self))  # noqa: B023
            self.clock.advance(self.random.random() * 5)
        self.crash()
        self.check()

    def _attempt(self, operation: Callable[[], None]) -> None:
        """Do something with the power cut at a random call, now and then."""
        cut = self.random.random() < 0.2
        self.disk.cut_power_in(self.random.randint(1, 12) if cut else None)
        try:
            operation()
        except PowerCut:
            self.trace.append("power cut")
            self.disk.cut_power_in(None)
            self.crash()
        self.disk.cut_power_in(None)

    def _open(self) -> Log:
        self.ledger = Ledger()
        return Log.open(
            DIRECTORY,
            OPTIONS,
            files=self.disk,
            clock=self.clock,
            owners={KIND: self.ledger},
            entropy=self.random.randbytes,
        )

    # Operations

    def append(self) -> None:
        self._append(self.random.choice(TOPICS))

    def append_to_several(self) -> None:
        for name in self.random.sample(TOPICS, 2):
            self._append(name)

    def append_rows(self) -> None:
        """Events of several topics in one call."""
        names = self.random.sample(TOPICS, self.random.choice([1, 2, 3]))
        for name in names:
            self._topic(name)
        columns, rows = self._events()
        topics = self.random.choices(names, k=len(rows))
        appended = self.log.append_rows(topics, columns)
        for at, (name, row) in enumerate(zip(topics, rows, strict=True)):
            id_ = appended.generated_id(at)
            self._note_appended(name, appended.offsets[at], [row], {0: id_}.__getitem__)

    def append_encoded(self) -> None:
        name = self.random.choice(TOPICS)
        self._topic(name)
        columns, rows = self._events()
        batch = Batch.of(name, frame_of(columns, 0, bytes(16)))
        appended = self.log.append(name, batch)
        self._note_appended(name, appended.base_offset, rows, appended.generated_id)

    def record(self) -> None:
        data = b"r%d" % self.random.randrange(1000)
        self._note_group()
        self.log.record(KIND, data)
        self.ledger.records.append(data)
        self.state.records.append(data)

    def sync(self) -> None:
        self._note_group()
        self.log.sync()
        self._note_acknowledged()

    def write(self) -> None:
        self._note_group()
        self.log.commit(sync=False)

    def roll(self) -> None:
        name = self._some_topic()
        if name is not None:
            self._note_group()
            self.log.roll(name)

    def checkpoint(self) -> None:
        self._note_group()
        self.log.checkpoint()
        self._note_acknowledged()

    def truncate(self) -> None:
        name = self._some_topic()
        if name is None:
            return
        self.sync()
        topic = self.state.topics[name]
        offset = self.random.randint(topic.start, topic.next)
        topic.rows = {o: row for o, row in topic.rows.items() if o < offset}
        topic.next = offset
        self._note_group()
        self.log.truncate(name, offset)
        self._note_acknowledged()

    def trim(self) -> None:
        name = self._some_topic()
        if name is None:
            return
        self.sync()
        topic = self.state.topics[name]
        topic.start = self.random.randint(topic.start, topic.next)
        topic.rows = {o: row for o, row in topic.rows.items() if o >= topic.start}
        self._note_group()
        self.log.trim(name, topic.start)
        self._note_acknowledged()

    def delete(self) -> None:
        name = self._some_topic()
        if name is None or self.random.random() < 0.7:
            return
        if len(self.trace) % 2:
            self.sync()
            del self.state.topics[name]
            self._note_group()
            self.log.delete_topic(name)
        else:  # with whatever is in its group, and its files some time later
            del self.state.topics[name]
            self._note_group()
            self.log.drop_topic(name, lambda: None)
            self.log.sync()
        self._note_acknowledged()

    def compact(self) -> None:
        name = self._some_topic()
        if name is None or self.random.random() < 0.5:
            return
        self.sync()
        topic = self.state.topics[name]
        last = {row.key: offset for offset, row in topic.rows.items()}
        for offset in sorted(topic.rows):
            row = topic.rows[offset]
            if row.key is not None and last[row.key] > offset:
                self._drop(name, offset)
        self.log.compact(name)
        self._note_acknowledged()

    def fail(self) -> None:
        """A full or broken disk: nothing is confirmed, nothing is lost.

        Every other time one call fails alone: there may be no room for zeros, and
        some for the group.
        """
        if self.random.random() < 0.5:
            self.sync()
        else:
            self.write()
        before = self.state.copy()
        self._append(self.random.choice(TOPICS))
        actions = self.random.sample(["write", "sync", "truncate", "create"], 2)
        code = self.random.choice([errno.ENOSPC, errno.EIO])
        self._note_group()
        left = 1 if len(self.trace) % 2 else 1000

        def fault(what: str, path: str) -> OSError | None:
            nonlocal left
            if what not in actions or not path.endswith((".jnl", ".seg", ".tmp")):
                return None
            left -= 1
            return OSError(code, "simulated") if left >= 0 else None

        self.disk.fail(fault)
        try:
            self.log.sync()
        except WriteFailed:
            # Not confirmed, but a crash may find it until its place is written over.
            self.ghosts.append((self._position(), self.state))
            self.state = before
        else:
            self._note_acknowledged()
        finally:
            self.disk.fail(None)
        self.check()

    def check(self) -> None:
        """Read everything, and from a few places, and compare."""
        self.sync()
        actual = extract(self.log, self.ledger)
        self._expect(actual == self.state, difference(actual, self.state))
        self._expect(not len(self.log.damages), f"damage: {list(self.log.damages)}")
        for name, topic in self.state.topics.items():
            self._check_reads(name, topic)

    def lose_index(self) -> None:
        self._remove_if(lambda path: path.endswith(".idx"))

    def lose_checkpoint(self) -> None:
        """The newest of two checkpoints goes; the older one and the journal do."""
        layout = Layout(DIRECTORY)
        names = self.disk.list(layout.checkpoints)
        present = [name for name in names if name.endswith(".ckp")]
        if len(present) < 2:
            return
        newest = f"{layout.checkpoints}/{present[-1]}"
        self.sync()
        self.log.abandon()
        self.disk.remove(newest)
        self.disk.sync_directory(layout.checkpoints)
        self._reopen()

    def lose_position(self) -> None:
        self._remove_if(lambda path: path.endswith("/position"))

    def crash(self) -> None:
        self.log.abandon()
        self.disk = self.disk.crashed(self.random)
        self._reopen()

    def kill(self) -> None:
        """The process dies, the operating system does not."""
        self._note_group()
        self.log.abandon()
        self._reopen()

    def close(self) -> None:
        self._note_group()
        self.log.close()
        self._note_acknowledged()
        self._reopen()

    # The model

    def _append(self, name: str) -> None:
        self._topic(name)
        columns, rows = self._events()
        appended = self.log.append(name, columns)
        self._note_appended(name, appended.base_offset, rows, appended.generated_id)

    def _topic(self, name: str) -> None:
        """Have the topic; what waits may be committed to make room for more."""
        if name not in self.state.topics:
            self.log.create_topic(name, TOPIC_OPTIONS[name])
            self.state.topics[name] = TopicModel()
        self._note_group()

    def _events(self) -> tuple[Columns, list[Row]]:
        r = self.random
        now = self.log.now_ms()
        rows = [
            Row(
                payload=r.randbytes(r.choice([0, 1, 7, 40, 200])),
                timestamp_ms=now - r.choice([0, 0, 0, 5000]),
                key=r.choice([None, b"k1", b"k2", b"k3"]),
                id=r.choice(["", "", "given"]),
                priority=r.choice([0, 0, 9]),
                headers=r.choice([(), (("name", "wert"),)]),
            )
            for _ in range(r.choice([1, 1, 2, 5, 12]))
        ]
        columns = Columns(
            [row.payload for row in rows],
            [row.timestamp_ms for row in rows],
            ids=[row.id or None for row in rows],
            keys=[row.key for row in rows],
            priorities=[row.priority for row in rows],
            headers=[dict(row.headers) for row in rows],
        )
        return columns, rows

    def _note_appended(
        self, name: str, base: int, rows: list[Row], generated: Callable[[int], str]
    ) -> None:
        topic = self.state.topics[name]
        self._expect(base == topic.next, f"offset {base}, expected {topic.next}")
        for index, row in enumerate(rows):
            known = row if row.id else Row(**{**vars(row), "id": generated(index)})
            topic.rows[topic.next] = known
            topic.next += 1

    def _drop(self, name: str, offset: int) -> None:
        """A row is compacted away, whatever else a crash may find.

        It may find the older ones dropped and the newer ones not yet.
        """
        self.ghosts = [(position, ghost.copy()) for position, ghost in self.ghosts]
        for state in (self.state, *(ghost for _, ghost in self.ghosts)):
            del state.topics[name].rows[offset]
        self._note_group()
        self.history += [ghost for _, ghost in self.ghosts]

    def _note_group(self) -> None:
        self.history.append(self.state.copy())

    def _note_acknowledged(self) -> None:
        self.history = [self.state.copy()]
        here = self._position()
        self.ghosts = [ghost for ghost in self.ghosts if ghost[0] == here]
        self.history += [state for _, state in self.ghosts]

    def _position(self) -> int:
        return self.log.position

    def _some_topic(self) -> str | None:
        names = sorted(self.state.topics)
        return self.random.choice(names) if names else None

    def _remove_if(self, wanted: Callable[[str], bool]) -> None:
        self.sync()
        self.log.abandon()
        for path in [path for path in self.disk.paths() if wanted(path)]:
            self.disk.remove(path)
            self.disk.sync_directory(path.rpartition("/")[0])
        self._reopen()

    def _reopen(self) -> None:
        self.disk.cut_power_in(None)
        self.log = self._open()
        actual = extract(self.log, self.ledger)
        self._expect(
            actual in self.history,
            f"found none of the {len(self.history)} states that may be: "
            f"{difference(actual, self.history[0])} if it were the first of them",
        )
        self._expect(not len(self.log.damages), f"damage: {list(self.log.damages)}")
        self.state, self.ghosts = actual, []
        self._note_acknowledged()

    def _check_reads(self, name: str, topic: TopicModel) -> None:
        for _ in range(3):
            offset = self.random.randint(topic.start, topic.next)
            limit = self.random.choice([1, 300, 100_000])
            found = [
                event.offset
                for batch in self.log.read(name, offset, limit)
                for event in batch.events()
            ]
            wanted = [o for o in sorted(topic.rows) if o >= offset]
            self._expect(found == wanted[: len(found)], f"{name} from {offset}")
            self._expect(bool(found) == bool(wanted), f"{name} from {offset}: nothing")
        moment = self.log.now_ms() - self.random.randint(0, 60_000)
        at = [o for o, row in topic.rows.items() if row.timestamp_ms >= moment]
        wanted_offset = min(at, default=topic.next)
        found_offset = self.log.offset_at(name, moment)
        self._expect(found_offset == wanted_offset, f"{name} at {moment}")

    def _expect(self, true: bool, message: str) -> None:
        assert true, f"{message}\nafter {self.trace}"


def extract(log: Log, ledger: Ledger) -> State:
    """The whole state of a log, as the model has it."""
    state = State(records=list(ledger.records))
    for name in log.topics():
        topic = log.topic(name)
        model = TopicModel(start=topic.start_offset, next=topic.next_offset)
        offset = topic.start_offset
        while batches := log.read(name, offset, 500):
            for batch in batches:
                for event in batch.events():
                    model.rows[event.offset] = Row(
                        payload=event.payload,
                        timestamp_ms=event.timestamp_ms,
                        key=event.key,
                        id=event.id,
                        priority=event.priority,
                        headers=tuple(event.headers.items()),
                    )
            offset = batches[-1].end_offset
        state.topics[name] = model
    return state


def difference(found: State, expected: State) -> str:
    """What is not as it should be, in a few words."""
    if found.topics.keys() != expected.topics.keys():
        return f"topics {sorted(found.topics)}, not {sorted(expected.topics)}"
    for name, topic in found.topics.items():
        other = expected.topics[name]
        if (topic.start, topic.next) != (other.start, other.next):
            bounds = (topic.start, topic.next), (other.start, other.next)
            return f"{name} is {bounds[0]}, not {bounds[1]}"
        if topic.rows != other.rows:
            missing = sorted(other.rows.keys() - topic.rows.keys())
            extra = sorted(topic.rows.keys() - other.rows.keys())
            return f"{name} lacks {missing}, has {extra} too much, or differs"
    return f"records {found.records}, not {expected.records}"


_WEIGHTED: dict[Callable[[Simulation], None], int] = {
    Simulation.append: 12,
    Simulation.append_to_several: 4,
    Simulation.append_rows: 4,
    Simulation.append_encoded: 3,
    Simulation.record: 4,
    Simulation.sync: 8,
    Simulation.write: 4,
    Simulation.roll: 1,
    Simulation.checkpoint: 2,
    Simulation.truncate: 1,
    Simulation.trim: 1,
    Simulation.delete: 1,
    Simulation.compact: 2,
    Simulation.fail: 1,
    Simulation.check: 2,
    Simulation.lose_index: 1,
    Simulation.lose_checkpoint: 1,
    Simulation.lose_position: 1,
    Simulation.crash: 2,
    Simulation.kill: 1,
    Simulation.close: 1,
}
OPERATIONS = list(_WEIGHTED)
WEIGHTS = list(_WEIGHTED.values())
