from __future__ import annotations

import pytest

from penstock.broker.options import BrokerOptions
from penstock.delivery.amend import EventCopy, amended_frame
from penstock.delivery.error_log import (
    MAX_BATCH_BYTES,
    TOPIC,
    FailedTry,
    decode_failed_try,
    topic_options,
)
from penstock.errors import CorruptRecord
from penstock.log import Columns, LogOptions
from penstock.model.failure import Failure, refused
from penstock.model.policy import Policy
from penstock.server.upkeep import Upkeep
from tests.unit.delivery.scene import SMALL, Scene
from tests.upkeep import keep_up

DAY_S = 86_400.0


def failed_tries(scene: Scene) -> list[FailedTry]:
    """What the error log says."""
    scene.commit()
    if not scene.log.has_topic(TOPIC):
        return []
    topic = scene.log.topic(TOPIC)
    found: list[FailedTry] = []
    offset = topic.start_offset
    while batches := scene.log.read(TOPIC, offset):
        for batch in batches:
            found += map(decode_failed_try, batch.payloads())
        offset = batches[-1].end_offset
    return found


def test_refusal_is_written_with_everything_about_it() -> None:
    scene = Scene()
    scene.broker.publish("t", Columns([b"x"], ids=["abc"]))
    scene.commit()
    consumer = scene.subscribe(Policy(tries=2))
    scene.take(consumer)
    failure = Failure(0, 0, "ValueError", "bad", "Traceback …", 0.25)

    scene.broker.refuse(consumer, 0, failure, scene.now_s)

    assert failed_tries(scene) == [
        FailedTry(
            subscriber="ann",
            topic="t",
            offset=0,
            id="abc",
            tries=1,
            kind="ValueError",
            message="bad",
            traceback="Traceback …",
            duration_s=0.25,
            at_ms=1_000_000,
        )
    ]


def test_every_kind_of_failure_is_written() -> None:
    scene = Scene()
    scene.publish(0, 0, 0, 0)
    policy = Policy(tries=9, window=2, ack_timeout_s=5.0)
    consumer = scene.subscribe(policy)
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.advance(6)
    scene.take(consumer)
    scene.broker.detach(consumer)
    scene.take(scene.subscribe(policy))
    scene.commit()
    scene.restart()

    found = [(one.offset, one.tries, one.kind) for one in failed_tries(scene)]

    assert found == [
        (0, 1, "Refused"),
        (1, 1, "Timeout"),
        (0, 2, "Lost"),
        (1, 2, "Lost"),
        (0, 3, "Lost"),
        (1, 3, "Lost"),
    ]


def test_failures_of_one_moment_are_one_batch() -> None:
    scene = Scene()
    scene.publish(*[0] * 50)
    scene.take(scene.subscribe(Policy(window=50, ack_timeout_s=5.0)))

    scene.advance(6)
    scene.commit()

    (batch,) = scene.log.read(TOPIC, 0)
    assert len(batch) == 50


def test_very_many_failures_of_one_moment_are_several_appends() -> None:
    scene = Scene()
    scene.publish(*[0] * 200)
    consumer = scene.subscribe(Policy(window=200, tries=9))
    one = consumer.subscription
    scene.take(consumer)
    text = "x" * (MAX_BATCH_BYTES // 64)
    failures = []
    for offset in range(200):
        failed = one.refuse(offset, Failure(0, 0, "E", "m", text), scene.now_s)
        assert failed is not None
        failures.append(failed)
    appends: list[int] = []
    append = scene.log.append

    def watched(name: str, events: Columns) -> object:
        appends.append(len(events))
        return append(name, events)

    scene.log.append = watched  # type: ignore[method-assign, assignment]
    scene.broker.failure_handling.carry_out(one, failures, scene.now_s)

    assert len(appends) > 1
    assert sum(appends) == 200


def test_id_of_an_event_that_is_gone_is_not_known() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(Policy(window=2))
    scene.take(consumer)
    scene.log.trim("t", 1)

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    assert [one.id for one in failed_tries(scene)] == [None]


def test_amended_event_has_its_id_even_if_it_is_gone() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(start="latest")
    copy = EventCopy(id="abc", timestamp_ms=0)
    frame = amended_frame(copy, "t", 0, b"better")
    consumer.subscription.add_back(0, 0, frame)
    scene.log.trim("t", 1)
    scene.take(consumer)

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    assert [one.id for one in failed_tries(scene)] == ["abc"]


def test_log_that_refuses_it_is_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(log=SMALL)
    scene.publish(0)
    consumer = scene.subscribe()
    scene.refuse_appends()
    for seconds in (0, 30, 31, 1):
        scene.clock.advance(seconds)
        scene.take(consumer)
        assert scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    actions = [vars(record).get("action") for record in caplog.records]
    assert actions.count("error_log_failed") == 2
    scene.disk.fail(None)
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    assert [one.tries for one in failed_tries(scene)] == [5]


def test_room_of_a_group_that_waits_is_left_to_those_who_publish() -> None:
    scene = Scene(log=LogOptions(group_bytes=2000))
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.broker.publish("t", Columns([b"x"]))
    commit = scene.log.begin_commit()
    assert commit is not None
    scene.broker.publish("t", Columns([bytes(2500)]))

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    scene.broker.publish("t", Columns([bytes(1000)]))
    commit.run()
    scene.log.end_commit(commit)
    assert failed_tries(scene) == []


def test_error_log_asks_for_no_sync() -> None:
    assert topic_options(DAY_S, 1 << 20).durability == "os"


@pytest.mark.slow
def test_error_log_is_bounded_by_its_size() -> None:
    options = BrokerOptions(error_retention_bytes=1 << 20)
    scene = Scene(options, LogOptions(write_out_bytes=1 << 16))
    scene.publish(0)
    consumer = scene.subscribe()
    upkeep, sizes = Upkeep(scene.log), []
    long = Failure(0, 0, "E", "m", "t" * 16_000)
    for number in range(300):
        scene.take(consumer)
        scene.broker.refuse(consumer, 0, long, scene.now_s)
        scene.commit()
        scene.log.store()
        if number % 10 == 0:
            scene.clock.advance(31)
            upkeep.step(scene.now_s, idle=True)
            keep_up(scene.log)
            topic = scene.log.topic(TOPIC)
            sizes.append(sum(one.length for one in topic.segments))

    found = failed_tries(scene)
    assert found[-1].tries == 300
    assert 20 < len(found) < 100
    assert max(sizes) < 2 << 20


def test_old_tries_leave_the_error_log() -> None:
    scene = Scene(BrokerOptions(error_retention_age_s=8 * DAY_S))
    scene.publish(0)
    consumer = scene.subscribe()
    upkeep = Upkeep(scene.log)
    for _ in range(30):
        scene.take(consumer)
        scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
        scene.commit()
        upkeep.step(scene.now_s, idle=True)
        keep_up(scene.log)
        scene.clock.advance(DAY_S)

    upkeep.step(scene.now_s, idle=True)
    keep_up(scene.log)

    assert 6 <= len(failed_tries(scene)) <= 10


def test_other_bounds_count_from_the_next_start() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.commit()
    scene._options = BrokerOptions(error_retention_age_s=5.0)

    scene.restart()
    scene.commit()

    options = scene.log.topic(TOPIC).options
    assert (options.retention_age_s, options.segment_age_s) == (5.0, 0.625)
    assert len(failed_tries(scene)) == 1


def test_failure_of_an_event_that_cannot_be_read_is_written_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)

    def damaged(offset: int) -> None:
        raise CorruptRecord("f", 0, 9, "wrong checksum")

    monkeypatch.setattr(consumer.subscription.cursor, "find", damaged)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    assert [(one.offset, one.id) for one in failed_tries(scene)] == [(0, None)]
