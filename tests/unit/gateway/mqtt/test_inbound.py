"""What clients publish, and when it is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.broker.options import BrokerOptions
from penstock.gateway.mqtt.headers import QOS, RETAIN
from penstock.gateway.options import MqttOptions
from penstock.log import Columns, LogOptions
from penstock.wire.mqtt import (
    PINGREQ,
    Ack,
    Disconnect,
    PacketKind,
    Properties,
    Property,
    Reason,
)
from tests.unit.gateway.mqtt.scene import Client, Scene
from tests.unit.gateway.scene import Rules, limited

LASTING: Properties = {Property.SESSION_EXPIRY_INTERVAL: 60}
ANSWERS = {1: PacketKind.PUBACK, 2: PacketKind.PUBREC}


def come(scene: Scene, name: str = "ann", version: int = 5) -> Client:
    """A client with a session that is kept."""
    if version < 5:
        client = scene.client(name, version=version, clean=False)
    else:
        client = scene.client(name, clean=False, properties=LASTING)
    client.packets()
    return client


def stored(scene: Scene, topic: str = "t") -> list[bytes]:
    if not scene.broker.log.has_topic(topic):
        return []
    batches = scene.broker.log.read(topic, 0)
    return [payload for batch in batches for payload in batch.payloads()]


# Answers


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("qos", [1, 2])
def test_a_publish_is_answered_when_it_is_on_disk(
    scene: Scene, version: int, qos: int
) -> None:
    client = come(scene, version=version)
    scene.commits = False

    client.publish("t", b"a", b"b", qos=qos, ids=[1, 2])
    assert client.acks() == []
    scene.commit()

    kind = ANSWERS[qos]
    assert client.acks() == [(kind, 1, 0), (kind, 2, 0)]
    assert stored(scene) == [b"a", b"b"]


def test_qos_0_is_stored_and_not_answered(scene: Scene) -> None:
    client = come(scene)

    client.publish("t", b"a")

    assert client.packets() == []
    assert stored(scene) == [b"a"]


def test_headers_tell_what_the_publish_said(scene: Scene) -> None:
    client = come(scene)

    client.publish("t", b"0")
    client.publish(
        "t",
        b"1",
        qos=1,
        ids=[1],
        retain=True,
        properties={Property.USER_PROPERTY: [("a", "b"), ("priority", "7")]},
    )

    batches = scene.broker.log.read("t", 0)
    headers = [one for batch in batches for one in batch.headers()]
    assert headers == [
        {QOS: "0"},
        {"a": "b", "priority": "7", QOS: "1", RETAIN: "1"},
    ]
    assert [one for batch in batches for one in batch.priorities()] == [0, 7]
    assert {one for batch in batches for one in batch.producers()} == {"mqtt/ann"}


# Exactly once


@pytest.mark.parametrize("version", [4, 5])
def test_the_same_id_is_the_same_message_until_its_pubrel(
    scene: Scene, version: int
) -> None:
    client = come(scene, version=version)
    client.publish("t", b"a", qos=2, ids=[1])
    client.publish("t", b"a", qos=2, ids=[1], dup=True)
    assert client.acks() == [(PacketKind.PUBREC, 1, 0)] * 2

    client.answer(PacketKind.PUBREL, 1)
    assert client.acks() == [(PacketKind.PUBCOMP, 1, 0)]
    client.publish("t", b"b", qos=2, ids=[1])

    assert stored(scene) == [b"a", b"b"]


def test_the_same_id_twice_in_one_read_is_one_message(scene: Scene) -> None:
    client = come(scene)

    client.publish("t", b"a", b"b", b"a", qos=2, ids=[1, 2, 1])

    assert stored(scene) == [b"a", b"b"]
    assert [id_ for _, id_, _ in client.acks()] == [1, 2, 1]


@pytest.mark.parametrize("kill", [True, False])
def test_ids_are_known_over_a_restart(scene: Scene, *, kill: bool) -> None:
    client = come(scene)
    client.publish("t", b"a", b"b", qos=2, ids=[1, 2])
    client.answer(PacketKind.PUBREL, 2)

    scene.restart(kill=kill)
    client = come(scene)
    client.publish("t", b"a", qos=2, ids=[1], dup=True)
    client.publish("t", b"c", qos=2, ids=[2])

    assert stored(scene) == [b"a", b"b", b"c"]


def test_what_was_not_answered_may_come_again_after_a_crash(scene: Scene) -> None:
    client = come(scene)
    scene.commits = False
    client.publish("t", b"a", qos=2, ids=[1])

    scene.restart(kill=True)
    scene.commits = True
    client = come(scene)
    client.publish("t", b"a", qos=2, ids=[1], dup=True)

    assert stored(scene) == [b"a"]


def test_a_large_retained_publish_is_stored_once_over_a_crash(tmp_path: Path) -> None:
    """Its event, what is retained of it and its id are in one group, or in none."""
    scene = Scene(tmp_path, Rules(log=LogOptions(group_bytes=4096)))
    payload = bytes(range(256)) * 12
    client = come(scene)
    scene.commits = False
    client.publish("t", payload, qos=2, ids=[1], retain=True)

    scene.restart(kill=True)
    scene.commits = True
    client = come(scene)
    client.publish("t", payload, qos=2, ids=[1], retain=True, dup=True)

    assert stored(scene) == [payload]
    scene.close()


def test_pubrel_is_answered_when_the_disk_knows_of_it(scene: Scene) -> None:
    client = come(scene)
    client.publish("t", b"a", qos=2, ids=[1])
    client.packets()
    scene.commits = False

    client.answer(PacketKind.PUBREL, 1)
    assert client.acks() == []
    scene.commit()

    assert client.acks() == [(PacketKind.PUBCOMP, 1, 0)]


@pytest.mark.parametrize(
    ("version", "reason"), [(4, 0), (5, Reason.PACKET_IDENTIFIER_NOT_FOUND)]
)
def test_pubrel_of_an_id_that_nobody_knows_is_answered_too(
    scene: Scene, version: int, reason: int
) -> None:
    client = come(scene, version=version)
    client.publish("t", b"a", qos=2, ids=[1])
    client.packets()

    client.answer(PacketKind.PUBREL, 1, 9)

    assert client.acks() == [
        (PacketKind.PUBCOMP, 1, 0),
        (PacketKind.PUBCOMP, 9, reason),
    ]


def test_a_session_that_is_not_kept_has_its_ids_while_it_lasts(scene: Scene) -> None:
    client = scene.client()
    client.packets()
    client.publish("t", b"a", qos=2, ids=[1])
    client.publish("t", b"a", qos=2, ids=[1], dup=True)
    assert len(client.acks()) == 2

    client.answer(PacketKind.PUBREL, 1)

    assert client.acks() == [(PacketKind.PUBCOMP, 1, 0)]
    assert stored(scene) == [b"a"]


# A disk that fails


@pytest.mark.parametrize("qos", [1, 2])
def test_what_could_not_be_stored_is_not_acknowledged(scene: Scene, qos: int) -> None:
    client = come(scene)
    scene.commits = False
    client.publish("t", b"a", qos=qos, ids=[1])

    scene.fail_commit()

    (told,) = client.packets()
    assert isinstance(told, Disconnect)
    assert told.reason == Reason.QUOTA_EXCEEDED
    assert client.closed


@pytest.mark.parametrize("version", [4, 5])
def test_nothing_is_said_behind_the_farewell_of_a_failed_write(
    scene: Scene, version: int
) -> None:
    client = come(scene, version=version)
    scene.commits = False
    for id_ in (1, 2, 3):
        client.publish("t", b"a", qos=1, ids=[id_])
        client.send(PINGREQ)

    scene.fail_commit()
    scene.commit()

    told = [Disconnect] if version == 5 else []
    assert [type(one) for one in client.packets()] == told
    assert client.closed


def test_an_old_client_is_cut_off_when_its_publish_could_not_be_stored(
    scene: Scene,
) -> None:
    client = come(scene, version=4)
    scene.commits = False
    client.publish("t", b"a", qos=1, ids=[1])

    scene.fail_commit()

    assert client.packets() == []
    assert client.closed


def test_the_same_publish_counts_after_a_disk_failed(scene: Scene) -> None:
    client = come(scene)
    scene.commits = False
    client.publish("t", b"a", qos=2, ids=[1])
    scene.fail_commit()
    client.drop()
    scene.commits = True

    client = come(scene)
    client.publish("t", b"a", qos=2, ids=[1], dup=True)

    assert client.acks() == [(PacketKind.PUBREC, 1, 0)]
    assert stored(scene) == [b"a"]


# Refusals


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("forbidden", Reason.NOT_AUTHORIZED),
        ("open/$", None),
        ("open/" + "x" * 2000, Reason.TOPIC_NAME_INVALID),
    ],
)
@pytest.mark.parametrize("qos", [1, 2])
def test_a_refusal_says_why(
    tmp_path: Path, topic: str, reason: Reason | None, qos: int
) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "open/#")))
    client = scene.client(user="anna", password=b"pw")
    client.packets()

    client.publish(topic, b"x", qos=qos, ids=[1])

    assert client.acks() == [(ANSWERS[qos], 1, reason or 0)]
    if reason is not None:
        assert not scene.broker.log.has_topic(topic)
        client.publish("open/a", b"y", qos=qos, ids=[1])  # the id is free again
        assert client.acks() == [(ANSWERS[qos], 1, 0)]
    scene.close()


def test_topics_of_the_system_are_not_published_to(scene: Scene) -> None:
    client = come(scene)

    client.publish("$mine", b"x", qos=1, ids=[1])

    assert client.acks() == [(PacketKind.PUBACK, 1, Reason.TOPIC_NAME_INVALID)]


def test_a_topic_that_is_being_deleted_takes_nothing_and_says_so(scene: Scene) -> None:
    client = come(scene)
    client.publish("t", b"x", qos=1, ids=[1])
    client.packets()
    scene.commits = False
    scene.broker.delete_topic("t")

    client.publish("t", b"y", qos=1, ids=[2])
    scene.commit()

    (ack,) = client.packets()
    assert isinstance(ack, Ack)
    assert ack.reason == Reason.IMPLEMENTATION_SPECIFIC_ERROR
    assert not scene.broker.log.has_topic("t")


def test_a_limit_is_told_in_words(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(max_topics=1)))
    client = come(scene)
    client.publish("a", b"x", qos=1, ids=[1])
    client.packets()

    client.publish("b", b"x", qos=1, ids=[2])

    (ack,) = client.packets()
    assert isinstance(ack, Ack)
    assert ack.reason == Reason.QUOTA_EXCEEDED
    assert "max_topics" in str(ack.properties[Property.REASON_STRING])
    scene.close()


@pytest.mark.parametrize("qos", [1, 2])
def test_an_old_client_is_acknowledged_and_its_message_is_a_dead_letter(
    tmp_path: Path, qos: int
) -> None:
    scene = Scene(tmp_path, Rules(broker=BrokerOptions(max_topics=1)))
    client = come(scene, version=4)
    client.publish("a", b"x", qos=1, ids=[1])
    client.packets()

    client.publish("b", b"lost?", qos=qos, ids=[2])
    assert client.acks() == [(ANSWERS[qos], 2, 0)]

    letters = stored(scene, "$dead-letters")
    assert len(letters) == 1
    if qos == 2:
        client.publish("b", b"lost?", qos=qos, ids=[2], dup=True)
        client.answer(PacketKind.PUBREL, 2)
        assert client.acks() == [(PacketKind.PUBREC, 2, 0), (PacketKind.PUBCOMP, 2, 0)]
        assert len(stored(scene, "$dead-letters")) == 1
    scene.close()


@pytest.mark.parametrize("version", [4, 5])
def test_what_may_not_be_published_leaves_nothing_with_qos_0(
    tmp_path: Path, version: int
) -> None:
    scene = Scene(tmp_path, limited(Rule("publish", "open/#")))
    client = scene.client(version=version, user="anna", password=b"pw")
    client.packets()

    client.publish("forbidden", b"x")

    assert client.packets() == []
    assert not client.closed
    assert scene.broker.log.topic_count == 0
    scene.close()


# Flow and aliases


@pytest.mark.parametrize("qos", [1, 2])
def test_more_unanswered_publishes_than_told_end_the_connection(
    tmp_path: Path, qos: int
) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(receive_maximum=2, sys_interval_s=0))
    client = come(scene)
    scene.commits = False

    client.publish("t", b"a", b"b", qos=qos, ids=[1, 2])
    assert not client.closed
    client.publish("t", b"c", qos=qos, ids=[3])

    assert client.gateway.closing
    scene.commit()
    last = client.packets()[-1]
    assert isinstance(last, Disconnect)
    assert last.reason == Reason.RECEIVE_MAXIMUM_EXCEEDED
    scene.close()


@pytest.mark.parametrize("qos", [1, 2])
def test_answers_make_room_for_more(tmp_path: Path, qos: int) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(receive_maximum=2, sys_interval_s=0))
    client = come(scene)

    for _ in range(5):
        client.publish("t", b"a", b"b", qos=qos, ids=[1, 2])
        if qos == 2:
            client.answer(PacketKind.PUBREL, 1, 2, 1)

    assert not client.gateway.closing
    assert len(stored(scene)) == 10
    scene.close()


def test_refused_publishes_make_room_too(tmp_path: Path) -> None:
    rules = limited(Rule("publish", "open/#"))
    options = MqttOptions(receive_maximum=2, sys_interval_s=0)
    scene = Scene(tmp_path, rules, options)
    client = scene.client(user="anna", password=b"pw")

    for qos in (1, 2, 1, 2):
        client.publish("forbidden", b"a", b"b", qos=qos, ids=[1, 2])

    assert not client.gateway.closing
    scene.close()


def test_old_clients_were_told_of_no_maximum(tmp_path: Path) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(receive_maximum=1, sys_interval_s=0))
    client = come(scene, version=4)
    scene.commits = False

    client.publish("t", *[b"x"] * 9, qos=1, ids=list(range(1, 10)))

    assert not client.gateway.closing
    scene.close()


def test_an_alias_stands_for_the_topic_it_was_told_with(scene: Scene) -> None:
    client = come(scene)
    for topic, alias in (("a", 1), ("", 1), ("b", 1), ("", 1), ("a", 100), ("", 100)):
        client.publish(topic, b"x", properties={Property.TOPIC_ALIAS: alias})

    assert (len(stored(scene, "a")), len(stored(scene, "b"))) == (4, 2)


@pytest.mark.parametrize(
    ("alias", "reason"),
    [(101, Reason.TOPIC_ALIAS_INVALID), (7, Reason.PROTOCOL_ERROR)],
)
def test_an_alias_that_stands_for_nothing_ends_the_connection(
    scene: Scene, alias: int, reason: Reason
) -> None:
    client = come(scene)

    topic = "t" if alias > 100 else ""
    client.publish(topic, b"x", properties={Property.TOPIC_ALIAS: alias})

    (told,) = client.packets()
    assert isinstance(told, Disconnect)
    assert told.reason == reason
    assert client.closed


def test_aliases_are_of_one_connection(scene: Scene) -> None:
    first, second = come(scene, "ann"), come(scene, "bob")
    first.publish("a", b"x", properties={Property.TOPIC_ALIAS: 1})

    second.publish("", b"x", properties={Property.TOPIC_ALIAS: 1})

    assert second.closed
    assert not first.closed


# A run that cannot be stored whole


LETTERS = [bytes([65 + at]) * 900 for at in range(16)]
SMALL_GROUPS = Rules(log=LogOptions(group_bytes=4096, max_event_bytes=1000))


@pytest.mark.parametrize("accident", ["kill", "full disk"])
def test_ids_are_in_the_group_of_their_messages_if_a_run_takes_several(
    tmp_path: Path, accident: str
) -> None:
    scene = Scene(tmp_path, SMALL_GROUPS)
    ann = come(scene)
    scene.commits = False
    run = [*LETTERS[:5], b"!" * 2000, *LETTERS[6:8]]

    ann.publish("t", *run, qos=2, ids=list(range(1, 9)))
    if accident == "kill":
        scene.restart(kill=True)
    else:
        scene.fail_commit()
        ann.drop()
    scene.commits = True
    assert stored(scene) == LETTERS[:4], "a group was full"
    come(scene).publish("t", *run, qos=2, ids=list(range(1, 9)), dup=True)

    assert stored(scene) == [*LETTERS[:5], *LETTERS[6:8]]
    scene.close()


def test_ids_of_what_was_stored_are_known_if_there_is_no_room_for_the_rest(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, SMALL_GROUPS)
    ann = come(scene)
    scene.commits = False
    scene.broker.publish("t", Columns([b"first"], 1))
    commit = scene.broker.log.begin_commit()
    assert commit is not None
    run = [*LETTERS[:9], b"!" * 2000, *LETTERS[10:]]

    ann.publish("t", *run, qos=2, ids=list(range(1, 17)))
    commit.run()
    scene.broker.log.end_commit(commit)
    scene.commit()
    scene.commits = True
    before = stored(scene)[1:]
    assert ann.closed
    assert 0 < len(before) < 9
    come(scene).publish("t", *run[:9], qos=2, ids=list(range(1, 10)), dup=True)

    assert stored(scene)[1:] == LETTERS[:9]
    scene.close()


def test_an_id_that_was_refused_is_refused_again_in_the_same_read(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, SMALL_GROUPS)
    ann = come(scene)

    ann.publish("t", b"!" * 2000, b"ok", b"!" * 2000, qos=2, ids=[1, 2, 1])

    assert [(id_, reason != 0) for _, id_, reason in ann.acks()] == [
        *((1, True), (2, False), (1, True)),
    ]
    assert stored(scene) == [b"ok"]
    scene.close()


def test_a_retained_message_is_taken_away_beside_one_that_does_not_fit(
    scene: Scene,
) -> None:
    ann = come(scene)
    ann.publish("t", b"{}", qos=1, ids=[1], retain=True)
    scene.broker.registry.register("t", {"type": "object"}, type_="", at_ms=0, by="")
    scene.commit()

    ann.publish("t", b"", b"no json", qos=1, ids=[2, 3], retain=True)

    assert len(scene.broker.retained) == 0
    assert [(id_, reason != 0) for _, id_, reason in ann.acks()] == [
        *((1, False), (2, False), (3, True)),
    ]
