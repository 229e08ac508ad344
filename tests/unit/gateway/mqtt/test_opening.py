"""CONNECT: who may come in, which session is theirs, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Grants, Rule
from penstock.gateway.mqtt.opening import refusal
from penstock.gateway.options import MqttOptions
from penstock.wire.mqtt import (
    Connect,
    Disconnect,
    Properties,
    Property,
    Publishes,
    Reason,
    WillPacket,
)
from tests.unit.gateway.mqtt.scene import Client, Scene
from tests.unit.gateway.scene import Rules, limited

LASTING: Properties = {Property.SESSION_EXPIRY_INTERVAL: 60}


def connect(
    version: int = 5,
    client_id: str = "ann",
    *,
    clean: bool = True,
    user: str | None = None,
    password: bytes | None = None,
    properties: Properties | None = None,
) -> Connect:
    return Connect(
        version=version,
        client_id=client_id,
        clean_start=clean,
        keep_alive=0,
        user=user,
        password=password,
        properties=properties or {},
    )


@pytest.mark.parametrize(
    ("packet", "authenticate", "reason"),
    [
        (connect(), False, None),
        (connect(3, ""), False, Reason.CLIENT_IDENTIFIER_NOT_VALID),
        (connect(4, "", clean=False), False, Reason.CLIENT_IDENTIFIER_NOT_VALID),
        (connect(4, ""), False, None),
        (connect(5, "", clean=False), False, None),
        (connect(), True, Reason.NOT_AUTHORIZED),
        (connect(user="anna"), True, Reason.NOT_AUTHORIZED),
        (connect(user="anna", password=b""), True, None),
        (
            connect(properties={Property.AUTHENTICATION_METHOD: "x"}),
            False,
            Reason.BAD_AUTHENTICATION_METHOD,
        ),
    ],
)
def test_some_are_refused_before_anybody_looks_at_a_password(
    packet: Connect, reason: Reason | None, *, authenticate: bool
) -> None:
    assert refusal(packet, authenticate=authenticate) is reason


# Sessions


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_session_is_there_when_the_client_comes_again(
    scene: Scene, version: int
) -> None:
    asked = LASTING if version == 5 else {}

    def come(*, clean: bool) -> Client:
        return scene.client(version=version, clean=clean, properties=asked)

    first = come(clean=False)
    assert not first.connack().session_present
    first.drop()

    second = come(clean=False)
    # MQTT 3.1 has no such flag.
    assert second.connack().session_present is (version > 3)
    second.drop()
    assert not come(clean=True).connack().session_present


def test_a_clean_session_of_an_old_client_is_not_kept(scene: Scene) -> None:
    scene.client(version=4, clean=True).drop()

    assert len(scene.broker.sessions) == 0


def test_an_old_client_has_its_session_for_good(scene: Scene) -> None:
    scene.client(version=4, clean=False).drop()
    scene.advance(1e9)

    assert scene.client(version=4, clean=False).connack().session_present


@pytest.mark.parametrize("kill", [True, False])
def test_who_was_answered_has_a_session_after_a_restart(
    scene: Scene, *, kill: bool
) -> None:
    client = scene.client(properties=LASTING)
    client.connack()

    scene.restart(kill=kill)

    assert scene.client(clean=False, properties=LASTING).connack().session_present


def test_connack_waits_for_the_disk_if_the_session_is_kept(scene: Scene) -> None:
    scene.commits = False

    lasting, passing = scene.client("ann", properties=LASTING), scene.client("bob")

    assert lasting.packets() == []
    assert len(passing.packets()) == 1
    scene.commit()
    assert len(lasting.packets()) == 1


def test_connack_is_the_first_of_all_packets(scene: Scene) -> None:
    client = scene.client(properties=LASTING)
    client.subscribe("t", qos=1)
    client.drop()
    scene.client("writer").publish("t", b"x", qos=1, ids=[1])
    scene.commits = False

    client = scene.client(clean=False, properties=LASTING)
    scene.pump()
    assert client.packets() == []
    scene.commit()

    client.connack()
    assert [type(one) for one in client.rest] == [Publishes]


def test_a_second_connection_takes_the_session_over(scene: Scene) -> None:
    first = scene.client(properties=LASTING)
    first.subscribe("t", qos=1)
    first.packets()

    second = scene.client(clean=False, properties=LASTING)

    assert second.connack().session_present
    (told,) = first.packets()
    assert isinstance(told, Disconnect)
    assert told.reason == Reason.SESSION_TAKEN_OVER
    assert first.closed
    first.drop()
    scene.client("writer").publish("t", b"x", qos=1, ids=[1])
    assert second.payloads() == [b"x"]
    assert first.packets() == []


def test_a_session_without_time_ends_by_a_take_over(scene: Scene) -> None:
    will = WillPacket(topic="gone", payload=b"bye")
    scene.client(will=will)

    second = scene.client(clean=False, properties=LASTING)

    assert not second.connack().session_present
    assert scene.broker.log.topic("gone").next_offset == 1


def test_the_session_of_another_user_is_not_taken(tmp_path: Path) -> None:
    grants = limited(Rule("publish", "#"), user="anna").grants
    passwords = {"anna": "pw", "bert": "pw"}
    scene = Scene(tmp_path, Rules(passwords=passwords, grants=grants))
    first = scene.client("x", user="anna", password=b"pw", properties=LASTING)
    assert first.connack().reason == 0

    second = scene.client("x", user="bert", password=b"pw", properties=LASTING)

    assert second.connack().reason == Reason.NOT_AUTHORIZED
    assert not first.closed
    scene.close()


ROBBER = Rule("subscribe", "#", ("robber", "robber-*"))


@pytest.mark.parametrize(
    ("rules", "client", "kept"),
    [
        ((ROBBER,), "robber-1", True),
        ((ROBBER,), "victim-1", False),
        ((ROBBER,), "anna", True),
        ((Rule("subscribe", "a"),), "victim-1", True),
        ((Rule("publish", "a"),), "victim-1", False),
        ((), "nobody", False),
    ],
)
@pytest.mark.parametrize("version", [4, 5])
def test_a_session_is_kept_under_a_name_that_the_rules_cover(
    tmp_path: Path, version: int, rules: tuple[Rule, ...], client: str, *, kept: bool
) -> None:
    scene = Scene(tmp_path, limited(*rules))
    asked = LASTING if version == 5 else {}
    peer = scene.client(
        client,
        version=version,
        clean=False,
        user="anna",
        password=b"pw",
        properties=asked,
    )
    connack = peer.connack()

    peer.drop()

    told = connack.properties.get(Property.SESSION_EXPIRY_INTERVAL)
    assert connack.reason == 0
    assert told == (0 if version == 5 and not kept else None)  # MQTT-3.1.2-23
    assert len(scene.broker.sessions) == kept
    scene.close()


def test_who_may_not_keep_a_session_does_not_by_leaving(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(ROBBER, Rule("publish", "gone")))
    will = WillPacket(topic="gone", payload=b"x")
    peer = scene.client(
        "victim-1", user="anna", password=b"pw", will=will, properties=LASTING
    )

    peer.bye(properties=LASTING)

    assert len(scene.broker.sessions) == 0
    assert not scene.broker.log.has_topic("gone"), "it is no violation"
    scene.close()


@pytest.mark.parametrize("removed", [False, True])
def test_a_session_that_its_user_may_not_keep_is_no_bar_to_others(
    tmp_path: Path, *, removed: bool
) -> None:
    names = "anna", "bert", "carl"
    rules = Rules(
        passwords=dict.fromkeys(names, "pw"),
        grants={name: Grants(user=name) for name in names},
    )
    scene = Scene(tmp_path, rules)
    scene.client("victim-1", user="anna", password=b"pw", properties=LASTING).drop()

    def come(user: str) -> int:
        client = scene.client("victim-1", clean=False, user=user, password=b"pw")
        connack = client.connack()
        client.drop()
        assert not connack.session_present
        return connack.reason

    assert come("bert") == Reason.NOT_AUTHORIZED, "anna may keep it"
    rules.grants["anna"] = Grants(user="anna", rules=(ROBBER,))
    rules.grants["carl"] = Grants(user="carl", rules=(ROBBER,))
    if removed:
        del rules.passwords["anna"]
    assert come("carl") == Reason.NOT_AUTHORIZED, "carl may not have that name"
    assert come("bert") == 0
    scene.close()


def test_filters_that_the_user_may_not_have_any_more_are_gone(tmp_path: Path) -> None:
    rules = limited(Rule("subscribe", "#"))
    scene = Scene(tmp_path, rules)
    client = scene.client(user="anna", password=b"pw", properties=LASTING)
    client.subscribe("a", "b", qos=1)
    client.drop()

    rules.grants = limited(Rule("subscribe", "a")).grants
    scene.client(clean=False, user="anna", password=b"pw", properties=LASTING)

    session = scene.broker.sessions.get("ann")
    assert session is not None
    assert list(session.topic_filters) == ["a"]
    scene.close()


def test_there_is_a_limit_of_sessions(tmp_path: Path) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(max_clients=1, sys_interval_s=0))
    scene.client("ann").connack()

    refused = scene.client("bob")

    assert refused.connack().reason == Reason.SERVER_UNAVAILABLE
    assert refused.closed
    assert scene.client("ann").connack().reason == 0
    scene.close()


def test_a_will_that_may_not_be_published_is_refused_at_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "open/#")))
    will = WillPacket(topic="secret", payload=b"x")

    client = scene.client(user="anna", password=b"pw", will=will)

    assert client.connack().reason == Reason.NOT_AUTHORIZED
    assert len(scene.broker.sessions) == 0
    scene.close()


# What they are told


def test_a_client_without_an_id_is_given_one(scene: Scene) -> None:
    first, second = scene.client(""), scene.client("")

    ids = [
        one.connack().properties[Property.ASSIGNED_CLIENT_IDENTIFIER]
        for one in (first, second)
    ]

    assert ids == [first.gateway.who, second.gateway.who]
    assert len(set(ids)) == 2


def test_an_old_client_without_an_id_is_let_in(scene: Scene) -> None:
    client = scene.client("", version=4)

    assert client.connack().reason == 0
    assert client.gateway.who


def test_limits_are_told_as_they_are_set(tmp_path: Path) -> None:
    options = MqttOptions(
        receive_maximum=7,
        topic_alias_maximum=3,
        max_packet_bytes=5000,
        max_keep_alive_s=30,
        max_session_s=100.0,
    )
    scene = Scene(tmp_path, mqtt=options)
    asked: Properties = {Property.SESSION_EXPIRY_INTERVAL: 0xFFFFFFFF}

    client = scene.client(properties=asked, keep_alive=600)

    assert client.connack().properties == {
        Property.RECEIVE_MAXIMUM: 7,
        Property.TOPIC_ALIAS_MAXIMUM: 3,
        Property.MAXIMUM_PACKET_SIZE: 5000,
        Property.SERVER_KEEP_ALIVE: 30,
        Property.SESSION_EXPIRY_INTERVAL: 100,
    }
    scene.close()


def test_limits_that_are_those_of_the_protocol_are_not_told(tmp_path: Path) -> None:
    options = MqttOptions(
        receive_maximum=0xFFFF, topic_alias_maximum=0, max_keep_alive_s=0
    )
    scene = Scene(tmp_path, mqtt=options)

    told = scene.client(properties=LASTING, keep_alive=600).connack().properties

    assert told.keys() == {Property.MAXIMUM_PACKET_SIZE}
    scene.close()


@pytest.mark.parametrize(
    ("version", "most", "asked", "patience_s"),
    [
        (5, 60, 10, 15.0),
        (5, 60, 600, 90.0),
        (5, 60, 0, 90.0),
        (5, 0, 600, 900.0),
        (5, 0, 0, 0.0),
        (4, 60, 600, 900.0),
        (4, 60, 0, 0.0),
    ],
)
def test_silence_is_put_up_with_for_one_and_a_half_times_as_long(
    tmp_path: Path, version: int, most: int, asked: int, patience_s: float
) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(max_keep_alive_s=most))

    client = scene.client(version=version, keep_alive=asked)

    assert client.gateway.patience_s == patience_s
    scene.close()
