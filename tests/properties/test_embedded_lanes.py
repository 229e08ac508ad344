"""Lanes under random schedules: in order, one at a time, everything once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from penstock.embedded.lanes import Lanes


@dataclass
class Job:
    offset: int
    lane: Hashable
    tries: int = 1


@dataclass
class Model:
    """A subscription that hands events to lanes, as one that keeps order does.

    Those that wait for their next try come in front of fresh ones, and nothing comes
    of a lane behind one that has not come again.
    """

    keys: list[str]
    lanes: Lanes[Job] = field(default_factory=lambda: Lanes(ordered=True))
    fresh: int = 0
    back: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    running: dict[int, Job] = field(default_factory=dict)
    finished: list[int] = field(default_factory=list)

    def job(self, offset: int) -> Job:
        return Job(offset, self.keys[offset])

    def arrive(self, count: int) -> None:
        offsets = sorted(self.back)[:count]
        self.back = sorted(self.back)[count:]
        end = min(self.fresh + count - len(offsets), len(self.keys))
        offsets += range(self.fresh, end)
        self.fresh = max(end, self.fresh)
        self.lanes.add([self.job(offset) for offset in offsets])

    def begin(self) -> None:
        if self.lanes.ready:
            job = self.lanes.ready.popleft()
            assert all(one.lane != job.lane for one in self.running.values())
            self.running[job.offset] = job

    def end(self, which: int, *, good: bool) -> None:
        if not self.running:
            return
        job = self.running.pop(sorted(self.running)[which % len(self.running)])
        if good:
            self.finished.append(job.offset)
            self.lanes.finish(job)
        else:
            self.later.append(job.offset)

    def move_over(self) -> None:
        """Those that wait for a try are settled by somebody else."""
        for offset in self.later:
            assert self.lanes.blocked()[self.keys[offset]] == offset
            self.lanes.unblock(self.keys[offset])
            self.finished.append(offset)
        self.later = []

    def due(self) -> None:
        self.back += self.later
        self.later = []

    @property
    def at_hand(self) -> int:
        return len(self.lanes.ready) + self.lanes.held


steps = st.one_of(
    st.tuples(st.just("arrive"), st.integers(1, 5)),
    st.tuples(st.just("begin"), st.just(0)),
    st.tuples(st.just("good"), st.integers(0, 9)),
    st.tuples(st.just("bad"), st.integers(0, 9)),
    st.tuples(st.just("due"), st.just(0)),
    st.tuples(st.just("move"), st.just(0)),
    st.tuples(st.just("drain"), st.just(0)),
)


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(steps, max_size=80))
def test_every_lane_is_in_order_and_ends(
    keys: list[str], schedule: list[tuple[str, int]]
) -> None:
    model = Model(keys)

    for what, number in schedule:
        match what:
            case "arrive":
                model.arrive(number)
            case "begin":
                model.begin()
            case "good" | "bad":
                model.end(number, good=what == "good")
            case "due":
                model.due()
            case "move":
                model.move_over()
            case "drain":  # they go back, and come again
                model.back += [job.offset for job in model.lanes.drain()]
                assert model.at_hand == 0
    for _ in range(3 * len(keys) + 3):
        model.due()
        model.arrive(len(keys))
        model.begin()
        model.end(0, good=True)

    assert sorted(model.finished) == list(range(len(keys)))
    assert model.at_hand == 0
    assert not model.lanes.blocked()
    by_lane: dict[str, list[int]] = defaultdict(list)
    for offset in model.finished:
        by_lane[keys[offset]].append(offset)
    for offsets in by_lane.values():
        assert offsets == sorted(offsets)


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_without_order_everything_is_ready_as_it_came(keys: list[str]) -> None:
    lanes: Lanes[Job] = Lanes(ordered=False)
    jobs = [Job(offset, key) for offset, key in enumerate(keys)]

    lanes.add(jobs)

    assert list(lanes.ready) == jobs
    assert (lanes.held, lanes.blocked()) == (0, {})
