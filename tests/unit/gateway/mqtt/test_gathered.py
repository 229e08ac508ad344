"""Publishes that are stored with those of other connections keep their promises."""

from __future__ import annotations

import pytest

from penstock.wire.mqtt import (
    PINGREQ,
    Disconnect,
    PacketKind,
    Pingresp,
    Properties,
    Property,
    Reason,
    WillPacket,
    render_disconnect,
)
from tests.unit.gateway.mqtt.scene import Client, Message, Scene, acks, messages
from tests.unit.gateway.mqtt.test_inbound import LASTING, come, stored

ACK = {1: PacketKind.PUBACK, 2: PacketKind.PUBREC}


@pytest.fixture
def waiting(scene: Scene) -> Scene:
    """A scene with a topic, in which nothing is committed until it is told to."""
    scene.broker.create_topic("t")
    scene.broker.create_topic("number")
    scene.broker.log.commit()
    scene.broker.registry.register(
        "number", {"type": "integer"}, type_="N", at_ms=0, by="anna"
    )
    scene.broker.log.commit()
    return scene


def gathered(scene: Scene) -> bool:
    return bool(scene.broker.gathering)


@pytest.mark.parametrize("qos", [1, 2])
def test_clients_share_a_group_and_each_is_answered(waiting: Scene, qos: int) -> None:
    clients = [come(waiting, f"c{number}") for number in range(5)]
    waiting.commits = False
    group = waiting.broker.group

    for number, client in enumerate(clients):
        client.publish("t", b"%d" % number, qos=qos, ids=[number + 1])
    assert gathered(waiting) and not waiting.broker.log.pending_bytes
    assert [client.acks() for client in clients] == [[]] * 5
    waiting.commit()

    told = [client.acks() for client in clients]
    assert told == [[(ACK[qos], number + 1, 0)] for number in range(5)]
    assert stored(waiting, "t") == [b"0", b"1", b"2", b"3", b"4"]
    assert waiting.broker.log.written == group


def test_what_is_not_small_keeps_its_place(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False

    client.publish("t", b"1", qos=1, ids=[1])
    client.publish("t", b"2" * 5000, qos=1, ids=[2])
    client.publish("t", b"3", qos=1, ids=[3])
    client.publish("t", b"4", qos=1, ids=[4], retain=True)
    client.publish("t", b"5", qos=1, ids=[5])
    waiting.commit()

    assert [id_ for _, id_, _ in client.acks()] == [1, 2, 3, 4, 5]
    assert [one[:1] for one in stored(waiting)] == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("again", [[7], [8, 7], [7, 7]])
def test_an_id_of_qos_2_that_comes_again_is_the_same_message(
    waiting: Scene, again: list[int]
) -> None:
    client = come(waiting)
    waiting.commits = False

    client.publish("t", b"a7", qos=2, ids=[7])
    assert gathered(waiting)
    client.publish("t", *[b"a%d" % one for one in again], qos=2, ids=again, dup=True)
    waiting.commit()

    assert sorted(stored(waiting)) == sorted({b"a7", *[b"a%d" % one for one in again]})
    assert [id_ for _, id_, _ in client.acks()] == [7, *again]


def test_who_takes_a_session_over_does_not_publish_twice(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False
    client.publish("t", b"a", qos=2, ids=[7])
    assert gathered(waiting)

    later = waiting.client("ann", clean=False, properties=LASTING)
    later.publish("t", b"a", qos=2, ids=[7], dup=True)
    waiting.commit()

    assert stored(waiting) == [b"a"]
    assert (PacketKind.PUBREC, 7, 0) in later.acks()


def test_a_pubrel_that_comes_early_ends_the_handshake(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False

    client.publish("t", b"a", qos=2, ids=[7])
    client.answer(PacketKind.PUBREL, 7)
    waiting.commit()

    assert client.acks() == [(PacketKind.PUBREC, 7, 0), (PacketKind.PUBCOMP, 7, 0)]
    client.publish("t", b"b", qos=2, ids=[7])
    waiting.commit()
    assert stored(waiting) == [b"a", b"b"]


def test_who_leaves_at_once_has_published(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False

    client.publish("t", b"a", qos=1, ids=[1])
    client.send(render_disconnect(5, 0, None))
    waiting.commit()

    assert stored(waiting) == [b"a"]
    assert client.acks() == [(PacketKind.PUBACK, 1, 0)]


def test_a_will_comes_behind_what_was_published(waiting: Scene) -> None:
    will = WillPacket(topic="t", payload=b"will", qos=0, retain=False)
    client = waiting.client("ann", will=will)
    waiting.commits = False

    client.publish("t", b"a")
    assert gathered(waiting)
    client.drop()
    waiting.commit()

    assert stored(waiting) == [b"a", b"will"]


def test_a_filter_is_not_for_what_was_published_before(waiting: Scene) -> None:
    client, other = come(waiting), come(waiting, "bob")
    waiting.commits = False

    client.publish("t", b"old")
    client.subscribe("t")
    client.publish("t", b"new")
    other.publish("t", b"newer")
    waiting.commit()
    waiting.commit()

    assert client.payloads() == [b"new", b"newer"]


def test_what_is_refused_is_answered_in_its_place(waiting: Scene) -> None:
    client, other = come(waiting), come(waiting, "bob")
    waiting.commits = False

    client.publish("number", b"1", qos=1, ids=[1])
    client.publish("number", b"x", qos=1, ids=[2])
    client.publish("number", b"3", qos=2, ids=[3])
    client.publish("number", b"y", qos=2, ids=[4])
    other.publish("t", b"good", qos=1, ids=[1])
    assert gathered(waiting)
    waiting.commit()

    wrong = Reason.PAYLOAD_FORMAT_INVALID
    assert client.acks() == [
        (PacketKind.PUBACK, 1, 0),
        (PacketKind.PUBACK, 2, wrong),
        (PacketKind.PUBREC, 3, 0),
        (PacketKind.PUBREC, 4, wrong),
    ]
    assert other.acks() == [(PacketKind.PUBACK, 1, 0)]
    assert stored(waiting, "number") == [b"1", b"3"]
    # What was refused is over, and its id stands for another message.
    client.publish("number", b"4", qos=2, ids=[4])
    waiting.commit()
    assert stored(waiting, "number") == [b"1", b"3", b"4"]


def test_if_all_is_refused_nobody_waits_for_a_group(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False

    client.publish("number", b"x", qos=1, ids=[1])
    assert gathered(waiting)
    waiting.commit()

    assert [reason for _, _, reason in client.acks()] == [Reason.PAYLOAD_FORMAT_INVALID]


def test_a_topic_that_goes_refuses_what_was_gathered_for_it(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False

    client.publish("t", b"a", qos=1, ids=[1])
    waiting.broker.delete_topic("t")
    waiting.commit()

    ((_, _, reason),) = client.acks()
    assert reason == Reason.IMPLEMENTATION_SPECIFIC_ERROR


@pytest.mark.parametrize("version", [4, 5])
def test_a_disk_that_is_full_sends_publishers_away(
    waiting: Scene, version: int
) -> None:
    client, other = come(waiting, version=version), come(waiting, "bob", version)
    waiting.commits = False
    client.publish("t", b"a", qos=1, ids=[1])
    other.publish("t", b"b", qos=2, ids=[1])
    assert gathered(waiting)

    waiting.fail_commit()

    for one in (client, other):
        assert one.closed
        packets = one.packets()
        assert acks(packets) == []
        said = [p.reason for p in packets if isinstance(p, Disconnect)]
        assert said == [Reason.QUOTA_EXCEEDED] * (version == 5)
    assert stored(waiting) == []


def test_a_session_that_is_kept_is_told_once_after_a_failure(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False
    client.publish("t", b"a", qos=2, ids=[1])
    waiting.fail_commit()

    later = come(waiting)
    later.publish("t", b"a", qos=2, ids=[1], dup=True)
    waiting.commit()

    assert later.acks() == [(PacketKind.PUBREC, 1, 0)]
    assert stored(waiting) == [b"a"]


def test_ids_and_events_are_kept_together(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False
    client.publish("t", b"a", qos=2, ids=[1])
    client.publish("t", b"b", qos=2, ids=[2])
    assert gathered(waiting)
    waiting.commit()

    waiting.restart(kill=True)

    later = come(waiting)
    later.publish("t", b"a", b"b", b"c", qos=2, ids=[1, 2, 3], dup=True)
    waiting.commit()
    assert stored(waiting) == [b"a", b"b", b"c"]


def test_a_ping_is_answered_without_a_commit(waiting: Scene) -> None:
    client = come(waiting)
    waiting.commits = False

    client.publish("t", b"a", qos=1, ids=[1])
    client.send(PINGREQ)

    assert [type(one) for one in client.packets()] == [Pingresp]
    assert gathered(waiting)


@pytest.mark.parametrize(
    ("properties", "shared"),
    [
        ({Property.CONTENT_TYPE: "text"}, True),
        ({Property.USER_PROPERTY: [("k", "v")]}, True),
        ({Property.MESSAGE_EXPIRY_INTERVAL: 10}, False),
        ({Property.USER_PROPERTY: [("priority", "7")]}, False),
    ],
)
def test_what_a_publish_says_is_delivered(
    waiting: Scene, properties: Properties, *, shared: bool
) -> None:
    reader = come(waiting, "bob")
    reader.subscribe("t")
    client = come(waiting)
    client.publish("t", b"first")
    reader.packets()
    waiting.commits = False

    client.publish("t", b"plain")
    client.publish("t", b"a", properties=properties)
    assert gathered(waiting) is shared
    waiting.commit()

    plain, said = messages(reader.packets())
    assert plain == Message("t", b"plain")
    assert said == Message("t", b"a", properties=properties)


def test_a_new_topic_is_made_at_once_and_looked_up(scene: Scene) -> None:
    reader, client = come(scene, "bob"), come(scene)
    reader.subscribe("#")
    reader.packets()
    scene.commits = False

    client.publish("new", b"a")

    assert not gathered(scene)
    assert scene.broker.log.has_topic("new")
    scene.commit()
    assert reader.payloads() == [b"a"]


def test_a_connection_on_an_account_pays_for_its_own(waiting: Scene) -> None:
    client: Client = come(waiting, version=4)
    waiting.commits = False
    account = waiting.broker.accounts

    class Payer:
        limited = False

    with account.acting(Payer()):  # type: ignore[arg-type]
        client.gateway.receive(b"\x30\x04\x00\x01tx", waiting.clock.now_s())

    assert not gathered(waiting)
    assert waiting.broker.log.pending_bytes
