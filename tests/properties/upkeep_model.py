"""A log at work beside a model: publishers, write-outs, retention, deletion, accidents.

Commits, pieces of work and steps of a round are begun, run and ended one by one, in an
order that is drawn from a seed, as the threads of a server might. Whatever happens,
what was synced is there: the last event of each key, all events without one, in order
and once, as far as retention let them be; and what was deleted is gone.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.clock import ManualClock
from penstock.errors import Backlogged, BeingDeleted
from penstock.log import (
    Columns,
    GroupCommit,
    Log,
    LogOptions,
    StoreWork,
    TopicOptions,
)
from penstock.log.compaction import Rewrite
from penstock.testing import CrashDisk

OPTIONS = LogOptions(
    journal_file_bytes=8192,
    checkpoint_bytes=6000,
    write_out_bytes=1200,
    tail_cache_bytes=600,
    start_check_bytes=0,
)
AGE_S = 100.0
TOPICS = {
    "c1": TopicOptions(compact=True, segment_bytes=1500),
    "c2": TopicOptions(compact=True, segment_bytes=1500),
    "old": TopicOptions(retention_age_s=AGE_S, segment_bytes=1500),
    "short": TopicOptions(retention_bytes=3000, segment_bytes=1500),
    "plain": TopicOptions(segment_bytes=1500),
    # So that many small frames of it are gathered.
    "large": TopicOptions(segment_bytes=3000),
}
# What is compacted, or gathered, needs more than the others.
PUBLISHED = [*["c1", "c2"] * 3, *["large"] * 2, "old", "short", "plain"]


class Pump:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.disk, self.clock = CrashDisk(), ManualClock()
        self.met: Counter[str] = Counter()
        self.commit: GroupCommit | None = None
        self.store: StoreWork | None = None
        self.step: StoreWork | None = None
        self.events: dict[str, dict[int, tuple[bytes | None, float]]] = {}
        """By topic: key and time of each event that is synced."""
        self.ids: dict[tuple[str, int], str] = {}
        """Of all events, by topic and offset."""
        self.waiting: list[tuple[int, str, int, bytes | None, float]] = []
        self.going: dict[str, int] = {}
        self.folders: dict[str, str] = {}
        """Of topics that were deleted."""
        self.log = self._open()

    def run(self, turns: int) -> None:
        for _ in range(turns):
            self.random.choices(ACTS, WEIGHTS)[0](self)
            self.clock.advance(self.random.random())
        self.crash()
        self.check()

    def expect(self, true: bool, *what: object) -> None:
        assert true, (f"seed {self.seed}", *what)

    def _open(self) -> Log:
        log = Log.open(
            "/data",
            OPTIONS,
            files=self.disk,
            clock=self.clock,
            entropy=self.random.randbytes,
        )
        log.catalog.segment_cache._limit = 2  # what was put there is soon forgotten
        return log

    # What clients do

    def publish(self) -> None:
        name = self.random.choice(PUBLISHED)
        if not self.log.has_topic(name):
            self.log.create_topic(name, TOPICS[name])
        count = self.random.choice([1, 1, 2, 6])
        keys = [self.random.choice([None, b"a", b"b", b"c"]) for _ in range(count)]
        size = self.random.choice([10, 100, 300])
        now_s = self.clock.now_s()
        columns = Columns([bytes(size)] * count, int(now_s * 1000), keys=keys)
        try:
            done = self.log.append(name, columns)
        except (BeingDeleted, Backlogged) as error:
            self.met[type(error).__name__] += 1
            return
        finally:
            self._synced(self.log.synced)  # perhaps there was no room left
        self.waiting += [
            (done.group, name, done.base_offset + index, key, now_s)
            for index, key in enumerate(keys)
        ]
        for index in range(count):
            at = name, done.base_offset + index
            self.ids[at] = done.generated_id(index)

    def delete(self) -> None:
        name = self.random.choice(list(TOPICS))
        if self.random.random() < 0.2 and self.log.has_topic(name):
            topic = self.log.topic(name)
            if not topic.going:
                group = self.log.drop_topic(name, lambda: self._gone(name))
                self.going[name] = group
                self.folders[name] = topic.directory

    def _gone(self, name: str) -> None:
        self.met["deleted"] += 1
        self.going.pop(name, None)
        self.events.pop(name, None)
        self.waiting = [one for one in self.waiting if one[1] != name]

    # What the threads do

    def begin_commit(self) -> None:
        if self.commit is None:
            self.commit = self.log.begin_commit(sync=True)

    def end_commit(self) -> None:
        if self.commit is not None:
            commit, self.commit = self.commit, None
            commit.run()
            self._synced(commit.number)
            self.log.end_commit(commit)

    def _synced(self, group: int) -> None:
        for one in [one for one in self.waiting if one[0] <= group]:
            _, name, offset, key, at_s = one
            self.events.setdefault(name, {})[offset] = key, at_s
            self.waiting.remove(one)

    def begin_store(self) -> None:
        if self.store is None:
            self.store = self.log.begin_store()

    def end_store(self) -> None:
        if self.store is not None:
            work, self.store = self.store, None
            self.met[type(work).__name__] += 1
            work.run()
            self.log.end_store(work)

    def maintain(self) -> None:
        self.log.maintain_soon()

    def begin_step(self) -> None:
        if self.step is None:
            self.step = self.log.begin_upkeep()

    def run_step(self) -> None:
        if self.step is not None:
            self.step.run()

    def end_step(self) -> None:
        if self.step is not None:
            work, self.step = self.step, None
            self.met[type(work).__name__] += 1
            work.run()
            if isinstance(work, Rewrite) and work.index is not None:
                self.met["gathered"] += not work.last
            self.log.end_upkeep(work)

    def scrub(self) -> None:
        self.log.scrub(self.random.choice([200, 1000, 5000]))

    def rest(self) -> None:
        """Time in which retention lets go."""
        if self.random.random() < 0.3:
            self.clock.advance(AGE_S / 2)

    # Accidents

    def crash(self) -> None:
        self.met["crash"] += 1
        self.log.abandon()
        if self.random.random() < 0.7:
            self.disk = self.disk.crashed(self.random)
        if self.random.random() < 0.5:
            self._lose_checkpoint()
        self.commit = self.store = self.step = None
        self.log = self._open()
        for name in list(self.going):  # with a group that may be there or not
            if not self.log.has_topic(name):
                self._gone(name)
        self.going.clear()
        self._take_over()
        self.check()
        if self.random.random() < 0.5:  # when little is known of what there is
            self.maintain()
            self.begin_step()

    def _lose_checkpoint(self) -> None:
        """The newest of two; the other one, and the journal since, has to do."""
        found = [path for path in self.disk.paths() if path.endswith(".ckp")]
        if len(found) > 1:
            self.met["checkpoint lost"] += 1
            self.disk.remove(max(found))
            self.disk.sync_directory("/data/checkpoints")

    def _take_over(self) -> None:
        """What was not synced may be there: it counts from now on if it is."""
        there = {name: set(self.offsets(name)) for name in self.log.topics()}
        for _, name, offset, key, at_s in self.waiting:
            if offset in there.get(name, ()):
                self.events.setdefault(name, {})[offset] = key, at_s
        self.waiting = []
        self.log.sync()

    def close(self) -> None:
        if self.random.random() < 0.2:
            for end in (self.end_commit, self.end_store, self.end_step):
                end()
            self.log.close()
            self._synced(1 << 60)
            for name in list(self.going):
                self._gone(name)
            self.met["closed"] += 1
            self.log = self._open()
            self.check()

    # What has to be

    def offsets(self, name: str) -> list[int]:
        found: list[int] = []
        at = self.log.topic(name).start_offset
        while batches := self.log.read(name, at, self.random.choice([1, 500, 10_000])):
            for batch in batches:
                here = batch.offsets()
                wanted = [self.ids[name, offset] for offset in here]
                self.expect(batch.ids() == wanted, name, "ids of", here)
                found += here
            at = batches[-1].header.end_offset
        return found

    def check(self) -> None:
        for name in self.log.topics():
            found = self.offsets(name)
            self.expect(found == sorted(set(found)), name, "in order and once", found)
            missing = self._wanted(name) - set(found)
            self.expect(not missing, name, "has lost", sorted(missing))
        here = set(self.log.topics())
        self.expect(not self.events.keys() - here, "gone", self.events.keys() - here)
        self.expect(not self.log.damages, list(self.log.damages))

    def _wanted(self, name: str) -> set[int]:
        events = self.events.get(name, {})
        start, options = self.log.topic(name).start_offset, TOPICS[name]
        last = {key: offset for offset, (key, _) in sorted(events.items())}
        old_s = self.clock.now_s() - AGE_S
        if options.retention_age_s is not None:
            return {o for o, (_, at_s) in events.items() if o >= start or at_s > old_s}
        if options.retention_bytes is not None:
            return {o for o in events if o >= start}
        if not options.compact:
            return set(events)
        return {o for o, (key, _) in events.items() if key is None or last[key] == o}

    def check_erased(self) -> None:
        """When nothing is under way, no file is left of what was deleted."""
        for _ in range(300):
            self.maintain()
            self.begin_step()
            self.end_step()
            self.begin_commit()
            self.end_commit()
            self.begin_store()
            self.end_store()
            self.clock.advance(0.5)
        self.check()
        live = {self.log.topic(name).directory for name in self.log.topics()}
        left = [
            path
            for path in self.disk.paths()
            if "/topics/" in path and path.rpartition("/")[0] not in live
        ]
        self.expect(not left, "left behind", left)


OFTEN = {
    Pump.publish: 30,
    Pump.delete: 3,
    Pump.begin_commit: 20,
    Pump.end_commit: 20,
    Pump.begin_store: 15,
    Pump.end_store: 15,
    Pump.maintain: 6,
    Pump.begin_step: 25,
    Pump.run_step: 2,
    Pump.end_step: 25,
    Pump.scrub: 3,
    Pump.check: 3,
    Pump.rest: 4,
    Pump.crash: 2,
    Pump.close: 1,
}
ACTS, WEIGHTS = list(OFTEN), list(OFTEN.values())
