"""Metadata of topics, against a model: commits, failures, crashes, deleted topics."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.topic_metadata import EMPTY, TopicMetadata
from penstock.broker.topic_registry import TopicRegistry
from tests.unit.delivery.scene import Scene

TOPICS = ("t", "u", "v")
STEPS = 80
SAID: dict[str, Any] = {"at_ms": 5, "by": "ann"}


class Life:
    """A broker, and what its metadata are to be: now, and after a crash."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.scene = Scene()
        self.topics = {"t"}
        self.now: dict[str, TopicMetadata] = {}
        self.stored: tuple[set[str], dict[str, TopicMetadata]] = ({"t"}, {})

    def step(self) -> None:
        draw = self.random.random()
        if draw < 0.6:
            self._change()
        elif draw < 0.75:
            self.scene.commit()
            self._keep()
        elif draw < 0.82:
            self._fail()
        elif draw < 0.9:
            self._delete()
        elif draw < 0.95:
            self.scene.log.checkpoint()
            self._keep()
        else:
            self._crash()
        self.check()

    def check(self) -> None:
        registry = self.scene.broker.registry
        for topic in TOPICS:
            assert registry[topic] == self.now.get(topic, EMPTY), topic
            has_schema = registry[topic].latest is not None
            assert (topic in registry.gates) == has_schema, topic

    def _change(self) -> None:
        random, registry = self.random, self.scene.broker.registry
        topic = random.choice(TOPICS)
        if not self.scene.log.has_topic(topic):
            self.scene.broker.create_topic(topic)
            self.topics.add(topic)
        comments = registry[topic].comments
        text = str(random.random())
        what = random.randrange(5)
        if what == 0:
            registry.register(topic, {"title": text}, type_="", **SAID)
        elif what == 1:
            registry.comment(topic, text, **SAID)
        elif what == 2 and comments:
            registry.uncomment(topic, random.choice(comments).number)
        elif what == 3:
            registry.describe(topic, random.choice(["", text]), **SAID)
        else:
            registry.set_mode(topic, random.choice(["none", "full"]))
        self.now[topic] = registry[topic]

    def _keep(self) -> None:
        self.stored = (set(self.topics), dict(self.now))

    def _back(self) -> None:
        self.topics, self.now = set(self.stored[0]), dict(self.stored[1])

    def _fail(self) -> None:
        if self.scene.broker.urgent:
            self.scene.fail_commit()
            self._back()

    def _delete(self) -> None:
        if self.topics:
            topic = self.random.choice(sorted(self.topics))
            self.scene.broker.delete_topic(topic)
            self.scene.commit()
            self.topics.discard(topic)
            self.now.pop(topic, None)
            self._keep()

    def _crash(self) -> None:
        self.scene.log.abandon()
        self.scene.disk = self.scene.disk.crashed(self.random)
        self.scene.broker = self.scene._open()
        self._back()


def live(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()


@given(seed=st.integers(0, 1 << 32))
def test_metadata_is_as_the_model_has_it(seed: int) -> None:
    live(seed)


def test_the_model_bites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TopicRegistry, "forget", lambda self, topic: None)

    with pytest.raises(AssertionError):
        for seed in range(20):
            live(seed)
