from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from penstock.broker.options import BrokerOptions
from penstock.delivery.amend import EventCopy, amended_frame
from penstock.delivery.letters import (
    TOPIC,
    DeadLetter,
    Letters,
    buried,
    decode_letter,
    keep,
    kept,
    stale,
)
from penstock.delivery.pending import PendingMessage
from penstock.errors import DiskFull
from penstock.log import Columns, LogOptions, TopicOptions
from penstock.model.failure import Failure, refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import RESTARTS, SMALL, Scene
from tests.upkeep import keep_up

RAW = DeadLetter(gateway="line", reason="nonsense", at_ms=5, raw=b"\xff")


# Writing them


def test_letter_of_an_event_knows_everything_about_it() -> None:
    scene = Scene()
    scene.broker.publish("t", Columns([b"x"], ids=["abc"]))
    scene.commit()
    consumer = scene.subscribe(Policy(tries=1))
    scene.take(consumer)
    failed = consumer.subscription.refuse(0, refused("no"), scene.now_s)
    assert failed is not None

    letter = buried(consumer.subscription, failed, 7.5)

    assert letter == DeadLetter(
        gateway="delivery",
        reason="no",
        at_ms=7500,
        topic="t",
        offset=0,
        id="abc",
        subscriber="ann",
        tries=1,
        errors=["no"],
        kind="Refused",
        failures=[Failure(1_000_000, 1, "Refused", "no")],
        event=EventCopy(id="abc", timestamp_ms=0, payload=b"x"),
    )
    assert decode_letter(letter.encode()) == letter
    scene.log.trim("t", 1)
    assert buried(consumer.subscription, failed, 7.5).id is None


def test_letter_of_an_event_as_large_as_one_may_be_has_a_copy_of_it() -> None:
    scene = Scene(log=replace(SMALL, max_event_bytes=10_000))
    payload = bytes(9_900)
    scene.broker.publish("t", Columns([payload], ids=["abc"]))
    scene.commit()
    consumer = scene.subscribe(Policy(tries=1))
    scene.take(consumer)

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.commit()
    scene.restart()

    (batch,) = scene.log.read(TOPIC, 0)
    letter = decode_letter(batch.payloads()[0])
    assert len(letter.encode()) > 10_000
    assert letter.event is not None
    assert letter.event.payload == payload


# How long they are kept

SMALL_BOUND = BrokerOptions(dead_letter_retention_bytes=1 << 20)


def test_the_oldest_letters_go_when_there_is_no_room_for_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(SMALL_BOUND, LogOptions(write_out_bytes=1 << 16))
    sizes = []
    for number in range(100):
        raw = b"%d" % number + bytes(30_000)
        scene.broker.dead_letter(gateway="line", reason="nonsense", raw=raw)
        scene.commit()
        if number % 10 == 9:
            scene.log.maintain_soon()
            keep_up(scene.log)
            scene.broker.tick(scene.now_s)
            sizes.append(scene.log.topic(TOPIC).bytes)

    start = scene.log.topic(TOPIC).start_offset
    assert 0 < start < 90
    assert scene.log.topic(TOPIC).end_offset == 100
    assert max(sizes) < 3 << 19
    lost = [one for one in caplog.records if one.levelname == "WARNING"]
    assert sum(vars(one)["count"] for one in lost) == start


def test_letters_have_no_retention_of_other_topics() -> None:
    scene = Scene(BrokerOptions(dead_letter_retention_age_s=1600.0))
    scene.broker.topic_options = TopicOptions(retention_age_s=1.0)
    scene.broker.dead_letter(gateway="line", reason="nonsense", raw=b"x")
    scene.commit()

    starts = []
    for _ in range(2):
        scene.clock.advance(1500)
        scene.log.maintain_soon()
        keep_up(scene.log)
        starts.append(scene.log.topic(TOPIC).start_offset)

    assert starts == [0, 1]


def test_letters_of_an_earlier_version_get_a_bound_with_the_next_start() -> None:
    scene = Scene(SMALL_BOUND)
    scene.log.create_topic(TOPIC, TopicOptions(durability="os"))
    scene.log.create_topic("lines", TopicOptions())
    scene.log.create_topic("mine", TopicOptions(retention_bytes=7))
    scene.commit()

    scene.restart()
    scene.broker.bound("lines")
    scene.broker.bound("mine")
    scene.broker.bound("lines")
    scene.commit()

    found = {name: scene.log.topic(name).options for name in scene.log.topics()}
    assert found[TOPIC].retention_bytes == found["lines"].retention_bytes == 1 << 20
    assert found[TOPIC].durability == "os"
    assert found["mine"].retention_bytes == 7
    assert found["t"].retention_bytes is None


def test_letter_of_an_amended_event_holds_what_was_delivered() -> None:
    scene = Scene()
    scene.broker.publish("t", Columns([b"x"], ids=["abc"], keys=[b"k"]))
    scene.commit()
    consumer = scene.subscribe(Policy(tries=1), "latest")
    copy = EventCopy(id="abc", timestamp_ms=5, key=b"k", payload=b"x")
    consumer.subscription.add_back(0, 0, amended_frame(copy, "t", 0, b"better"))
    scene.take(consumer)

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    (letter,) = map(decode_letter, scene.letters())
    assert letter.amended
    assert letter.event == EventCopy(
        id="abc", timestamp_ms=5, key=b"k", payload=b"better"
    )


def test_letter_knows_every_failed_try() -> None:
    failure = Failure(5, 1, "ValueError", "bad", "Traceback …")
    letter = DeadLetter(
        gateway="delivery", reason="bad", at_ms=5, errors=["bad"], failures=[failure]
    )

    assert letter.tries_failed() == [failure]
    assert RAW.tries_failed() == []


def test_letter_of_an_older_version_has_its_lines_as_failures() -> None:
    old = b"""{"gateway":"delivery","reason":"two","at_ms":5,"topic":"t","offset":0,
        "subscriber":"ann","tries":3,"errors":["one","two"]}"""

    letter = decode_letter(old)

    assert letter.tries_failed() == [Failure(5, 2, "", "one"), Failure(5, 3, "", "two")]
    assert (letter.kind, letter.event, letter.amended) == (None, None, False)


def test_letter_of_a_message_without_pubrel_holds_the_message() -> None:
    letter = stale(PendingMessage(3, "t", b"{}", 5), 7.5)

    assert (letter.raw, letter.at_ms, letter.gateway) == (b"{}", 7500, "json")


def test_letter_is_an_event_of_a_topic_of_its_own() -> None:
    scene = Scene()

    keep(scene.log, RAW, TopicOptions())
    assert kept(scene.log, RAW, TopicOptions())

    assert [decode_letter(one) for one in scene.letters()] == [RAW, RAW]
    assert scene.log.topics() == [TOPIC, "t"]


def test_letter_that_the_log_refuses_is_not_kept() -> None:
    scene = Scene(log=SMALL)
    scene.refuse_appends()

    assert not kept(scene.log, RAW, TopicOptions())
    with pytest.raises(DiskFull):
        keep(scene.log, RAW, TopicOptions())


# Closing them


def test_letter_is_open_until_it_is_closed() -> None:
    letters = Letters()

    letters.close([1, 3], "dropped")
    letters.close([4], "republished")

    found = [letters.verdict(number) for number in range(5)]
    assert found == [None, "dropped", None, "dropped", "republished"]
    assert (letters.floor, letters.urgent) == (0, True)


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
def test_verdicts_survive(restart: str, checkpoint: bool) -> None:
    scene = Scene()
    scene.broker.letters.close([0, 2], "republished")
    scene.commit()
    if checkpoint:
        scene.log.checkpoint()
    scene.broker.letters.close([4], "dropped")
    scene.commit()

    scene.restart(restart)

    letters = scene.broker.letters
    assert [number for number in range(6) if letters.verdict(number)] == [0, 2, 4]
    assert letters.verdict(2) == "republished"


def test_numbers_closed_without_a_gap_become_a_floor() -> None:
    scene = Scene()
    letters = scene.broker.letters
    letters.close([0, 1, 3], "dropped")
    assert letters.floor == 0
    scene.commit()
    assert letters.floor == 2

    letters.close([2, 0], "dropped")
    scene.commit()

    assert letters.floor == 4
    assert letters.verdict(1) == "dropped"


@RESTARTS
def test_what_became_of_letters_in_front_of_the_floor_is_known(restart: str) -> None:
    scene = Scene()
    scene.broker.letters.close([0, 1], "dropped")
    scene.broker.letters.close([2], "republished")
    scene.commit()
    scene.log.checkpoint()

    scene.restart(restart)

    letters = scene.broker.letters
    found = [letters.verdict(number) for number in range(4)]
    assert found == ["dropped", "dropped", "republished", None]
    letters.close([1], "republished")
    scene.fail_commit()
    assert letters.verdict(1) == "dropped"


def test_floor_stays_while_something_could_be_taken_back() -> None:
    scene = Scene()
    letters = scene.broker.letters
    letters.close([0], "dropped")
    commit = scene.log.begin_commit()
    assert commit is not None
    commit.run()
    letters.close([1], "dropped")

    scene.log.end_commit(commit)

    assert letters.floor == 0
    scene.fail_commit()
    assert (letters.verdict(0), letters.verdict(1)) == ("dropped", None)


def test_letter_closed_by_a_failed_group_is_open_again() -> None:
    scene = Scene()
    scene.broker.letters.close([0], "dropped")
    scene.commit()
    scene.broker.letters.close([1, 2], "dropped")

    scene.fail_commit()

    found = [scene.broker.letters.verdict(number) for number in range(3)]
    assert found == ["dropped", None, None]
    assert not scene.broker.letters.urgent


def test_a_snapshot_of_an_older_version_is_understood() -> None:
    letters = Letters()

    letters.restore(msgspec.msgpack.encode([1, {3: "dropped", 4: "republished"}]))

    found = [letters.verdict(number) for number in range(5)]
    assert found == ["closed", None, None, "dropped", "republished"]
    assert letters.floor == 1
