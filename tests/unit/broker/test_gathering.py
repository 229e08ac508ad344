"""Publishes that are gathered mean what they mean one by one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.broker import Broker
from penstock.broker.gathering import (
    EVENT_BYTES,
    GATHERED_BYTES,
    MAX_BYTES,
    MAX_EVENTS,
    SmallPublish,
    is_small,
)
from penstock.errors import (
    InvalidName,
    InvalidPayload,
    PenstockError,
    WriteFailed,
)
from penstock.log import Columns, Log, LogOptions
from penstock.model.policy import Policy
from tests.unit.log.faults import FaultyFiles, payloads


class Publisher:
    """Remembers what it was told, in order."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.told: list[tuple[Any, ...]] = []

    def add(
        self, topic: str, *payloads: bytes, said: str = "", noted: bool = False
    ) -> None:
        self.broker.gathering.add(
            self.publish(topic, *payloads, said=said, noted=noted)
        )

    def publish(
        self,
        topic: str,
        *payloads: bytes,
        said: str = "",
        noted: bool = False,
        relaxed: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> SmallPublish:
        return SmallPublish(
            self, said, topic, payloads, 5, "p", headers or {}, relaxed, noted
        )

    def in_group(self, said: Any, events: Sequence[int]) -> None:
        self.told.append(("in", said, self.broker.group, list(events)))

    def stored(
        self, said: Any, group: int, refused: Mapping[int, PenstockError]
    ) -> None:
        kinds = {number: type(error) for number, error in refused.items()}
        self.told.append(("stored", said, group, kinds))

    def dropped(self, said: Any) -> None:
        self.told.append(("dropped", said))


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def broker(tmp_path: Path, disk: FaultyFiles) -> Iterator[Broker]:
    options = LogOptions(max_event_bytes=1000, group_bytes=20_000)
    broker = Broker(partial(Log.open, tmp_path, options, files=disk))
    for name in ("a", "b", "number"):
        broker.create_topic(name)
    broker.registry.register(
        "number", {"type": "integer"}, type_="N", at_ms=0, by="anna"
    )
    broker.log.commit()
    yield broker
    broker.log.abandon()


@pytest.fixture
def anna(broker: Broker) -> Publisher:
    return Publisher(broker)


def test_what_was_gathered_is_in_the_group_that_closes(
    broker: Broker, anna: Publisher
) -> None:
    bert, group = Publisher(broker), broker.group

    anna.add("a", b"1", b"2", said="x")
    bert.add("b", b"3", said="y")
    anna.add("a", b"4", said="z")
    assert broker.dirty
    assert anna.told == []
    broker.log.commit()

    assert anna.told == [("stored", "x", group, {}), ("stored", "z", group, {})]
    assert bert.told == [("stored", "y", group, {})]
    assert payloads(broker.log, "a") == [b"1", b"2", b"4"]
    assert payloads(broker.log, "b") == [b"3"]
    assert broker.log.outcome(group) == "synced"
    assert not broker.gathering


def test_all_of_one_group_are_one_append(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    appends: list[int] = []
    rows = broker.log.append_rows

    def counted(names: Sequence[str], *rest: Any, **how: Any) -> Any:
        appends.append(len(names))
        return rows(names, *rest, **how)

    monkeypatch.setattr(broker.log, "append_rows", counted)

    for number in range(100):
        Publisher(broker).add("ab"[number % 2], b"%d" % number)
    broker.log.commit()

    assert appends == [100]


def test_events_keep_what_was_said_of_them(broker: Broker, anna: Publisher) -> None:
    broker.gathering.add(anna.publish("a", b"1", headers={"k": "v"}))
    broker.gathering.add(anna.publish("b", b"2"))
    broker.log.commit()

    (one,), (other,) = broker.log.read("a", 0), broker.log.read("b", 0)
    assert (one.producers(), one.headers()) == (["p"], [{"k": "v"}])
    assert (other.producers(), other.headers()) == (["p"], [{}])


def test_it_is_synced_if_any_of_them_has_to_be(broker: Broker, anna: Publisher) -> None:
    group = broker.group
    broker.gathering.add(anna.publish("a", b"1", relaxed=True))
    broker.log.commit()
    assert broker.log.outcome(group) == "written"

    group = broker.group
    broker.gathering.add(anna.publish("a", b"2", relaxed=True))
    broker.gathering.add(anna.publish("b", b"3"))
    broker.log.commit()
    assert broker.log.outcome(group) == "synced"


def test_who_wants_a_note_gets_it_while_the_group_is_open(
    broker: Broker, anna: Publisher
) -> None:
    group = broker.group
    anna.add("a", b"1", said="plain")
    anna.add("b", b"2", b"3", said="noted", noted=True)

    broker.gathering.store()

    assert broker.group == group
    assert anna.told == [
        ("in", "noted", group, [0, 1]),
        ("stored", "plain", group, {}),
        ("stored", "noted", group, {}),
    ]


@pytest.mark.parametrize("others", [True, False])
def test_what_is_refused_is_told_to_whom_it_is_about(
    broker: Broker, anna: Publisher, *, others: bool
) -> None:
    bert, group = Publisher(broker), broker.group
    if others:
        anna.add("a", b"1", said="good")
    bert.add("number", b"1", b"x", b"2", said="mixed", noted=True)
    if others:
        bert.add("a/+\0", b"2", said="bad", noted=True)

    broker.log.commit()

    mixed = ("stored", "mixed", group, {1: InvalidPayload})
    bad = ("stored", "bad", group, {0: InvalidName})
    assert anna.told == [("stored", "good", group, {})] * others
    assert [one for one in bert.told if one[0] == "stored"] == [mixed, *[bad] * others]
    noted = [number for one in bert.told if one[0] == "in" for number in one[3]]
    assert noted == [0, 2]
    assert payloads(broker.log, "number") == [b"1", b"2"]


def test_a_topic_that_goes_takes_none(broker: Broker, anna: Publisher) -> None:
    anna.add("a", b"1", said="gone")
    broker.delete_topic("a")

    broker.log.commit()

    (told,) = anna.told
    assert list(told[3]) == [0]


def test_a_subscription_that_begins_now_begins_behind_it(
    broker: Broker, anna: Publisher
) -> None:
    anna.add("a", b"old")

    subscription = broker.subscribe("carl", "a", Policy(), "latest")

    assert not broker.gathering
    broker.log.commit()
    before = subscription.lag()
    anna.add("a", b"new")
    broker.log.commit()
    assert subscription.lag() == before + 1


def test_much_does_not_wait(tmp_path: Path) -> None:
    with Broker(partial(Log.open, tmp_path)) as broker:
        anna = Publisher(broker)
        broker.create_topic("a")
        payload = bytes(MAX_BYTES)

        fit = GATHERED_BYTES // (MAX_BYTES + EVENT_BYTES + 1)
        for _ in range(fit):
            anna.add("a", payload)
        assert anna.told == []
        anna.add("a", payload)

        assert len(anna.told) == fit + 1
        assert broker.log.pending_bytes > fit * MAX_BYTES


@pytest.mark.parametrize("headers", [{}, {"name": "v" * 1000}])
def test_what_has_no_payload_does_not_wait_for_ever(
    broker: Broker, anna: Publisher, headers: dict[str, str]
) -> None:
    publish = anna.publish("a", b"", headers=headers)
    most = GATHERED_BYTES // (1000 if headers else EVENT_BYTES)

    for _ in range(most + 1):
        broker.gathering.add(publish)

    assert len(anna.told) > 0


def test_a_group_that_is_full_is_stored_first(broker: Broker, anna: Publisher) -> None:
    broker.publish("b", events(19_000))
    full = broker.group
    anna.add("a", bytes(900), bytes(900), said="next")

    broker.log.commit()

    assert broker.log.outcome(full) == "synced"
    assert anna.told == [("stored", "next", full + 1, {})]
    assert broker.log.topic("a").end_offset == 2


def test_if_the_commit_fails_the_group_says_so(
    broker: Broker, anna: Publisher, disk: FaultyFiles
) -> None:
    anna.add("a", b"1", said="x")
    disk.fail("write", "journal")

    with pytest.raises(WriteFailed):
        broker.log.commit()

    ((_, _, group, refused),) = anna.told
    assert refused == {}
    assert broker.log.outcome(group) == "failed"
    assert broker.log.topic("a").end_offset == 0


def test_a_group_that_fails_takes_along_what_was_gathered_behind_it(
    broker: Broker, anna: Publisher, disk: FaultyFiles
) -> None:
    """Or the last of a publisher would be in front when it repeats the first."""
    anna.add("a", b"1", said="first", noted=True)
    commit = broker.log.begin_commit()
    assert commit is not None
    anna.add("a", b"2", said="second", noted=True)
    disk.fail("write", "journal")
    commit.run()
    broker.log.end_commit(commit)

    broker.log.commit()

    failed = commit.number
    assert anna.told[-2:] == [
        ("stored", "first", failed, {}),
        ("stored", "second", failed, {}),
    ]
    assert ("in", "second") not in [told[:2] for told in anna.told]
    assert broker.log.outcome(failed) == "failed"
    assert broker.log.topic("a").end_offset == 0


def test_a_mistake_of_ours_costs_the_publishers_and_not_the_group(
    broker: Broker,
    anna: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker.publish("b", events(10))

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("as planned")

    monkeypatch.setattr(broker, "publish", fail)
    anna.add("a", b"1", said="x")
    with caplog.at_level(logging.ERROR):
        broker.log.commit()

    assert anna.told == [("dropped", "x")]
    assert "1 publishes were not stored" in caplog.text
    assert broker.log.topic("b").end_offset == 1


def test_what_is_small() -> None:
    assert is_small([b"x"] * MAX_EVENTS, {})
    assert not is_small([b"x"] * (MAX_EVENTS + 1), {})
    assert is_small([bytes(MAX_BYTES)], {})
    assert not is_small([bytes(MAX_BYTES), b"x"], {})
    assert is_small([b""], {"n": "v" * (MAX_BYTES - 1)})
    assert not is_small([b""] * 2, {"n": "v" * (MAX_BYTES - 1)})


def events(size: int) -> Columns:
    return Columns([bytes(min(size, 1000))] * max(1, size // 1000), 0)
