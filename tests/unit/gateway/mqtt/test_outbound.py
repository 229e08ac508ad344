"""What goes to a client, and what it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.desk.desk import Desk
from penstock.gateway.options import MqttOptions
from penstock.log import TopicOptions
from penstock.wire.mqtt import (
    Acks,
    Disconnect,
    PacketKind,
    Properties,
    Property,
    Reason,
    render_acks,
)
from tests.unit.gateway.mqtt.scene import Client, Message, Scene, acks, messages

LASTING: Properties = {Property.SESSION_EXPIRY_INTERVAL: 60}


def come(
    scene: Scene,
    name: str = "ann",
    *,
    version: int = 5,
    properties: Properties | None = None,
) -> Client:
    """A client with a session that is kept; see ``rest`` for what came behind."""
    asked = {**LASTING, **(properties or {})} if version == 5 else {}
    client = scene.client(name, version=version, clean=False, properties=asked)
    client.connack()
    return client


def subscriber(scene: Scene, qos: int = 1, **said: object) -> Client:
    client = come(scene, **said)  # type: ignore[arg-type]
    client.subscribe("t", qos=qos)
    client.packets()
    return client


def publish(scene: Scene, *payloads: bytes, qos: int = 2, topic: str = "t") -> None:
    writer = scene.client("writer")
    ids = list(range(1, len(payloads) + 1)) if qos else None
    writer.publish(topic, *payloads, qos=qos, ids=ids)
    writer.bye()


def ids(messages: list[Message]) -> list[int]:
    return [one.packet_id for one in messages]


# Answers


@pytest.mark.parametrize("version", [3, 4, 5])
def test_qos_1_is_over_with_puback(scene: Scene, version: int) -> None:
    client = subscriber(scene, version=version)
    publish(scene, b"a", b"b")
    found = client.messages()
    assert [(one.payload, one.qos, one.dup) for one in found] == [
        (b"a", 1, False),
        (b"b", 1, False),
    ]

    client.answer(PacketKind.PUBACK, *ids(found))
    client.drop()

    assert come(scene, version=version).rest == []


@pytest.mark.parametrize("version", [4, 5])
def test_qos_2_is_a_handshake(scene: Scene, version: int) -> None:
    client = subscriber(scene, qos=2, version=version)
    publish(scene, b"a")
    (one,) = client.messages()
    assert one.qos == 2

    client.answer(PacketKind.PUBREC, one.packet_id)
    assert client.acks() == [(PacketKind.PUBREL, one.packet_id, 0)]
    client.answer(PacketKind.PUBCOMP, one.packet_id)
    client.drop()

    assert come(scene, version=version).rest == []


def test_qos_2_leaves_when_the_journal_knows_its_id(scene: Scene) -> None:
    client = subscriber(scene, qos=2)
    publish(scene, b"a")
    client.packets()
    scene.commits = False
    writer = scene.client("writer")
    writer.publish("t", b"b", qos=2, ids=[1])
    scene.broker.log.commit()
    assert client.messages() == []

    scene.pump()
    assert client.messages() == []  # taken, and not yet in the journal
    scene.commit()

    assert [one.payload for one in client.messages()] == [b"b"]


def test_pubrel_leaves_when_the_disk_knows_of_it(scene: Scene) -> None:
    client = subscriber(scene, qos=2)
    publish(scene, b"a")
    (one,) = client.messages()
    scene.commits = False

    client.answer(PacketKind.PUBREC, one.packet_id)
    assert client.packets() == []
    scene.commit()

    assert client.acks() == [(PacketKind.PUBREL, one.packet_id, 0)]


@pytest.mark.parametrize(
    ("version", "reason"), [(4, 0), (5, Reason.PACKET_IDENTIFIER_NOT_FOUND)]
)
def test_pubrec_of_an_id_that_nobody_knows_is_answered(
    scene: Scene, version: int, reason: int
) -> None:
    client = subscriber(scene, qos=2, version=version)

    client.answer(PacketKind.PUBREC, 77)

    assert client.acks() == [(PacketKind.PUBREL, 77, reason)]


@pytest.mark.parametrize("kind", [PacketKind.PUBACK, PacketKind.PUBCOMP])
def test_answers_to_nothing_count_for_nothing(scene: Scene, kind: PacketKind) -> None:
    client = subscriber(scene, qos=2)
    publish(scene, b"a")
    (one,) = client.messages()

    client.answer(kind, 998, 999)
    client.drop()

    assert not client.gateway.closing
    (again,) = [m for m in come(scene).rest if not isinstance(m, Acks)]
    assert again.packet_ids == [one.packet_id]  # type: ignore[union-attr]


WRONG = [
    (1, PacketKind.PUBREC),
    (1, PacketKind.PUBCOMP),
    (2, PacketKind.PUBACK),
    (2, PacketKind.PUBCOMP),
]


@pytest.mark.parametrize("reason", [0, 0x80], ids=["success", "failure"])
@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(("qos", "kind"), WRONG)
def test_a_wrong_answer_ends_the_connection_and_changes_nothing(
    scene: Scene, qos: int, kind: PacketKind, version: int, reason: int
) -> None:
    client = subscriber(scene, qos=qos, version=version)
    publish(scene, b"a")
    (one,) = client.messages()

    if reason and version == 5 and kind is not PacketKind.PUBCOMP:
        client.refuse(kind, one.packet_id)
    else:
        client.answer(kind, one.packet_id)

    told = [p for p in client.packets() if isinstance(p, Disconnect)]
    assert [p.reason for p in told] == [Reason.PROTOCOL_ERROR] * (version == 5)
    assert client.closed
    client.drop()
    (again,) = [m for m in come(scene).rest if not isinstance(m, Acks)]
    assert again.packet_ids == [one.packet_id]  # type: ignore[union-attr]


@pytest.mark.parametrize("expiry_s", [0, 60])
def test_what_is_completed_before_it_was_released_is_a_wrong_answer(
    scene: Scene, expiry_s: int
) -> None:
    asked: Properties = {Property.SESSION_EXPIRY_INTERVAL: expiry_s}
    client = scene.client(properties=asked)
    client.subscribe("t", qos=2)
    publish(scene, b"a")
    (one,) = client.messages()

    acks = [
        render_acks(kind, [one.packet_id])
        for kind in (PacketKind.PUBREC, PacketKind.PUBCOMP)
    ]
    client.send(b"".join(acks))

    assert client.closed
    assert isinstance(client.packets()[-1], Disconnect)


def test_right_answers_in_front_of_a_wrong_one_count(scene: Scene) -> None:
    client = subscriber(scene, qos=1)
    publish(scene, b"a", b"b")
    first, second = client.messages()

    client.answer(PacketKind.PUBACK, first.packet_id)
    client.send(render_acks(PacketKind.PUBREC, [second.packet_id]))
    client.drop()

    assert [one.payload for one in messages_of(come(scene))] == [b"b"]


def test_nothing_counts_behind_the_last_word(scene: Scene) -> None:
    """Answers may wait for the disk when it was said, so more can come in."""
    client = scene.client()
    client.packets()
    scene.commits = False
    client.publish("t", b"x", qos=1, ids=[1])

    for _ in range(3):
        client.send(b"\xe1\0")
    scene.commit()

    assert sum(isinstance(one, Disconnect) for one in client.packets()) == 1


@pytest.mark.parametrize(
    ("qos", "kind"),
    [(1, PacketKind.PUBACK), (2, PacketKind.PUBREC)],
    ids=["puback", "pubrec"],
)
def test_what_a_client_refuses_is_not_sent_again(
    scene: Scene, qos: int, kind: PacketKind
) -> None:
    client = subscriber(scene, qos=qos)
    publish(scene, b"a")
    (one,) = client.messages()

    client.refuse(kind, one.packet_id)
    client.drop()

    assert come(scene).rest == []
    assert not scene.broker.log.has_topic("$dead-letters")


# Reconnecting


@pytest.mark.parametrize("kill", [None, True, False])
@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_answered_is_sent_again_under_its_id(
    scene: Scene, qos: int, *, kill: bool | None
) -> None:
    client = subscriber(scene, qos=qos)
    publish(scene, b"a", b"b", b"c")
    found = client.messages()
    assert len(found) == 3
    scene.commit()
    if kill is None:
        client.drop()
    else:
        scene.restart(kill=kill)

    again = come(scene)

    assert [(one.payload, one.packet_id, one.dup) for one in messages_of(again)] == [
        (one.payload, one.packet_id, True) for one in found
    ]


@pytest.mark.parametrize("kill", [None, True, False])
def test_pubrel_is_said_again(scene: Scene, *, kill: bool | None) -> None:
    client = subscriber(scene, qos=2)
    publish(scene, b"a", b"b")
    first, second = client.messages()
    client.answer(PacketKind.PUBREC, first.packet_id)
    if kill is None:
        client.drop()
    else:
        scene.restart(kill=kill)

    again = come(scene)

    assert [one for one in again.rest if isinstance(one, Acks)] == [
        Acks(kind=PacketKind.PUBREL, packet_ids=[first.packet_id])
    ]
    assert ids(messages_of(again)) == [second.packet_id]
    again.answer(PacketKind.PUBCOMP, first.packet_id)
    again.answer(PacketKind.PUBREC, second.packet_id)
    again.answer(PacketKind.PUBCOMP, second.packet_id)
    again.drop()
    assert come(scene).rest == []


def test_what_came_meanwhile_follows_what_was_begun(scene: Scene) -> None:
    client = subscriber(scene)
    publish(scene, b"a", b"b")
    assert len(client.messages()) == 2
    client.drop()
    publish(scene, b"c")

    found = messages_of(come(scene))

    assert [(one.payload, one.dup) for one in found] == [
        (b"a", True),
        (b"b", True),
        (b"c", False),
    ]
    assert len(set(ids(found))) == 3


@pytest.mark.parametrize("qos", [1, 2])
def test_what_retention_took_is_not_sent_and_its_ids_are_released(
    scene: Scene, qos: int
) -> None:
    """The client may have it, and would take another message under its id for it."""
    client = subscriber(scene, qos=qos)
    publish(scene, b"a", b"b")
    before = ids(client.messages())
    client.drop()
    scene.commit()
    scene.broker.log.roll("t")
    publish(scene, b"c")
    scene.broker.log.trim("t", 2)

    client = come(scene)
    found = messages_of(client)

    assert [one.payload for one in found] == [b"c"]
    assert acks(client.rest) == [
        (PacketKind.PUBREL, id_, 0) for id_ in before if qos == 2
    ]
    session = scene.broker.sessions.get("ann")
    assert session is not None
    assert list(session.packet_ids.out) == ids(found)
    assert list(session.packet_ids.released) == (before if qos == 2 else [])


@pytest.mark.parametrize("qos", [1, 2])
def test_a_topic_that_is_deleted_makes_room_for_others(scene: Scene, qos: int) -> None:
    client = subscriber(scene, qos=qos, properties={Property.RECEIVE_MAXIMUM: 2})
    client.subscribe("u", qos=qos)
    publish(scene, b"a", b"b")
    before = ids(client.messages())
    publish(scene, b"c", topic="u")
    assert client.payloads() == []

    scene.broker.delete_topic("t")

    scene.commit()
    scene.pump()
    kind = PacketKind.PUBACK if qos == 1 else PacketKind.PUBREC
    client.answer(kind, *before)
    if qos == 2:
        client.answer(PacketKind.PUBCOMP, *before)

    assert client.payloads() == [b"c"]


# Delayed events, and a restart


def delayed(scene: Scene, qos: int, *in_s: float) -> None:
    """Publish events for later, each as its delay in seconds."""
    writer = scene.client("writer")
    for number, delay_s in enumerate(in_s, 1):
        at_ms = scene.broker.log.now_ms() + int(delay_s * 1000)
        properties: Properties = {Property.USER_PROPERTY: [("not_before", str(at_ms))]}
        given = [number] if qos else None
        payload = str(delay_s).encode()
        writer.publish("t", payload, qos=qos, ids=given, properties=properties)
    writer.bye()


PAIRS = pytest.mark.parametrize(
    ("published", "wanted"), [(1, 1), (0, 1), (1, 0), (0, 0), (0, 2), (2, 2)]
)


@PAIRS
def test_a_delayed_event_comes_at_its_time(
    scene: Scene, published: int, wanted: int
) -> None:
    client = subscriber(scene, qos=wanted)
    delayed(scene, published, 60)
    assert client.payloads() == []

    scene.advance(70)

    assert client.payloads() == [b"60"]


@pytest.mark.parametrize("gone", ["connection", "broker", "kill"])
@PAIRS
def test_a_delayed_event_comes_to_who_was_away_unless_qos_0_was_asked_for(
    scene: Scene, published: int, wanted: int, gone: str
) -> None:
    """A filter of QoS 0 hears of what is published while its client is there."""
    client = subscriber(scene, qos=wanted)
    delayed(scene, published, 60)
    scene.commit()
    if gone == "connection":
        client.drop()
    else:
        scene.restart(kill=gone == "kill")

    client = come(scene)
    scene.advance(70)

    assert client.payloads() == ([b"60"] if wanted else [])
    assert come(scene).payloads() == []


@pytest.mark.parametrize("back_s", [0, 50])
def test_of_qos_0_what_was_perhaps_sent_before_a_restart_is_left_out(
    scene: Scene, back_s: int
) -> None:
    """Whether its client comes back before or after the time of what is late."""
    client = subscriber(scene, qos=1)
    client.drop()
    delayed(scene, 0, 40, 0, 5, 45)
    scene.advance(5)
    scene.restart()

    scene.advance(back_s)
    client = come(scene)
    scene.advance(50 - back_s)

    found = messages(client.rest + client.packets())
    assert [one.payload for one in found] == [b"40", b"45"]


def test_a_delayed_event_of_qos_0_is_sent_once_over_restarts(scene: Scene) -> None:
    client = subscriber(scene, qos=1)
    delayed(scene, 0, 60)
    scene.restart()
    client = come(scene)
    scene.advance(60)
    assert client.payloads() == [b"60"]

    scene.restart(kill=True)
    client = come(scene)
    scene.advance(60)

    assert messages(client.rest + client.packets()) == []


# Expired, and sent again from its dead letter


def lapsed(scene: Scene, qos: int, wanted: int, version: int = 5) -> Client:
    """A client whose event expired while it was away, and became a dead letter."""
    scene.broker.create_topic("t", TopicOptions(dead_letter_expired=True))
    subscriber(scene, qos=wanted, version=version).drop()
    expiry: Properties = {Property.MESSAGE_EXPIRY_INTERVAL: 5}
    ids = [1] if qos else None
    scene.client("w").publish("t", b"x", qos=qos, ids=ids, properties=expiry)
    scene.advance(10)
    client = come(scene, version=version)
    scene.advance(1)
    assert messages_of(client) == []
    assert open_letters(scene) == [0]
    return client


def open_letters(scene: Scene) -> list[int]:
    return [one.number for one in Desk(scene.broker).letters.search().letters]


def republish(scene: Scene) -> None:
    Desk(scene.broker).redrive.republish(numbers=[0])
    scene.commit()


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("qos", "wanted"), [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)]
)
def test_an_expired_event_that_is_sent_again_is_delivered_once(
    scene: Scene, qos: int, wanted: int, version: int
) -> None:
    client = lapsed(scene, qos, wanted, version)
    client.packets()

    republish(scene)

    (one,) = client.messages()
    assert (one.payload, one.qos) == (b"x", min(qos, wanted))
    assert not one.properties  # it has no time left that could be told
    if one.qos == 1:
        client.answer(PacketKind.PUBACK, one.packet_id)
    elif one.qos == 2:
        client.answer(PacketKind.PUBREC, one.packet_id)
        client.answer(PacketKind.PUBCOMP, one.packet_id)
    client.drop()
    assert open_letters(scene) == []
    assert messages(come(scene, version=version).rest) == []


@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_expired_event_that_is_sent_again_survives_a_restart(
    scene: Scene, qos: int, *, kill: bool
) -> None:
    lapsed(scene, qos, 2).drop()
    republish(scene)

    scene.restart(kill=kill)

    (one,) = messages_of(come(scene))
    assert (one.payload, one.qos, one.dup) == (b"x", qos, False)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_expired_event_is_sent_again_after_a_restart(scene: Scene, qos: int) -> None:
    lapsed(scene, qos, 2)
    scene.restart()
    client = come(scene)

    republish(scene)

    assert [one.payload for one in messages_of(client)] == [b"x"]


def test_what_is_sent_again_with_qos_0_is_sent_once_over_a_crash(scene: Scene) -> None:
    """So it leaves when the disk knows that it did."""
    client = lapsed(scene, 0, 1)
    client.drop()
    republish(scene)
    scene.commits = False
    client = scene.client("ann", clean=False, properties=LASTING)
    assert messages(client.packets()) == []
    scene.commits = True
    scene.commit()
    assert [one.payload for one in client.messages()] == [b"x"]

    scene.restart(kill=True)

    assert messages_of(come(scene)) == []


def test_what_was_sent_is_said_again_after_its_time_without_an_expiry(
    scene: Scene,
) -> None:
    client = subscriber(scene)
    expiry: Properties = {Property.MESSAGE_EXPIRY_INTERVAL: 5}
    scene.client("w").publish("t", b"x", qos=1, ids=[1], properties=expiry)
    (first,) = client.messages()
    assert first.properties == expiry
    client.drop()
    scene.advance(10)

    (again,) = messages_of(come(scene))

    assert (again.packet_id, again.dup) == (first.packet_id, True)
    assert not again.properties


# Windows


def test_no_more_is_unanswered_than_the_client_asks_for(scene: Scene) -> None:
    client = subscriber(scene, properties={Property.RECEIVE_MAXIMUM: 2})
    publish(scene, *[b"%d" % number for number in range(6)])

    found = client.messages()
    assert len(found) == 2
    client.answer(PacketKind.PUBACK, found[0].packet_id)
    more = client.messages()

    assert [one.payload for one in more] == [b"2"]
    client.answer(PacketKind.PUBACK, found[1].packet_id, more[0].packet_id)
    assert client.payloads() == [b"3", b"4"]


def test_with_qos_2_room_comes_with_pubcomp(scene: Scene) -> None:
    client = subscriber(scene, qos=2, properties={Property.RECEIVE_MAXIMUM: 1})
    publish(scene, b"a", b"b")
    (one,) = client.messages()

    client.answer(PacketKind.PUBREC, one.packet_id)
    assert client.payloads() == []
    client.answer(PacketKind.PUBCOMP, one.packet_id)

    assert client.payloads() == [b"b"]


def test_an_id_that_is_completed_twice_makes_room_once(scene: Scene) -> None:
    client = subscriber(scene, qos=2, properties={Property.RECEIVE_MAXIMUM: 1})
    publish(scene, b"a", b"b", b"c")
    (one,) = client.messages()
    client.answer(PacketKind.PUBREC, one.packet_id)
    client.packets()

    client.answer(PacketKind.PUBCOMP, *[one.packet_id] * 3)

    assert client.payloads() == [b"b"]


def test_ids_that_wait_for_pubcomp_take_room_after_a_reconnect(scene: Scene) -> None:
    """MQTT-3.3.4-9: or their PUBCOMPs would make room for more than there is."""
    small: Properties = {Property.RECEIVE_MAXIMUM: 2}
    client = subscriber(scene, qos=2, properties=small)
    publish(scene, *[b"%d" % number for number in range(6)])
    before = ids(client.messages())
    client.answer(PacketKind.PUBREC, *before)
    client.drop()

    client = come(scene, properties=small)
    assert messages_of(client) == []
    for id_ in before:
        client.answer(PacketKind.PUBCOMP, id_)
        client.answer(PacketKind.PUBCOMP, id_)

    assert client.payloads() == [b"2", b"3"]


def test_the_server_has_a_window_of_its_own(tmp_path: Path) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(window=3, sys_interval_s=0))
    client = subscriber(scene)

    publish(scene, *[b"x"] * 9)

    assert len(client.messages()) == 3
    scene.close()


def test_qos_0_needs_no_window(tmp_path: Path) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(window=1, sys_interval_s=0))
    client = subscriber(scene, qos=0)

    publish(scene, *[b"x"] * 9)

    assert len(client.messages()) == 9
    scene.close()


def test_a_full_window_holds_up_all_topics_and_none_is_forgotten(
    scene: Scene,
) -> None:
    client = come(scene, properties={Property.RECEIVE_MAXIMUM: 1})
    client.subscribe("#", qos=1)
    client.packets()
    for topic in ("a", "b", "c"):
        publish(scene, topic.encode(), topic=topic)

    got: list[bytes] = []
    while found := client.messages():
        got += [one.payload for one in found]
        assert len(found) == 1
        client.answer(PacketKind.PUBACK, *ids(found))

    assert sorted(got) == [b"a", b"b", b"c"]


def test_output_is_about_as_large_as_there_is_room(scene: Scene) -> None:
    client = subscriber(scene, qos=0)
    for name in ("a", "b", "c"):
        client.subscribe(name)
    client.packets()
    del scene.peers[client.gateway]  # it does not read for a while
    for name in ("a", "b", "c"):
        publish(scene, bytes(1000), qos=0, topic=name)
    now_s = scene.clock.now_s()

    sizes = [len(b"".join(client.gateway.output(now_s, 500))) for _ in range(4)]

    assert [size > 0 for size in sizes] == [True, True, True, False]
    assert max(sizes) < 2000


# Unsubscribing


def test_what_is_in_flight_is_completed_after_unsubscribe(scene: Scene) -> None:
    client = subscriber(scene, qos=2)
    publish(scene, b"a", b"b")
    first, second = client.messages()
    client.unsubscribe("t")
    publish(scene, b"c")
    assert client.payloads() == []
    client.drop()

    again = come(scene)
    assert ids(messages_of(again)) == [first.packet_id, second.packet_id]
    for one in (first, second):
        again.answer(PacketKind.PUBREC, one.packet_id)
        again.answer(PacketKind.PUBCOMP, one.packet_id)

    assert again.payloads() == []
    assert len(scene.broker.subscriptions) == 0


def messages_of(client: Client) -> list[Message]:
    """What came with CONNACK, and since."""
    client.rest += client.packets()
    return messages(client.rest)


# Shared by key


def keyed(scene: Scene, *messages: tuple[bytes, str], qos: int = 1) -> None:
    writer = scene.client("writer")
    for number, (payload, key) in enumerate(messages, 1):
        properties: Properties = {Property.USER_PROPERTY: [("key", key)]}
        writer.publish("t", payload, qos=qos, ids=[number], properties=properties)
    writer.bye()


@pytest.mark.parametrize("qos", [1, 2])
def test_clients_that_share_by_key_get_the_next_of_a_key_when_one_is_done(
    tmp_path: Path, qos: int
) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(share_order="key", sys_interval_s=0))
    members = [come(scene, name) for name in ("one", "two")]
    for member in members:
        member.subscribe("$share/g/t", qos=qos)
        member.packets()
    keys = [f"k{number}" for number in range(8)]
    keyed(scene, *[(b"first " + key.encode(), key) for key in keys], qos=qos)
    keyed(scene, *[(b"then " + key.encode(), key) for key in keys], qos=qos)

    first = [member.messages() for member in members]

    assert all(found for found in first)
    payloads = sorted(one.payload for found in first for one in found)
    assert payloads == sorted(b"first " + key.encode() for key in keys)
    answer = PacketKind.PUBACK if qos == 1 else PacketKind.PUBREC
    for member, found in zip(members, first, strict=True):
        member.answer(answer, *ids(found))
    for member, found in zip(members, first, strict=True):
        mine = [one.payload.removeprefix(b"first ") for one in found]
        again = [one.payload for one in member.messages()]
        assert again == [b"then " + key for key in mine]


def test_what_a_member_had_goes_to_the_others_of_its_key_in_order(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(share_order="key", sys_interval_s=0))
    one, two = come(scene, "one"), come(scene, "two")
    one.subscribe("$share/g/t", qos=1)
    one.packets()
    keyed(scene, (b"1", "a"), (b"2", "a"))
    assert [message.payload for message in one.messages()] == [b"1"]
    two.subscribe("$share/g/t", qos=1)
    two.packets()

    one.drop()

    (message,) = two.messages()
    assert message.payload == b"1"
    two.answer(PacketKind.PUBACK, message.packet_id)
    assert [message.payload for message in two.messages()] == [b"2"]
