"""One MQTT connection: what begins it, what ends it, and what is said to whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.desk.desk import Desk
from penstock.errors import Busy, PenstockError, TooManyAttempts
from penstock.gateway.options import MqttOptions
from penstock.log import Columns
from penstock.wire.mqtt import (
    PINGREQ,
    Connack,
    Connect,
    Disconnect,
    PacketKind,
    Pingresp,
    Properties,
    Property,
    Reason,
    WillPacket,
    auth,
    render_acks,
    render_connect,
    render_publishes,
)
from tests.unit.gateway.mqtt.scene import Client, Scene
from tests.unit.gateway.scene import Rules, limited

LASTING: Properties = {Property.SESSION_EXPIRY_INTERVAL: 60}
GONE = WillPacket(topic="gone", payload=b"bye")


def farewell(client: Client) -> int:
    """The reason of the DISCONNECT that ends what the client got."""
    last = client.packets()[-1]
    assert isinstance(last, Disconnect), last
    return last.reason


def will_was_published(scene: Scene) -> bool:
    return scene.broker.log.has_topic("gone")


# The beginning


def test_the_server_waits_for_connect(scene: Scene) -> None:
    client = scene.stranger()

    assert not client.gateway.settled
    assert client.packets() == []
    assert client.gateway.lingers


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_client_is_let_in(scene: Scene, version: int) -> None:
    client = scene.client(version=version)

    assert client.connack().reason == 0
    assert client.gateway.settled
    assert client.gateway.who == "ann"


@pytest.mark.parametrize(
    "data",
    [
        PINGREQ,
        b"\xff",
        b"\x00\x00",
        b"GET / HTTP/1.1\r\n",
        render_acks(PacketKind.PUBACK, [1]),
    ],
)
def test_whoever_begins_with_anything_else_is_cut_off(
    scene: Scene, data: bytes
) -> None:
    client = scene.stranger()

    client.send(data)

    assert client.packets() == []
    assert client.closed


def test_an_unknown_version_is_told_so(scene: Scene) -> None:
    packet = bytearray(
        render_connect(
            Connect(version=4, client_id="a", clean_start=True, keep_alive=0)
        )
    )
    packet[8] = 9
    client = scene.stranger(4)

    client.send(bytes(packet))

    assert client.closed
    assert scene.hub.system.listeners == {}


def test_packets_behind_connect_in_one_read_count(scene: Scene) -> None:
    first = render_connect(
        Connect(version=4, client_id="a", clean_start=True, keep_alive=0)
    )
    client = scene.stranger(4)

    client.send(first + render_publishes(b"t", [b"x"], qos=1, packet_ids=[1]) + PINGREQ)

    kinds = [type(one).__name__ for one in client.packets()]
    assert kinds == ["Connack", "Acks", "Pingresp"]


def test_a_second_connect_ends_the_connection(scene: Scene) -> None:
    client = scene.client()
    client.packets()

    client.send(
        render_connect(
            Connect(version=5, client_id="a", clean_start=True, keep_alive=0)
        )
    )

    assert farewell(client) == Reason.PROTOCOL_ERROR
    assert client.closed


# Passwords


def test_a_password_is_checked_and_what_is_behind_it_waits(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "t")))
    client = scene.stranger(4)
    connect = Connect(
        version=4,
        client_id="a",
        clean_start=True,
        keep_alive=0,
        user="anna",
        password=b"pw",
    )

    publish = render_publishes(b"t", [b"x"], qos=1, packet_ids=[1])
    client.send(render_connect(connect) + publish)

    assert [type(one).__name__ for one in client.packets()] == ["Connack", "Acks"]
    session = scene.broker.sessions.get("a")
    assert session is not None
    assert session.user == "anna"
    scene.close()


@pytest.mark.parametrize(
    ("user", "password", "reason"),
    [
        ("anna", b"wrong", Reason.BAD_USER_NAME_OR_PASSWORD),
        ("anna", b"\xff\xfe", Reason.BAD_USER_NAME_OR_PASSWORD),
        ("nobody", b"pw", Reason.BAD_USER_NAME_OR_PASSWORD),
        (None, None, Reason.NOT_AUTHORIZED),
    ],
)
def test_without_the_right_password_nobody_is_let_in(
    tmp_path: Path, user: str | None, password: bytes | None, reason: Reason
) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "pw"}))

    client = scene.client(user=user, password=password)

    assert client.connack().reason == reason
    assert client.closed
    assert len(scene.broker.sessions) == 0
    scene.close()


@pytest.mark.parametrize(("version", "code"), [(3, 4), (4, 4), (5, 0x86)])
def test_a_wrong_password_is_told_in_the_words_of_the_version(
    tmp_path: Path, version: int, code: int
) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "pw"}))

    client = scene.client(version=version, user="anna", password=b"no")

    data = client.peer.got
    assert data[3] == code
    scene.close()


@pytest.mark.parametrize(
    ("error", "version", "code"),
    [
        (TooManyAttempts("as anna", 10, 12.0), 5, 0x97),
        (TooManyAttempts("as anna", 10, 12.0), 4, 3),
        (Busy(2000), 5, 0x89),
        (Busy(2000), 3, 3),
    ],
)
def test_a_login_that_was_not_looked_at_may_be_tried_again(
    tmp_path: Path, error: PenstockError, version: int, code: int
) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "pw"}))
    client = scene.stranger(version)
    client.gateway.refusal = error

    client.send(hello(version))

    assert client.peer.got[3] == code
    assert (str(error).encode() in client.peer.got) == (version == 5)
    assert client.closed
    scene.close()


def test_a_client_of_small_packets_is_not_told_why(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(passwords={"anna": "pw"}))
    client = scene.stranger(5)
    client.gateway.refusal = TooManyAttempts("as anna", 10, 12.0)

    client.send(hello(5, {Property.MAXIMUM_PACKET_SIZE: 20}))

    assert client.peer.got == bytes((0x20, 3, 0, 0x97, 0))
    scene.close()


def hello(version: int, properties: Properties | None = None) -> bytes:
    """A CONNECT with a wrong password."""
    connect = Connect(
        version=version,
        client_id="a",
        clean_start=True,
        keep_alive=0,
        user="anna",
        password=b"no",
        properties=properties or {},
    )
    return render_connect(connect)


# The end


@pytest.mark.parametrize(("reason", "published"), [(0, False), (4, True), (0x80, True)])
def test_a_farewell_says_whether_the_will_is_to_be_published(
    scene: Scene, reason: int, *, published: bool
) -> None:
    scene.client(will=GONE).bye(reason)

    assert will_was_published(scene) is published


def test_a_client_that_just_goes_leaves_its_will(scene: Scene) -> None:
    client = scene.client(will=GONE)
    client.packets()

    client.peer.end()
    assert client.closed
    client.drop()

    assert will_was_published(scene)


def test_a_client_that_breaks_the_rules_leaves_its_will(scene: Scene) -> None:
    client = scene.client(will=GONE)
    client.send(b"\xff\xff")
    client.drop()

    assert will_was_published(scene)


def test_a_farewell_may_change_how_long_the_session_is_kept(scene: Scene) -> None:
    client = scene.client(properties=LASTING)
    client.bye(properties={Property.SESSION_EXPIRY_INTERVAL: 600})

    scene.advance(500.0)
    assert scene.broker.sessions.get("ann") is not None
    scene.advance(101.0)
    assert scene.broker.sessions.get("ann") is None


def test_a_farewell_may_end_the_session(scene: Scene) -> None:
    client = scene.client(properties=LASTING)

    client.bye(properties={Property.SESSION_EXPIRY_INTERVAL: 0})

    assert scene.broker.sessions.get("ann") is None


def test_a_farewell_gives_no_time_to_a_session_that_had_none(scene: Scene) -> None:
    """MQTT-3.14.2-2"""
    client = scene.client()
    client.packets()

    client.bye(properties={Property.SESSION_EXPIRY_INTERVAL: 60})

    assert farewell(client) == Reason.PROTOCOL_ERROR


def test_nothing_counts_behind_a_farewell(scene: Scene) -> None:
    client = scene.client(version=4)
    publish = render_publishes(b"t", [b"x"], qos=1, packet_ids=[1])

    client.send(bytes([0xE0, 0]) + publish)

    assert not scene.broker.log.has_topic("t")
    assert client.closed


@pytest.mark.parametrize(
    ("version", "told"), [(4, None), (5, Reason.KEEP_ALIVE_TIMEOUT)]
)
def test_a_silent_client_is_sent_away(
    scene: Scene, version: int, told: Reason | None
) -> None:
    client = scene.client(version=version, keep_alive=10)
    client.packets()

    client.gateway.timed_out(scene.clock.now_s())
    client.peer.pull()

    assert client.closed
    assert client.packets() == ([] if told is None else [Disconnect(reason=told)])


def test_a_server_that_ends_says_so(scene: Scene) -> None:
    client, old = scene.client("a"), scene.client("b", version=4)
    for one in (client, old):
        one.packets()
        one.gateway.part(scene.clock.now_s())
        one.peer.pull()

    assert client.packets() == [Disconnect(reason=Reason.SERVER_SHUTTING_DOWN)]
    assert old.packets() == []
    client.gateway.part(scene.clock.now_s())
    client.peer.pull()
    assert client.packets() == []


def test_what_is_wrong_is_told_in_words(scene: Scene) -> None:
    client = scene.client()
    client.packets()

    client.send(b"\x32\x05\x00\x01a\x00\x00")  # packet id 0

    (told,) = client.packets()
    assert isinstance(told, Disconnect)
    assert told.reason >= 0x80
    assert told.properties[Property.REASON_STRING]


def test_packets_in_front_of_a_bad_one_count(scene: Scene) -> None:
    client = scene.client(version=4)
    client.packets()
    publish = render_publishes(b"t", [b"x"], qos=1, packet_ids=[1])

    client.send(publish + b"\xff\xff")

    assert client.acks() == [(PacketKind.PUBACK, 1, 0)]
    assert client.closed


def test_auth_without_a_method_is_an_error(scene: Scene) -> None:
    client = scene.client()
    client.packets()

    client.send(auth(0x19, {Property.AUTHENTICATION_METHOD: "x"}))

    assert farewell(client) == Reason.PROTOCOL_ERROR


def test_a_packet_that_is_too_large_ends_the_connection(tmp_path: Path) -> None:
    options = MqttOptions(max_packet_bytes=1024, sys_interval_s=0)
    scene = Scene(tmp_path, mqtt=options)
    client = scene.client()
    client.packets()

    client.publish("t", bytes(2000), qos=1, ids=[1])

    assert farewell(client) == Reason.PACKET_TOO_LARGE
    assert not scene.broker.log.has_topic("t")
    scene.close()


def test_to_be_gone_twice_is_to_be_gone_once(scene: Scene) -> None:
    client = scene.client(will=GONE, properties=LASTING)
    now_s = scene.clock.now_s()

    client.gateway.disconnected(now_s)
    client.gateway.disconnected(now_s)
    scene.pump()

    assert scene.broker.log.topic("gone").next_offset == 1


# While it stands


def test_pings_are_answered(scene: Scene) -> None:
    client = scene.client()
    client.packets()

    client.send(PINGREQ * 3)

    assert client.packets() == [Pingresp()] * 3


def test_answers_come_in_the_order_of_what_they_answer(scene: Scene) -> None:
    client = scene.client()
    client.packets()
    scene.commits = False
    client.publish("t", b"x", qos=1, ids=[1])

    client.send(PINGREQ)
    assert client.packets() == []
    scene.commit()

    assert [type(one).__name__ for one in client.packets()] == ["Acks", "Pingresp"]


def test_a_topic_that_is_deleted_is_nobodys_business(scene: Scene) -> None:
    client = scene.client(properties=LASTING)
    client.subscribe("t", qos=1)
    scene.broker.publish("t", Columns([b"a"]))
    scene.commit()
    assert client.payloads() == [b"a"]

    scene.broker.delete_topic("t")

    scene.commit()
    scene.pump()
    assert client.packets() == []
    assert not client.closed

    scene.broker.publish("t", Columns([b"b"]))
    scene.commit()
    assert client.payloads() == [b"b"]


@pytest.mark.parametrize("filter_", ["t", "$share/g/t"])
@pytest.mark.parametrize("qos", [1, 2])
def test_a_topic_that_is_made_anew_while_its_client_is_away_begins_anew(
    scene: Scene, filter_: str, qos: int
) -> None:
    client = scene.client(properties=LASTING)
    client.subscribe(filter_, qos=qos)
    scene.broker.publish("t", Columns([b"a", b"b"]))
    scene.commit()
    assert len(client.messages()) == 2
    client.drop()
    scene.commit()

    scene.broker.delete_topic("t")

    scene.commit()
    scene.broker.publish("t", Columns([b"c", b"d", b"e"]))
    scene.commit()
    client = scene.client(clean=False, properties=LASTING)

    found = client.messages()
    assert [(one.payload, one.dup) for one in found] == [
        (b"c", False),
        (b"d", False),
        (b"e", False),
    ]
    assert len({one.packet_id for one in found}) == 3


@pytest.mark.parametrize("filter_", ["new", "#", "$share/g/#"])
def test_a_new_topic_that_could_not_be_stored_is_nobodys_business(
    scene: Scene, filter_: str
) -> None:
    client, writer = scene.client(properties=LASTING), scene.client("writer")
    client.subscribe(filter_, qos=1)
    client.packets()
    scene.commits = False
    writer.publish("new", b"lost", qos=1, ids=[1])
    scene.fail_commit()
    assert writer.closed

    scene.commits = True
    scene.broker.publish("new", Columns([b"a"]))
    scene.commit()

    assert client.payloads() == [b"a"]
    assert not client.closed


def test_a_seek_by_somebody_else_makes_it_begin_there(scene: Scene) -> None:
    client = scene.client(properties=LASTING)
    client.subscribe("t", qos=1)
    scene.broker.publish("t", Columns([b"a", b"b"]))
    scene.commit()
    assert client.payloads() == [b"a", b"b"]

    scene.broker.seek("$mqtt/ann", "t", 0)
    scene.pump()

    found = client.messages()
    assert [one.payload for one in found] == [b"a", b"b"]
    client.answer(PacketKind.PUBACK, *[one.packet_id for one in found])
    assert not client.gateway.closing


def test_clients_of_all_protocols_share_topics(scene: Scene) -> None:
    client = scene.client()
    client.subscribe("t", qos=1)
    client.packets()
    reader, writer = scene.connect("line"), scene.connect("line")

    writer.say('pub t {"msg":"from a line"}')
    reader.say("sub t")
    client.publish("t", b'"from mqtt"', qos=1, ids=[1])

    assert b"from a line" in client.payloads()[0]
    assert any("from mqtt" in line for line in reader.read())


def test_connack_tells_of_limits(scene: Scene) -> None:
    client = scene.client()

    (packet,) = client.packets()

    assert isinstance(packet, Connack)
    assert packet.properties[Property.RECEIVE_MAXIMUM] == 1000


# Its session is ended by somebody


def test_a_client_whose_session_is_ended_is_told_and_its_will_published(
    scene: Scene,
) -> None:
    delayed = WillPacket(
        topic="gone", payload=b"bye", properties={Property.WILL_DELAY_INTERVAL: 60}
    )
    client = scene.client(properties=LASTING, will=delayed)
    client.subscribe("t", qos=1)

    Desk(scene.broker).ask("mqtt.sessions.end", {"client": "ann"})
    scene.pump()

    assert farewell(client) == Reason.ADMINISTRATIVE_ACTION
    assert client.gateway.closing
    assert scene.broker.sessions.get("ann") is None
    assert will_was_published(scene)
    client.drop()
    assert scene.broker.sessions.get("ann") is None


def test_a_client_of_version_3_whose_session_is_ended_is_cut_off(scene: Scene) -> None:
    client = scene.client(version=4, clean=False)
    client.packets()

    Desk(scene.broker).ask("mqtt.sessions.end", {"client": "ann"})
    scene.pump()

    assert client.packets() == []
    assert client.gateway.closing
    assert scene.broker.sessions.get("ann") is None


def test_the_session_of_a_client_that_is_away_ends_with_its_will(scene: Scene) -> None:
    delayed = WillPacket(
        topic="gone", payload=b"bye", properties={Property.WILL_DELAY_INTERVAL: 60}
    )
    scene.client(properties=LASTING, will=delayed).drop()
    assert not will_was_published(scene)

    Desk(scene.broker).ask("mqtt.sessions.end", {"client": "ann"})
    scene.advance(0.0)

    assert will_was_published(scene)
    assert scene.broker.sessions.get("ann") is None
