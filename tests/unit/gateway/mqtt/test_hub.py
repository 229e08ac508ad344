"""What all MQTT connections of a server have in common."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from penstock.access.grants import Rule
from penstock.broker.options import BrokerOptions
from penstock.errors import Backlogged, LimitReached
from penstock.gateway.mqtt import hub as hub_module
from penstock.gateway.mqtt.headers import QOS, RETAIN
from penstock.gateway.mqtt.hub import publish
from penstock.gateway.options import MqttOptions
from penstock.log import Columns, LogOptions
from penstock.sessions.retained import TOPIC as RETAINED
from penstock.wire.mqtt import PacketKind, Properties, Property, Reason, WillPacket
from tests.unit.gateway.mqtt.scene import Client, Scene, acks
from tests.unit.gateway.scene import Rules, limited

FOREVER = 0xFFFFFFFF
WILL = WillPacket(topic="gone", payload=b"bye", qos=1)


def lasting(scene: Scene, name: str = "ann", seconds: int = 60) -> Client:
    return scene.client(name, properties={Property.SESSION_EXPIRY_INTERVAL: seconds})


def stored(scene: Scene, topic: str = "gone") -> list[bytes]:
    if not scene.broker.log.has_topic(topic):
        return []
    batches = scene.broker.log.read(topic, 0)
    return [payload for batch in batches for payload in batch.payloads()]


# Sessions end


def test_a_session_without_time_ends_with_its_connection(scene: Scene) -> None:
    client = scene.client()

    client.drop()

    assert scene.broker.sessions.get("ann") is None


def test_a_session_ends_when_its_time_is_over(scene: Scene) -> None:
    lasting(scene).drop()

    scene.advance(59.9)
    assert scene.broker.sessions.get("ann") is not None
    scene.advance(0.2)

    assert scene.broker.sessions.get("ann") is None


def test_a_session_that_is_never_to_end_stays(scene: Scene) -> None:
    lasting(scene, seconds=FOREVER).drop()

    scene.advance(1e9)

    assert scene.broker.sessions.get("ann") is not None


@pytest.mark.parametrize(
    ("most", "asked", "kept"),
    [
        (0.0, 5, 5.0),
        (0.0, FOREVER, None),
        (10.0, 5, 5.0),
        (10.0, 50, 10.0),
        (10.0, FOREVER, 10.0),
        (10.0, 0, 0.0),
    ],
)
def test_a_session_is_kept_as_long_as_asked_for_and_allowed(
    tmp_path: Path, most: float, asked: int, kept: float | None
) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(max_session_s=most))

    assert scene.hub.expiry(asked) == kept
    scene.close()


def test_time_away_counts_over_a_restart(scene: Scene) -> None:
    lasting(scene).drop()
    scene.commit()
    scene.advance(40.0)

    scene.restart()
    scene.advance(10.0)
    assert scene.broker.sessions.get("ann") is not None
    scene.advance(11.0)

    assert scene.broker.sessions.get("ann") is None


def test_a_client_that_comes_too_late_finds_no_session(scene: Scene) -> None:
    """Before anybody has looked whose time is over: MQTT-3.1.2-23"""
    lasting(scene).drop()
    scene.clock.advance(61.0)

    client = scene.client(
        clean=False, properties={Property.SESSION_EXPIRY_INTERVAL: 60}
    )

    assert not client.connack().session_present


# Wills


def test_a_will_is_published_when_the_connection_is_lost(scene: Scene) -> None:
    scene.client(will=WILL).drop()

    assert stored(scene) == [b"bye"]


def test_a_will_is_not_published_after_a_farewell(scene: Scene) -> None:
    scene.client(will=WILL).bye()
    scene.advance(100.0)

    assert stored(scene) == []


def test_a_will_waits_for_its_delay(scene: Scene) -> None:
    delayed = WillPacket(
        topic="gone", payload=b"bye", properties={Property.WILL_DELAY_INTERVAL: 10}
    )
    asked = {Property.SESSION_EXPIRY_INTERVAL: 60}
    scene.client(will=delayed, properties={**asked}).drop()

    scene.advance(9.0)
    assert stored(scene) == []
    scene.advance(2.0)
    assert stored(scene) == [b"bye"]
    scene.advance(100.0)
    assert stored(scene) == [b"bye"]


def test_a_will_is_not_published_if_the_client_is_back_before(scene: Scene) -> None:
    delayed = WillPacket(
        topic="gone", payload=b"bye", properties={Property.WILL_DELAY_INTERVAL: 10}
    )
    asked = {Property.SESSION_EXPIRY_INTERVAL: 60}
    scene.client(will=delayed, properties={**asked}).drop()
    scene.advance(5.0)

    scene.client(clean=False, properties={**asked})
    scene.advance(100.0)

    assert stored(scene) == []


def test_a_will_does_not_wait_longer_than_its_session_lives(scene: Scene) -> None:
    delayed = WillPacket(
        topic="gone", payload=b"bye", properties={Property.WILL_DELAY_INTERVAL: 100}
    )
    asked = {Property.SESSION_EXPIRY_INTERVAL: 10}
    scene.client(will=delayed, properties={**asked}).drop()

    scene.advance(11.0)

    assert stored(scene) == [b"bye"]
    assert scene.broker.sessions.get("ann") is None


@pytest.mark.parametrize("kill", [True, False])
def test_a_will_outlives_the_server(scene: Scene, *, kill: bool) -> None:
    asked = {Property.SESSION_EXPIRY_INTERVAL: 60}
    scene.client(will=WILL, properties={**asked})
    if kill:
        scene.restart(kill=True)
    else:
        scene.restart()

    scene.advance(0.1)

    assert stored(scene) == [b"bye"]
    scene.restart(kill=True)
    scene.advance(100.0)
    assert stored(scene) == [b"bye"]


def test_a_will_says_all_that_a_message_can(scene: Scene) -> None:
    will = WillPacket(
        topic="gone",
        payload=b"bye",
        qos=1,
        retain=True,
        properties={
            Property.MESSAGE_EXPIRY_INTERVAL: 30,
            Property.CONTENT_TYPE: "text/plain",
            Property.USER_PROPERTY: [("a", "b"), ("priority", "4")],
        },
    )
    now_ms = scene.broker.log.now_ms()
    scene.client(will=will).drop()

    (batch,) = scene.broker.log.read("gone", 0)
    assert batch.headers() == [
        {
            "a": "b",
            "priority": "4",
            "mqtt.content-type": "text/plain",
            QOS: "1",
            RETAIN: "1",
        }
    ]
    assert batch.expires() == [now_ms + 30_000]
    assert batch.priorities() == [4]
    assert batch.producers() == ["mqtt/ann"]
    assert len(scene.broker.retained) == 1


@pytest.mark.parametrize("restart", ["none", "kill", "close"])
@pytest.mark.parametrize("twice", [False, True])
def test_a_will_is_the_event_that_a_publish_would_be(
    scene: Scene, restart: str, *, twice: bool
) -> None:
    said: Properties = {
        Property.PAYLOAD_FORMAT_INDICATOR: 1,
        Property.MESSAGE_EXPIRY_INTERVAL: 3600,
        Property.CONTENT_TYPE: "text/plain",
        Property.RESPONSE_TOPIC: "answers",
        Property.CORRELATION_DATA: b"\x00\xff",
        Property.USER_PROPERTY: [
            ("priority", "4"),
            ("key", "k"),
            ("not_before", "5000"),
            *([("a", "1"), ("a", "2")] if twice else [("a", "b")]),
        ],
    }
    will = WillPacket(topic="t", payload=b"bye", qos=1, properties={**said})
    ann = scene.client(
        will=will, properties={Property.SESSION_EXPIRY_INTERVAL: FOREVER}
    )
    ann.publish("t", b"bye", qos=1, ids=[1], properties={**said})

    if restart == "none":
        ann.drop()
    else:
        scene.restart(kill=restart == "kill")
    scene.advance(100.0)

    published, willed = (
        event for batch in scene.broker.log.read("t", 0) for event in batch.events()
    )
    assert (willed.key, willed.priority, willed.not_before_ms) == (b"k", 4, 5000)
    for one in (published, willed):
        assert one.expires_ms == one.timestamp_ms + 3_600_000
    place = {"offset": 0, "id": "", "timestamp_ms": 0, "expires_ms": 0}
    assert replace(willed, **place) == replace(published, **place)


def test_a_will_that_cannot_be_published_is_told_and_the_session_ends(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    client = scene.client(will=WillPacket(topic="$forbidden", payload=b"x"))

    with caplog.at_level(logging.WARNING):
        client.drop()

    (record,) = caplog.records
    assert record.__dict__["action"] == "will_failed"
    assert scene.broker.sessions.get("ann") is None


def test_wills_that_cannot_be_published_do_not_fill_the_log(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        scene.client(
            f"c{number}", will=WillPacket(topic="$forbidden", payload=b"x")
        ).drop()
    scene.broker.tick(0.0)
    scene.broker.tick(60.0)

    told = [one for one in caplog.records if vars(one)["action"] == "will_failed"]
    assert [vars(one)["count"] for one in told] == [1, 19]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("how", ["removed", "other rules"])
@pytest.mark.parametrize("delay_s", [0, 5])
def test_a_will_is_judged_by_what_its_user_may_do_when_it_is_published(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    how: str,
    delay_s: int,
    *,
    restart: bool,
) -> None:
    may = Rule("publish", "gone"), Rule("subscribe", "gone")
    rules = limited(*may)
    scene = Scene(tmp_path, rules)
    delay: Properties = {Property.WILL_DELAY_INTERVAL: delay_s}
    will = WillPacket(topic="gone", payload=b"bye", retain=True, properties=delay)
    asked: Properties = {Property.SESSION_EXPIRY_INTERVAL: 60}
    client = scene.client(user="anna", password=b"pw", will=will, properties=asked)
    assert client.connack().reason == 0

    if how == "removed":
        del rules.passwords["anna"]
        rules.passwords["bert"] = "pw"
    else:
        rules.grants = limited(may[1]).grants
    if restart:
        scene.restart(kill=True)
    else:
        client.drop()
    scene.advance(6.0)

    assert stored(scene) == []
    session = scene.broker.sessions.get("ann")
    assert session is not None and session.will is None
    assert {one.getMessage() for one in caplog.records} == {
        "the will of ann was not published: user anna may not publish to gone"
    }
    scene.close()


FULL: dict[str, Properties] = {
    "lasting": {Property.SESSION_EXPIRY_INTERVAL: 60},
    "ending": {},
}


@pytest.mark.parametrize("properties", FULL.values(), ids=FULL)
@pytest.mark.parametrize("times", [1, 3])
def test_a_will_whose_commit_fails_is_stored_in_the_end_and_once(
    scene: Scene, properties: Properties, times: int
) -> None:
    client = scene.client(will=WILL, properties={**properties})
    scene.commits = False
    client.drop()

    for _ in range(times):
        scene.fail_commit()
        assert stored(scene) == []
        scene.advance(1.1)
    scene.commits = True
    scene.advance(100.0)

    assert stored(scene) == [b"bye"]
    scene.restart(kill=True)
    scene.advance(100.0)
    assert stored(scene) == [b"bye"]


def test_a_will_whose_commit_failed_outlives_a_crash(scene: Scene) -> None:
    client = scene.client(will=WILL, properties={**FULL["lasting"]})
    scene.commits = False
    client.drop()
    scene.fail_commit()
    scene.commit()

    scene.restart(kill=True)
    scene.commits = True
    scene.advance(0.1)

    assert stored(scene) == [b"bye"]


def test_the_will_of_a_session_that_ended_with_a_failed_commit_outlives_a_crash(
    scene: Scene,
) -> None:
    delayed = WillPacket(
        topic="gone", payload=b"bye", properties={Property.WILL_DELAY_INTERVAL: 100}
    )
    scene.client(will=delayed, properties={**FULL["lasting"]}).drop()
    scene.commits = False
    scene.advance(61.0)
    assert scene.broker.sessions.get("ann") is None
    scene.fail_commit()
    scene.commit()

    scene.restart(kill=True)
    scene.commits = True
    scene.advance(2.0)

    assert stored(scene) == [b"bye"]
    assert scene.broker.sessions.get("ann") is None


@pytest.mark.parametrize("clean", [True, False])
def test_a_client_that_is_back_does_not_take_a_failed_will_away(
    scene: Scene, *, clean: bool
) -> None:
    client = scene.client(will=WILL, properties={**FULL["lasting"]})
    scene.commits = False
    client.drop()
    other = WillPacket(topic="gone", payload=b"other", qos=1)

    back = scene.client(clean=clean, will=other, properties={**FULL["lasting"]})
    scene.fail_commit()
    scene.commits = True
    scene.advance(1.1)

    assert stored(scene) == [b"bye"]
    back.drop()
    assert stored(scene) == [b"bye", b"other"]


def test_a_will_that_the_log_does_not_take_waits(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends, as another takes its place; its will does not go with it."""
    scene.client(will=WILL)

    with monkeypatch.context() as patch:
        patch.setattr(scene.broker, "publish", refusing)
        scene.client()
    assert stored(scene) == []
    scene.advance(1.1)

    assert stored(scene) == [b"bye"]


def test_wills_that_wait_are_limited(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hub_module, "MAX_UNPUBLISHED", 2)
    clients = [scene.client(f"c{number}", will=WILL) for number in range(3)]
    scene.commits = False
    for client in clients:
        client.drop()
    scene.fail_commit()
    scene.commits = True

    with caplog.at_level(logging.WARNING):
        scene.advance(1.1)

    assert stored(scene) == [b"bye"] * 2
    told = [record.__dict__.get("action") for record in caplog.records]
    assert told.count("will_failed") == 1


def refusing(*_: object, **__: object) -> None:
    raise Backlogged(2, 1)


# Together


def test_assigned_ids_are_those_of_nobody(scene: Scene) -> None:
    start = scene.broker.log.now_ms()
    taken = scene.client(f"auto-{start:x}-1")

    names = {scene.hub.assigned_id() for _ in range(3)}

    assert len(names) == 3
    assert taken.gateway.who not in names


def test_large_sessions_are_swept(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "MANY_TOPICS", 2)
    client = scene.client()
    client.subscribe("#", qos=1)
    writer = scene.client("writer")
    for number in range(4):
        writer.publish(f"topic/{number}", b"x", qos=1, ids=[1])
    ids = [one.packet_id for one in client.messages()]
    for id_ in ids[:3]:
        client.send(bytes([0x40, 2]) + id_.to_bytes(2, "big"))
    session = scene.broker.sessions.get("ann")
    assert session is not None
    assert len(session.topics) == 4

    scene.hub.sweep()

    assert len(session.topics) == 1


# Publishing


def test_a_message_and_what_is_retained_of_it_are_in_one_group(tmp_path: Path) -> None:
    """Or a crash between the two would have a QoS 2 publish stored twice."""
    scene = Scene(tmp_path, Rules(log=LogOptions(group_bytes=2048)))
    scene.commits = False
    broker = scene.broker
    events = Columns([bytes(1500)])

    outcome = publish(broker, "t", events, retain=True, relaxed=False)

    assert broker.group == outcome.group
    assert broker.log.topic(RETAINED).next_offset == 1
    scene.close()


def test_a_message_that_cannot_be_retained_is_not_published(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(max_retained=1)))
    publish(scene.broker, "a", Columns([b"x"]), retain=True, relaxed=False)
    scene.commit()

    with pytest.raises(LimitReached):
        publish(scene.broker, "b", Columns([b"x"]), retain=True, relaxed=False)

    assert not scene.broker.log.has_topic("b")
    scene.close()


def test_the_last_of_a_run_is_retained(scene: Scene) -> None:
    events = Columns([b"a", b"b", b"c"])
    publish(scene.broker, "t", events, retain=True, relaxed=False)
    scene.commit()

    assert stored(scene, "t") == [b"a", b"b", b"c"]
    assert stored(scene, RETAINED) == [b"c"]


def test_what_takes_a_retained_message_away_is_an_event_too(scene: Scene) -> None:
    for payload in (b"x", b""):
        publish(scene.broker, "t", Columns([payload]), retain=True, relaxed=False)
        scene.commit()

    assert stored(scene, "t") == [b"x", b""]
    assert len(scene.broker.retained) == 0


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_takes_a_retained_message_away_need_not_fit_a_schema(
    scene: Scene, version: int, qos: int
) -> None:
    integers_only(scene)
    client = scene.client(version=version)
    ids = [1] if qos else None
    client.publish("t", b"5", qos=qos, ids=ids, retain=True)
    if qos == 2:
        client.answer(PacketKind.PUBREL, 1)
    assert len(scene.broker.retained) == 1
    client.packets()

    client.publish("t", b"", qos=qos, ids=[2] if qos else None, retain=True)

    assert len(scene.broker.retained) == 0
    assert stored(scene, "t") == [b"5"], "it is no event of a topic that it cannot fit"
    assert acks(client.packets()) == (
        []
        if not qos
        else [(PacketKind.PUBACK if qos == 1 else PacketKind.PUBREC, 2, 0)]
    )
    scene.restart(kill=True)
    assert len(scene.broker.retained) == 0
    assert not scene.broker.log.has_topic("$dead-letters")


def integers_only(scene: Scene) -> None:
    """Let the topic ``t`` take nothing else."""
    scene.broker.create_topic("t")
    schema = b'{"type":"integer"}'
    scene.broker.registry.register("t", schema, type_="", at_ms=0, by="")
    scene.commit()


def test_there_may_be_nothing_to_take_away(scene: Scene) -> None:
    integers_only(scene)
    client = scene.client()
    client.packets()

    client.publish("t", b"", qos=1, ids=[1], retain=True)
    client.publish("t", b"", qos=1, ids=[2])

    assert [one[1:] for one in acks(client.packets())] == [
        (1, 0),
        (2, Reason.PAYLOAD_FORMAT_INVALID),
    ]
