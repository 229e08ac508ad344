from __future__ import annotations

import pytest

from penstock.desk import flow_samples
from penstock.desk.flow_samples import Sampler, Samples
from penstock.log import Columns
from tests.unit.desk.office import Office


def test_old_names_go_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow_samples, "MAX_NAMES", 2)
    monkeypatch.setattr(flow_samples, "KEPT_EVENTS", 10)
    samples = Samples()
    samples.events = 12
    samples.producers.update({"a": 6, "b": 2, "c": 4})

    samples.age()

    assert samples.events == 6
    assert samples.producers == {"a": 3, "c": 2}


def test_events_that_retention_took_are_not_looked_for(office: Office) -> None:
    office.publish("t", b"a", b"b")
    topic = office.broker.log.topic("t")
    sampler = Sampler(office.broker)
    office.broker.log.trim("t", 1)

    sampler.look([topic])

    assert (sampler.seen, sampler.of(topic).events) == (1, 1)


def test_no_more_than_some_batches_are_remembered(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_samples, "MAX_BATCHES", 1)
    monkeypatch.setattr(flow_samples, "LOOK_PARENTS", 0)
    first = office.broker.publish("a", Columns([b"x"], 1_000))
    office.commit()
    office.broker.publish("b", Columns([b"x"], 2_000))
    office.broker.publish("c", Columns([b"x"], 3_000, parents=[first.generated_id(0)]))
    office.commit()
    topics = [office.broker.log.topic(name) for name in "abc"]
    sampler = Sampler(office.broker)

    sampler.look(topics)

    assert (sampler.parents, sampler.unknown) == (1, 1)
