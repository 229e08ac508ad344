from __future__ import annotations

import msgspec
import pytest

from penstock.errors import InvalidName
from penstock.sessions.session import NO_OUTLET, Session, TopicFilter, Will
from tests.unit.sessions.scene import Scene, consumer_of, share_of


def test_a_session_is_a_subscriber_that_no_other_protocol_can_be() -> None:
    session = Session(1, "ann", durable=True)

    assert session.name == "$mqtt/ann"
    assert session.producer == "mqtt/ann"


def test_packet_ids_are_noted_for_sessions_that_are_kept() -> None:
    assert Session(1, "ann", durable=True).packet_ids.noting
    assert not Session(1, "ann", durable=False).packet_ids.noting


def test_a_share_is_found_by_its_consumer() -> None:
    scene = Scene()
    ann, bob = scene.come("ann"), scene.come("bob")
    for one in (ann, bob):
        scene.subscribe_to(one, "t")
    scene.events("t")

    share, consumer = share_of(ann), consumer_of(ann)
    assert ann.share_of(consumer) is share
    assert bob.share_of(consumer) is None
    assert share.topic == "t"


def test_nobody_hears_of_anything() -> None:
    scene = Scene()
    session = scene.come()
    scene.subscribe_to(session, "t")
    scene.events("t")
    consumer = consumer_of(session)

    NO_OUTLET.released(consumer, [])
    NO_OUTLET.ended(consumer, "the topic is gone")
    NO_OUTLET.moved(consumer)


@pytest.mark.parametrize(
    ("filter_", "share", "plain"),
    [
        ("a/+/c", None, "a/+/c"),
        ("$share/g/a/#", ("g", "a/#"), "a/#"),
        ("$shared/g/a", None, "$shared/g/a"),
    ],
)
def test_a_wish_knows_whether_it_is_shared(
    filter_: str, share: tuple[str, str] | None, plain: str
) -> None:
    topic_filter = TopicFilter(filter_, 1)

    assert (topic_filter.share, topic_filter.plain) == (share, plain)


@pytest.mark.parametrize("filter_", ["$share/g", "$share//a", "$share/a+/b"])
def test_a_shared_wish_without_a_group_or_filter_is_none(filter_: str) -> None:
    with pytest.raises(InvalidName):
        _ = TopicFilter(filter_, 1).share


@pytest.mark.parametrize(
    "one",
    [
        TopicFilter("a/#", 2, True, True, 268_435_455),
        TopicFilter("a", 0),
        Will("t", b"\xff", 2, True, {"a": "b"}, 5.0, 60.0, 3),
        Will("t", b"", 0, False, {}),
    ],
)
def test_wishes_and_wills_are_written_whole(one: TopicFilter | Will) -> None:
    data = msgspec.msgpack.encode(one)

    assert msgspec.msgpack.decode(data, type=type(one)) == one
