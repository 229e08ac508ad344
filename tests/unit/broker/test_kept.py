"""A kind of kept state that the broker has never heard of: a class and a line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.delivery.kept import Kept, KeptKinds
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.errors import WriteFailed
from penstock.gateway.maze.state import MazeState
from penstock.log import Batch, BrokerLog, Columns, Log, Record
from penstock.testing import CrashDisk

RECORDS = Path(__file__).parents[3] / "docs" / "formats" / "records.md"


class Stars(Kept):
    """Topics that were given a star."""

    kind = 999

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.known: list[str] = []
        self.sizes: list[tuple[str, int]] = []
        self.confirmations = 0
        self._given: Unconfirmed[str] = Unconfirmed()

    def give(self, topic: str) -> None:
        self.topics.add(topic)
        self._given.add(topic)

    @property
    def urgent(self) -> bool:
        return bool(self._given)

    def opened(self, log: BrokerLog) -> None:
        self.known = log.topics()

    def committed(self, topic: str, batch: Batch) -> None:
        self.sizes.append((topic, len(batch.payloads())))

    def confirmed(self) -> None:
        self.confirmations += len(self._given.confirm())

    def forget(self, topic: str) -> None:
        self.topics.discard(topic)

    def drop_orphans(self, topics: Collection[str]) -> None:
        self.topics &= set(topics)

    def collect(self) -> list[tuple[bytes, bool]]:
        return [(topic.encode(), True) for topic in self._given.close()]

    def taken_back(self) -> None:
        self.topics.difference_update(self._given.take_back())

    def replay(self, record: Record) -> None:
        self.topics.add(record.data.decode())

    def snapshot(self) -> bytes:
        return "\n".join(sorted(self.topics)).encode()

    def restore(self, snapshot: bytes) -> None:
        self.topics = set(snapshot.decode().split())


class Plain(Kept):
    """Keeps nothing, and says nothing about anything."""

    kind = 998

    def snapshot(self) -> bytes:
        return b""

    def restore(self, snapshot: bytes) -> None:
        assert snapshot == b""


class Scene:
    def __init__(self) -> None:
        self.disk = CrashDisk()
        self.open()

    def open(self) -> None:
        self.stars = Stars()
        open_log = partial(Log.open, "/data", files=self.disk, entropy=bytes)
        self.broker = Broker(open_log, kept=[self.stars, Plain()])

    def publish(self, topic: str) -> None:
        self.broker.publish(topic, Columns([b"x", b"y"], 1))

    def commit(self) -> None:
        self.broker.log.sync()

    def fail_commit(self) -> None:
        self.disk.fail(lambda what, path: OSError(28, "simulated"))
        with pytest.raises(WriteFailed):
            self.broker.log.sync()
        self.disk.fail(None)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    scene.publish("t")
    scene.commit()
    yield scene
    scene.broker.log.abandon()


def test_a_change_is_urgent_until_it_is_collected(scene: Scene) -> None:
    assert not scene.broker.urgent

    scene.stars.give("t")
    waiting = scene.broker.urgent, scene.broker.dirty, scene.broker.promised
    scene.commit()

    assert waiting == (True, True, scene.broker.group - 1)
    assert not scene.broker.urgent
    assert scene.stars.confirmations == 1


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_was_committed_is_there_after_a_crash(
    scene: Scene, *, checkpoint: bool
) -> None:
    scene.stars.give("t")
    scene.commit()
    if checkpoint:
        scene.broker.log.checkpoint()

    scene.broker.log.abandon()
    scene.open()

    assert scene.stars.topics == {"t"}
    assert scene.stars.known == ["t"]


def test_a_failed_commit_is_undone(scene: Scene) -> None:
    scene.stars.give("t")

    scene.fail_commit()

    assert scene.stars.topics == set()
    assert scene.stars.confirmations == 0


def test_it_is_told_of_events_that_are_committed(scene: Scene) -> None:
    scene.publish("u")
    before = list(scene.stars.sizes)
    scene.commit()

    assert (before, scene.stars.sizes) == ([("t", 2)], [("t", 2), ("u", 2)])


def test_it_is_told_of_a_topic_that_was_deleted(scene: Scene) -> None:
    scene.stars.give("t")
    scene.broker.delete_topic("t")

    scene.commit()

    assert scene.stars.topics == set()


def test_it_is_told_of_topics_that_a_failed_commit_took_back(scene: Scene) -> None:
    scene.publish("u")
    scene.stars.topics = {"t", "u"}

    scene.fail_commit()

    assert scene.stars.topics == {"t"}


def test_what_has_no_records_is_undone_the_last_first() -> None:
    kept, told = KeptKinds(), list[str]()
    for name in ("one", "other"):
        kept.follow(
            lambda group, name=name: told.append(f"{name} {group}"),  # type: ignore[misc]
            partial(told.append, name),
        )

    kept.confirmed(7)
    kept.taken_back()

    assert told == ["one 7", "other 7", "other", "one"]


def test_a_number_is_not_given_twice() -> None:
    kept = KeptKinds()
    kept.keep(Stars())

    with pytest.raises(ValueError, match="kind 999"):
        kept.keep(Stars())


def test_every_kind_is_documented(scene: Scene) -> None:
    rows = re.findall(r"(?m)^\| (2\d\d) \|", RECORDS.read_text())

    kinds = set(scene.broker._kept.kinds) - {Stars.kind, Plain.kind}

    assert kinds | {MazeState.kind} == set(map(int, rows))
