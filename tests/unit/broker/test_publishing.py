"""What dedup ids do is tested with their owner; here is what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.broker.options import BrokerOptions
from penstock.broker.publishing import ids_at, publish_once, release
from penstock.delivery.letters import decode_letter
from penstock.delivery.pending import PendingMessage
from penstock.errors import (
    Backlogged,
    DiskFull,
    InvalidBatch,
    InvalidName,
    InvalidPayload,
    LimitReached,
    ReservedName,
    WriteFailed,
)
from penstock.log import Columns, Log, LogOptions, TopicOptions
from tests.unit.delivery.scene import SMALL, Scene
from tests.unit.desk.office import Office
from tests.unit.log.faults import FaultyFiles, payloads

LARGE = b"x" * 101


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def broker(tmp_path: Path, disk: FaultyFiles) -> Iterator[Broker]:
    options = LogOptions(max_event_bytes=100, group_bytes=2000)
    open_log = partial(Log.open, tmp_path, options, files=disk)
    broker = Broker(open_log, BrokerOptions(max_topics=5))
    yield broker
    broker.log.abandon()


def stored(broker: Broker, topic: str) -> list[bytes]:
    broker.log.commit()
    return payloads(broker.log, topic)


def with_schema(broker: Broker, topic: str) -> None:
    """Payloads of the topic are numbers."""
    broker.registry.register(topic, {"type": "integer"}, type_="N", at_ms=0, by="anna")


def test_a_batch_that_is_good_is_one_piece(broker: Broker) -> None:
    outcome = broker.accept("t", Columns([b"a", b"b"], 1))

    (piece,) = outcome.pieces
    assert not outcome.refused
    assert list(piece.units) == list(piece.offsets) == [0, 1]
    assert outcome.group == piece.group == broker.group
    assert stored(broker, "t") == [b"a", b"b"]
    ids = [piece.id_at(broker, "t", place) for place in (0, 1)]
    assert ids == ids_at(broker, "t", [0, 1])


def test_what_is_bad_harms_no_other(broker: Broker) -> None:
    events = [b"%d" % number for number in range(40)]
    events[3] = events[17] = events[18] = LARGE

    outcome = broker.accept("t", Columns(events, 1))

    assert sorted(outcome.refused) == [3, 17, 18]
    assert all(isinstance(one, InvalidBatch) for one in outcome.refused.values())
    good = [event for event in events if event != LARGE]
    assert stored(broker, "t") == good
    placed = {
        unit: offset
        for piece in outcome.pieces
        for unit, offset in zip(piece.units, piece.offsets, strict=True)
    }
    assert [events[unit] for unit in sorted(placed, key=placed.__getitem__)] == good


def test_what_does_not_fit_is_refused_with_a_reason_of_its_own(broker: Broker) -> None:
    broker.create_topic("t")
    with_schema(broker, "t")

    outcome = broker.accept("t", Columns([b"1", b'"x"', b"2", b"[]"], 1))

    assert sorted(outcome.refused) == [1, 3]
    assert all(isinstance(one, InvalidPayload) for one in outcome.refused.values())
    assert str(outcome.refused[1]) != str(outcome.refused[3])
    assert "of the batch" not in str(outcome.refused[3])
    assert stored(broker, "t") == [b"1", b"2"]


def test_a_unit_is_stored_whole_or_not_at_all(broker: Broker) -> None:
    events = Columns([b"a", b"b", LARGE, b"c", b"d", b"e"], 1)

    outcome = broker.accept("t", events, units=[2, 2, 1, 1])

    assert list(outcome.refused) == [1]
    assert stored(broker, "t") == [b"a", b"b", b"d", b"e"]
    with pytest.raises(InvalidBatch):
        broker.accept("t", Columns([b"f", LARGE], 1), units=[2]).whole()
    assert stored(broker, "t") == [b"a", b"b", b"d", b"e"]


def test_each_is_stored_once_by_its_dedup_id(broker: Broker) -> None:
    def publish(*texts: bytes) -> list[int]:
        ids: list[str | None] = [text.decode()[:8] for text in texts]
        outcome = broker.accept("t", Columns(list(texts), 1), dedup_ids=ids, now_s=1.0)
        return [offset for piece in outcome.pieces for offset in piece.offsets]

    assert publish(b"a", b"b") == [0, 1]
    assert publish(b"b", b"c", LARGE, b"a") == [1, 2, 0]
    assert stored(broker, "t") == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("topic", "events", "kind"),
    [
        ("t", [LARGE], InvalidBatch),
        ("t", [LARGE, LARGE], InvalidBatch),
        ("numbers", [b"x"], InvalidPayload),
        ("numbers", [b"x", b"y"], InvalidPayload),
    ],
)
def test_no_topic_is_made_for_events_that_are_refused(
    broker: Broker, topic: str, events: list[bytes], kind: type[Exception]
) -> None:
    with_schema(broker, "numbers")

    outcome = broker.accept(topic, Columns(events, 1), keep=True)

    assert len(outcome.refused) == len(events) and not outcome.pieces
    assert {type(error) for error in outcome.refused.values()} == {kind}
    assert outcome.group == 0
    broker.log.commit()
    assert not broker.log.has_topic(topic)


@pytest.mark.parametrize(
    ("topic", "kind"),
    [("", InvalidName), ("$mine", ReservedName), ("a\0", InvalidName)],
)
def test_what_all_of_it_is_refused_for_is_raised(
    broker: Broker, topic: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        broker.accept(topic, Columns([b"a", b"b"], 1))
    assert not broker.log.has_topic(topic)


def test_no_topic_is_made_while_nothing_can_be_stored(
    broker: Broker, disk: FaultyFiles
) -> None:
    broker.accept("t", Columns([b"x" * 90] * 20, 1))
    commit = broker.log.begin_commit()
    broker.accept("t", Columns([b"x" * 90] * 42, 1))

    with pytest.raises(Backlogged):
        broker.accept("u", Columns([b"x" * 90] * 3, 1))

    assert not broker.log.has_topic("u")
    assert commit is not None


def test_behind_the_first_that_is_too_much_nothing_is_tried(broker: Broker) -> None:
    for number in range(5):
        broker.create_topic(f"t{number}")

    outcome = broker.accept("one more", Columns([b"x"] * 1000, 1))

    assert len(outcome.refused) == 1000
    assert len({id(error) for error in outcome.refused.values()}) == 1
    assert isinstance(outcome.refused[999], LimitReached)


def test_what_was_lost_while_more_was_stored_is_refused(
    broker: Broker, disk: FaultyFiles
) -> None:
    """A group is full and written for what comes behind it, and fails."""
    broker.create_topic("t")
    broker.log.commit()
    disk.fail("write", "journal")

    outcome = broker.accept(
        "t", Columns([b"x" * 90] * 15 + [LARGE] + [b"y" * 90] * 20, 1)
    )

    lost = [unit for unit, e in outcome.refused.items() if isinstance(e, WriteFailed)]
    assert lost and isinstance(outcome.refused[15], InvalidBatch)
    kept = [unit for piece in outcome.pieces for unit in piece.units]
    assert sorted([*lost, 15, *kept]) == list(range(36))
    assert len(stored(broker, "t")) == len(kept)


def test_only_events_with_new_ids_are_stored(office: Office) -> None:
    first = publish_once(
        office.broker, "t", Columns([b"a", b"b"]), ["1", None], office.now_s
    )
    second = publish_once(
        office.broker, "t", Columns([b"a", b"c", b"c"]), ["1", "2", "2"], office.now_s
    )
    office.commit()

    assert (first, second) == ([0, 1], [0, 2, 2])
    (batch,) = office.broker.log.read("t", 0)
    assert batch.payloads() == [b"a", b"b", b"c"]


def test_nothing_is_stored_if_all_ids_are_known(office: Office) -> None:
    publish_once(office.broker, "t", Columns([b"a"]), ["1"], office.now_s)
    office.commit()

    again = publish_once(office.broker, "t", Columns([b"b"]), ["1"], office.now_s)

    assert (again, office.broker.dirty) == ([0], False)


def test_a_payload_that_does_not_fit_is_named_by_its_place(office: Office) -> None:
    publish_once(office.broker, "t", Columns([b"1"]), ["1"], office.now_s)
    office.broker.registry.register("t", {"type": "integer"}, type_="", at_ms=1, by="")

    with pytest.raises(InvalidPayload) as caught:
        publish_once(
            office.broker, "t", Columns([b"1", b"x"]), ["1", "2"], office.now_s
        )

    assert caught.value.index == 1


def pending(scene: Scene, payload: bytes) -> PendingMessage:
    number = scene.broker.pending.add("t", payload, scene.now_s)
    scene.commit()
    message = scene.broker.pending.get(number)
    assert message is not None
    return message


def integers_only(scene: Scene) -> None:
    schema = {"type": "integer"}
    scene.broker.registry.register("t", schema, type_="", at_ms=0, by="")
    scene.commit()


def test_a_message_is_published_and_forgotten() -> None:
    scene = Scene()
    message = pending(scene, b"1")
    integers_only(scene)

    release(scene.broker, message, scene.now_s)
    scene.commit()

    assert scene.broker.pending.get(message.id) is None
    assert scene.log.read("t", 0)[0].payloads() == [b"1"]


def test_what_no_longer_fits_is_a_dead_letter_and_not_tried_again() -> None:
    scene = Scene()
    message = pending(scene, b'"x"')
    integers_only(scene)

    with pytest.raises(InvalidPayload):
        release(scene.broker, message, scene.now_s)

    (letter,) = map(decode_letter, scene.letters())
    assert (letter.topic, letter.raw) == ("t", b'"x"')
    assert "does not fit version 1" in letter.reason
    scene.restart()
    assert scene.broker.pending.get(message.id) is None
    assert scene.broker.pending.was_given_up(message.id)


def test_if_the_letter_is_lost_the_message_is_pending_again() -> None:
    scene = Scene()
    message = pending(scene, b'"x"')
    integers_only(scene)
    with pytest.raises(InvalidPayload):
        release(scene.broker, message, scene.now_s)

    scene.fail_commit()

    assert scene.broker.pending.get(message.id) == message


def test_if_the_letter_cannot_be_kept_the_message_stays() -> None:
    scene = Scene(log=SMALL)
    message = pending(scene, b'"x"')
    scene.refuse_appends()
    schema = {"type": "integer"}
    scene.broker.registry.register("t", schema, type_="", at_ms=0, by="")

    with pytest.raises(DiskFull):
        release(scene.broker, message, scene.now_s)

    assert scene.broker.pending.get(message.id) == message


def expiring(broker: Broker, topic: str) -> list[int]:
    broker.log.commit()
    return [time for batch in broker.log.read(topic, 0) for time in batch.expires()]


def test_events_expire_as_their_topic_says_unless_they_say_it(broker: Broker) -> None:
    broker.create_topic("t", TopicOptions(expires_s=1.5))

    broker.accept("t", Columns([b"a", b"b"], [1000, 2000]))
    broker.accept("t", Columns([b"c", b"d"], 1000, expires=[7, None]))
    broker.accept("t", Columns([b"e"], 1000), dedup_ids=["e"])

    assert expiring(broker, "t") == [2500, 3500, 7, 2500, 2500]


def test_without_a_setting_events_do_not_expire(broker: Broker) -> None:
    broker.accept("t", Columns([b"a"], 1000))

    assert expiring(broker, "t") == [0]
