"""Queries that write in epochs, whatever fails: each epoch is there once and whole.

A model keeps what each query was told. After every crash and every commit:

- an epoch whose commit was confirmed is in its topics once, with all its events, and
  with those of the tries that were named only;
- of every other epoch there is nothing, unless its commit was under way when the power
  went: then there is all of it, and the ledger says so;
- the ledger names the last epoch that is there, and no answer was untrue.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.epochs import abort, commit, stage
from penstock.broker.options import BrokerOptions
from penstock.broker.sinks import Sinks
from penstock.errors import LimitReached, MissingStage, WriteFailed
from penstock.log import Columns, LogOptions
from penstock.testing.crashdisk import PowerCut
from tests.unit.delivery.scene import Scene

QUERIES = ("q", "r")
TOPICS = ("t", "u")
STEPS = 60
SMALL = LogOptions(
    journal_file_bytes=6_000,
    checkpoint_bytes=4_000,
    write_out_bytes=1_000,
    tail_cache_bytes=1_000,
    group_bytes=2_000,
)
OPTIONS = BrokerOptions(max_staged_bytes=12_000, staged_ttl_s=50.0)

Events = Counter[tuple[str, bytes]]


class Query:
    """What one query believes: Spark with its checkpoint."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        """The one it works on; those before are confirmed."""
        self.parts: dict[int, tuple[int, Events]] = {}
        """Partition -> attempt and events of it, as they were staged last."""
        self.asked: Events | None = None
        """Events of a commit that was carried out and not confirmed yet."""


class Life:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.scene = Scene(OPTIONS, SMALL)
        self.queries = {name: Query(name) for name in QUERIES}
        self.wanted: Events = Counter()
        self.attempts = 0
        self.met: Counter[str] = Counter()

    def step(self) -> None:
        query = self.queries[self.random.choice(QUERIES)]
        draw = self.random.random()
        if draw < 0.45:
            self.stage(query)
        elif draw < 0.65:
            self.ask(query)
        elif draw < 0.70:
            self.abort(query)
        elif draw < 0.73:
            self.scene.broker.publish("t", Columns([b"other" * 40]))
            self.wanted["t", b"other" * 40] += 1
            self.confirm()
        elif draw < 0.83:
            self.confirm()
        elif draw < 0.88:
            self.fail()
        elif draw < 0.91:
            self.wait()
        elif draw < 0.94:
            self.scene.log.checkpoint()
            self._confirmed()
        else:
            self.crash()

    def stage(self, query: Query) -> None:
        """A task of the epoch runs, perhaps not to its end, perhaps once more."""
        random, partition = self.random, self.random.randrange(3)
        self.attempts += 1
        attempt, number, events = self.attempts, 0, Counter[tuple[str, bytes]]()
        sent: list[tuple[str, list[bytes]]] = []
        for _ in range(random.randint(0, 3)):
            topic = random.choice(TOPICS)
            texts = [
                b"%s %d %d" % (query.name.encode(), query.epoch, random.getrandbits(64))
            ]
            texts += [random.randbytes(random.choice([8, 800]))] * random.randint(0, 2)
            for _ in range(random.choice([1, 1, 2])):  # it may be said again
                if not self._put(query, (partition, attempt), number, topic, texts):
                    return
            events.update((topic, text) for text in texts)
            sent.append((topic, texts))
            number += 1
        if sent and random.random() < 0.3:  # it comes late, from a lost connection
            late = random.randrange(number)
            assert self._put(query, (partition, attempt), late, *sent[late])
        if not number and not self._put(query, (partition, attempt), 0, "t", []):
            return
        query.parts[partition] = (attempt, events)

    def _put(
        self,
        query: Query,
        part: tuple[int, int],
        number: int,
        topic: str,
        texts: list[bytes],
    ) -> bool:
        now_s = self.scene.now_s
        try:
            kept = stage(
                *(self.scene.broker, query.name, query.epoch, part, number, topic),
                Columns(texts, int(now_s * 1000)),
                now_s,
            )
        except LimitReached:
            self.met["full"] += 1
            return False
        assert kept, "the epoch is not confirmed, so it must not be said to be stored"
        return True

    def ask(self, query: Query) -> None:
        """Commit the epoch; perhaps for the second time."""
        parts = [(partition, one[0]) for partition, one in query.parts.items()]
        try:
            done = commit(self.scene.broker, query.name, query.epoch, parts)
        except MissingStage:
            self.met["missing"] += 1
            query.parts.clear()
            return
        if done is None:
            assert query.asked is not None, "it was never committed"
            self.met["asked twice"] += 1
            return
        assert query.asked is None, "it was committed before"
        events: Events = Counter()
        for _, one in query.parts.values():
            events += one
        assert done.events == events.total()
        query.asked = events

    def again(self, query: Query) -> None:
        """An epoch that is confirmed is committed once more."""
        if query.epoch:
            assert commit(self.scene.broker, query.name, query.epoch - 1, []) is None

    def abort(self, query: Query) -> None:
        if abort(self.scene.broker, query.name, query.epoch):
            assert not query.asked, "what is committed is not dropped"
            self.met["aborted"] += 1

    def confirm(self) -> None:
        self.scene.commit()
        self._confirmed()

    def _confirmed(self) -> None:
        for query in self.queries.values():
            if query.asked is not None:
                self.wanted += query.asked
                self._advance(query)
                self.met["committed"] += 1
            self.again(query)
        self.check()

    def _advance(self, query: Query) -> None:
        query.epoch += 1
        query.asked = None
        query.parts.clear()

    def fail(self) -> None:
        if self.scene.broker.urgent:
            self.scene.fail_commit()
            self.met["failed"] += 1
            for query in self.queries.values():
                query.asked = None  # they were told; what was staged is there
            self.check()

    def wait(self) -> None:
        self.scene.advance(self.random.choice([10.0, 60.0]))

    def crash(self) -> None:
        """The power goes, perhaps in the middle of a commit."""
        scene = self.scene
        scene.disk.cut_power_in(self.random.randint(0, 6))
        try:
            scene.log.commit()
        except (PowerCut, WriteFailed):
            self.met["cut"] += 1
        else:
            scene.disk.cut_power_in(None)
            self._confirmed()
        scene.log.abandon()
        scene.disk.cut_power_in(None)
        scene.disk = scene.disk.crashed(self.random)
        scene.broker = scene._open()
        for query in self.queries.values():
            last = scene.broker.sinks.last(query.name)
            if last is not None and last.number == query.epoch:
                assert query.asked is not None, "stored what nobody has asked for"
                self.wanted += query.asked
                self._advance(query)
                self.met["stored, not told"] += 1
            query.asked = None
        self.check()

    def check(self) -> None:
        found: Events = Counter()
        log = self.scene.log
        for topic in log.topics():
            offset = 0
            while batches := log.read(topic, offset):
                for batch in batches:
                    found.update((topic, payload) for payload in batch.payloads())
                offset = batches[-1].end_offset
        assert found == self.wanted
        for query in self.queries.values():
            last = self.scene.broker.sinks.last(query.name)
            assert (-1 if last is None else last.number) == query.epoch - 1


def live(seed: int) -> Counter[str]:
    life = Life(seed)
    try:
        for _ in range(STEPS):
            life.step()
        life.confirm()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return life.met


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 32))
def test_every_epoch_is_there_once_and_whole(seed: int) -> None:
    live(seed)


def test_the_lives_meet_everything_that_they_are_about() -> None:
    met: Counter[str] = Counter()
    for seed in range(60):
        met += live(seed)

    for what in (
        *("committed", "asked twice", "missing", "aborted", "failed", "cut", "full"),
        "stored, not told",
    ):
        assert met[what], f"never met: {what}"


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("collect", lambda self: self._steps.close() and []),
        ("taken_back", lambda self: self._steps.take_back()),
    ],
)
def test_the_model_bites(
    monkeypatch: pytest.MonkeyPatch, name: str, instead: object
) -> None:
    monkeypatch.setattr(Sinks, name, instead)

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        for seed in range(40):
            live(seed)
