"""SUBSCRIBE and UNSUBSCRIBE, and what was retained."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.desk.retained import RetainedDesk
from penstock.gateway.mqtt import outbound
from penstock.gateway.options import MqttOptions
from penstock.wire.mqtt import (
    Disconnect,
    PacketKind,
    Properties,
    Property,
    Reason,
    RequestedFilter,
    Suback,
)
from tests.unit.gateway.mqtt.scene import Client, Scene, messages
from tests.unit.gateway.scene import limited

LASTING: Properties = {Property.SESSION_EXPIRY_INTERVAL: 60}
HOUR_S = 3600.0


@pytest.fixture
def client(scene: Scene) -> Client:
    client = scene.client()
    client.packets()
    return client


def retain(scene: Scene, *topics: str, qos: int = 1, payload: bytes = b"kept") -> None:
    writer = scene.client("writer")
    for topic in topics:
        ids = [1] if qos else None
        writer.publish(topic, payload, qos=qos, ids=ids, retain=True)
        if qos == 2:
            writer.answer(PacketKind.PUBREL, 1)
    writer.bye()


# Answers


def test_every_filter_has_its_answer(client: Client) -> None:
    client.subscribe(
        RequestedFilter("a", 0),
        RequestedFilter("a/#", 1),
        RequestedFilter("+/b", 2),
        RequestedFilter("a/#/b", 1),
    )

    assert client.suback() == [0, 1, 2, Reason.TOPIC_FILTER_INVALID]


@pytest.mark.parametrize("filter_", ["a/#/b", "a+", "#a", "$share/g", "$share//a"])
@pytest.mark.parametrize(
    ("version", "reason"), [(4, 0x80), (5, Reason.TOPIC_FILTER_INVALID)]
)
def test_a_filter_that_is_none_is_refused(
    scene: Scene, filter_: str, version: int, reason: int
) -> None:
    client = scene.client(version=version)
    client.packets()

    client.subscribe(filter_, qos=1)

    assert client.suback() == [reason]


def test_unsubscribe_says_what_was_there(client: Client) -> None:
    client.subscribe("a", "b")
    client.packets()

    client.unsubscribe("a", "c")

    assert client.unsuback() == [0, Reason.NO_SUBSCRIPTION_EXISTED]


BAD = ["a/#/b", "a+", "#a", "$share/g", "$share//a", "$share/+/a"]


@pytest.mark.parametrize("filter_", BAD)
def test_a_filter_to_end_that_is_none_is_refused(client: Client, filter_: str) -> None:
    client.subscribe("a")
    client.packets()

    client.unsubscribe(filter_, "a")

    assert client.unsuback() == [Reason.TOPIC_FILTER_INVALID, 0]


@pytest.mark.parametrize("filter_", BAD)
def test_a_filter_to_end_that_is_none_ends_an_old_connection(
    scene: Scene, filter_: str
) -> None:
    client = scene.client(version=4, clean=False)
    client.subscribe("a", qos=1)
    client.packets()

    client.unsubscribe("a", filter_)

    assert client.closed
    assert client.packets() == []
    session = scene.broker.sessions.get("ann")
    assert session is not None and list(session.topic_filters) == ["a"], (
        "nothing was ended"
    )


def test_answers_of_a_kept_session_wait_for_the_disk(scene: Scene) -> None:
    client = scene.client(properties=LASTING)
    client.packets()
    scene.commits = False

    client.subscribe("a")
    assert client.packets() == []
    scene.commit()
    assert client.suback() == [0]

    client.unsubscribe("a")
    assert client.packets() == []
    scene.commit()
    assert client.unsuback() == [0]


@pytest.mark.parametrize("kill", [True, False])
def test_a_subscription_outlives_the_server(scene: Scene, *, kill: bool) -> None:
    client = scene.client(properties=LASTING)
    client.subscribe("a/+", qos=1)
    assert client.packets()

    scene.restart(kill=kill)
    scene.client("writer").publish("a/b", b"x", qos=1, ids=[1])

    assert scene.client(clean=False, properties=LASTING).payloads() == [b"x"]


def test_no_local_of_a_shared_subscription_is_an_error(client: Client) -> None:
    client.subscribe(RequestedFilter("$share/g/a", 1, no_local=True))

    (told,) = client.packets()
    assert isinstance(told, Disconnect)
    assert told.reason == Reason.PROTOCOL_ERROR


def test_filters_that_are_not_granted_are_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("subscribe", "open/#")))
    client = scene.client(user="anna", password=b"pw")
    client.packets()

    client.subscribe("open/a", "#", "$share/g/open/b", "$share/g/#")

    denied = Reason.NOT_AUTHORIZED
    assert client.suback() == [0, denied, 0, denied]
    scene.close()


def test_filters_that_nobody_may_have_are_refused(tmp_path: Path) -> None:
    options = MqttOptions(no_subscribe="secret/# x", sys_interval_s=0)
    scene = Scene(tmp_path, mqtt=options)
    client = scene.client()
    client.packets()

    client.subscribe("secret/a", "$share/g/secret/+", "x", "y")

    no = Reason.UNSPECIFIED_ERROR
    assert client.suback() == [no, no, no, 0]
    scene.close()


def test_shared_subscriptions_can_be_what_nobody_may_have(tmp_path: Path) -> None:
    options = MqttOptions(no_subscribe="$share/#", sys_interval_s=0)
    scene = Scene(tmp_path, mqtt=options)
    client = scene.client()
    client.packets()

    client.subscribe("$share/g/a", "$share/g/#", "a", "#")

    no = Reason.UNSPECIFIED_ERROR
    assert client.suback() == [no, no, 0, 0]
    scene.close()


WIDER = ["#", "+/a", "+/#", "secret/+", "$share/g/#", "$share/g/+/a"]


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("filter_", WIDER)
def test_a_wider_filter_does_not_bring_what_nobody_may_have(
    tmp_path: Path, filter_: str, qos: int
) -> None:
    options = MqttOptions(no_subscribe="secret/a", sys_interval_s=0)
    scene = Scene(tmp_path, mqtt=options)
    retain(scene, "secret/a", "open/a")
    client = scene.client(properties=LASTING)
    client.packets()

    client.subscribe(filter_, qos=qos)
    retain(scene, "secret/a", "open/a", "secret/b")

    assert "secret/a" not in {one.topic for one in client.messages()}
    scene.close()


@pytest.mark.parametrize("filter_", ["#", "$share/g/#"])
def test_what_nobody_may_have_from_now_on_is_not_sent_after_a_restart(
    tmp_path: Path, filter_: str
) -> None:
    scene = Scene(tmp_path)
    client = scene.client(properties=LASTING)
    client.subscribe(filter_, qos=2)
    client.drop()
    for topic in ("secret/a", "open/a"):
        scene.client("writer").publish(topic, b"x", qos=1, ids=[1])
    scene.mqtt = MqttOptions(no_subscribe="secret/#", sys_interval_s=0)

    scene.restart()

    again = scene.client(clean=False, properties=LASTING)
    assert [one.topic for one in again.messages()] == ["open/a"]
    assert all(one.topic != "secret/a" for one in scene.broker.subscriptions)
    scene.close()


def test_what_nobody_may_know_of_the_server_is_not_told(tmp_path: Path) -> None:
    options = MqttOptions(no_subscribe="$SYS/broker/uptime")
    scene = Scene(tmp_path, mqtt=options)
    client = scene.client()

    client.subscribe("$SYS/#")

    topics = {one.topic for one in client.messages()}
    assert "$SYS/broker/version" in topics
    assert "$SYS/broker/uptime" not in topics
    scene.close()


def test_there_is_a_limit_of_filters(tmp_path: Path) -> None:
    scene = Scene(tmp_path, mqtt=MqttOptions(max_filters=2, sys_interval_s=0))
    client = scene.client()
    client.packets()

    client.subscribe("a", "b", "c", "a")

    assert client.suback() == [0, 0, Reason.QUOTA_EXCEEDED, 0]
    scene.close()


def test_a_packet_with_too_many_filters_counts_for_nothing(tmp_path: Path) -> None:
    options = MqttOptions(max_packet_filters=2, sys_interval_s=0)
    scene = Scene(tmp_path, mqtt=options)
    client = scene.client(properties=LASTING)
    client.subscribe("a", "b")
    assert client.suback() == [0, 0]

    client.subscribe("c", "d", "e")

    (last,) = client.packets()
    assert isinstance(last, Disconnect)
    assert last.reason == Reason.QUOTA_EXCEEDED
    assert (
        last.properties[Property.REASON_STRING] == "SUBSCRIBE has more than 2 filters"
    )
    assert client.closed
    session = scene.broker.sessions.get("ann")
    assert session is not None
    assert list(session.topic_filters) == ["a", "b"]
    scene.close()


def test_a_filter_that_comes_often_is_looked_at_once(scene: Scene) -> None:
    retain(scene, "a")
    client = scene.client()

    client.subscribe(*["a"] * 300, *["$SYS/broker/version"] * 300)

    packets = client.packets()
    (answer,) = [one for one in packets if isinstance(one, Suback)]
    assert answer.reasons == [0] * 600
    topics = [one.topic for one in messages(packets)]
    assert sorted(topics) == ["$SYS/broker/version", "a"]


def test_of_filters_that_are_the_same_the_last_counts(client: Client) -> None:
    client.subscribe(
        RequestedFilter("a", 1), RequestedFilter("a", 0), RequestedFilter("a", 1)
    )

    assert client.suback() == [1, 0, 1]
    client.publish("a", b"x", qos=1, ids=[1])
    assert [one.qos for one in client.messages()] == [1]


def test_a_filter_is_ended_once(client: Client) -> None:
    client.subscribe("a", "$SYS/#")

    client.unsubscribe("a", "$SYS/#", "a", "b")

    none = Reason.NO_SUBSCRIPTION_EXISTED
    assert client.unsuback() == [0, 0, none, none]
    assert not list(client.gateway.system_filters)


# What was retained


@pytest.mark.parametrize("wanted", [0, 1, 2])
@pytest.mark.parametrize("published", [0, 1, 2])
def test_a_subscription_brings_what_was_retained(
    scene: Scene, client: Client, wanted: int, published: int
) -> None:
    retain(scene, "a/1", "a/2", "b", qos=published)

    client.subscribe("a/+", qos=wanted)

    found = client.messages()
    assert [(one.topic, one.payload, one.retain) for one in found] == [
        ("a/1", b"kept", True),
        ("a/2", b"kept", True),
    ]
    assert {one.qos for one in found} == {min(wanted, published)}


def test_suback_comes_before_what_was_retained(scene: Scene, client: Client) -> None:
    retain(scene, "a")

    client.subscribe("a", qos=1)

    assert isinstance(client.packets()[0], Suback)


@pytest.mark.parametrize(
    ("handling", "first", "second"), [(0, 1, 1), (1, 1, 0), (2, 0, 0)]
)
@pytest.mark.parametrize("qos", [0, 1])
def test_retain_handling_says_when(
    scene: Scene, client: Client, handling: int, first: int, second: int, qos: int
) -> None:
    retain(scene, "a")
    wanted = RequestedFilter("a", qos, retain_handling=handling)

    for count in (first, second):
        client.subscribe(wanted)
        found = client.messages()
        assert len(found) == count
        client.answer(PacketKind.PUBACK, *[one.packet_id for one in found if one.qos])


def test_a_shared_subscription_brings_nothing_retained(
    scene: Scene, client: Client
) -> None:
    retain(scene, "a")

    client.subscribe("$share/g/a", qos=1)

    assert client.messages() == []


def test_nothing_falls_between_what_was_retained_and_what_comes(
    scene: Scene, client: Client
) -> None:
    retain(scene, "a", payload=b"old")
    writer = scene.client("writer")
    scene.commits = False
    writer.publish("a", b"new", qos=1, ids=[1], retain=True)

    client.subscribe("a", qos=1)
    writer.publish("a", b"newer", qos=1, ids=[2], retain=True)
    scene.commits = True
    scene.commit()

    found = [(one.payload, one.retain) for one in client.messages()]
    # What was there when the SUBSCRIBE came is the first; the live one follows.
    assert found in (
        [(b"new", True), (b"newer", False)],
        [(b"newer", False)],
    )


def test_what_was_retained_is_owed_like_anything_else(scene: Scene) -> None:
    retain(scene, *[f"a/{number}" for number in range(5)])
    asked: Properties = {**LASTING, Property.RECEIVE_MAXIMUM: 2}
    client = scene.client(properties=asked)
    client.subscribe("a/+", qos=1)
    first = client.messages()
    assert len(first) == 2
    client.answer(PacketKind.PUBACK, first[0].packet_id)
    client.packets()
    scene.commit()

    scene.restart(kill=True)
    client = scene.client(clean=False, properties=asked)

    found: list[str] = []
    while more := client.messages():
        found += [one.topic for one in more]
        assert all(one.retain for one in more)
        client.answer(PacketKind.PUBACK, *[one.packet_id for one in more])
    assert sorted(found) == ["a/1", "a/2", "a/3", "a/4"]


def test_a_retained_message_that_has_expired_is_not_shown(scene: Scene) -> None:
    writer = scene.client("writer")
    expiry: Properties = {Property.MESSAGE_EXPIRY_INTERVAL: 5}
    for number, topic in enumerate(("a", "b"), 1):
        properties = expiry if topic == "a" else None
        writer.publish(
            topic, b"x", qos=1, ids=[number], retain=True, properties=properties
        )
    scene.advance(10.0)

    for qos in (0, 1):
        client = scene.client(f"client {qos}")
        client.subscribe("#", qos=qos)
        assert [one.topic for one in client.messages()] == ["b"]


def retain_later(scene: Scene, *topics: str, payload: bytes = b"later") -> None:
    """Retain messages that are for in an hour."""
    writer = scene.client("writer")
    due_ms = int((scene.clock.now_s() + HOUR_S) * 1000)
    properties: Properties = {Property.USER_PROPERTY: [("not_before", str(due_ms))]}
    for topic in topics:
        writer.publish(
            topic, payload, qos=1, ids=[1], retain=True, properties=properties
        )
    writer.bye()


def shown(client: Client) -> list[tuple[str, bytes, int, bool]]:
    found = client.messages()
    client.answer(PacketKind.PUBACK, *[one.packet_id for one in found if one.qos])
    return [(one.topic, one.payload, one.qos, one.retain) for one in found]


@pytest.mark.parametrize("qos", [0, 1])
def test_a_retained_message_is_not_shown_before_its_time(
    scene: Scene, client: Client, qos: int
) -> None:
    retain(scene, "a", "b", payload=b"old")
    retain_later(scene, "a")

    client.subscribe("#", qos=qos)
    assert shown(client) == [("b", b"old", qos, True)]
    scene.advance(HOUR_S - 1)
    assert shown(client) == []
    scene.advance(1.0)
    assert shown(client) == [("a", b"later", qos, True)]
    scene.advance(HOUR_S)
    assert shown(client) == []

    client.subscribe("a", qos=qos)
    assert shown(client) == [("a", b"later", qos, True)]


@pytest.mark.parametrize("qos", [0, 1])
def test_who_had_subscribed_before_gets_a_delayed_message_once(
    scene: Scene, client: Client, qos: int
) -> None:
    client.subscribe("a", qos=qos)
    client.packets()
    retain_later(scene, "a")
    assert shown(client) == []

    scene.advance(HOUR_S)

    assert shown(client) == [("a", b"later", qos, False)]


@pytest.mark.parametrize("qos", [0, 1])
def test_after_a_restart_a_retained_message_still_has_its_time(
    scene: Scene, qos: int
) -> None:
    retain_later(scene, "a")
    scene.restart()
    client = scene.client()
    client.packets()

    client.subscribe("a", qos=qos)
    assert shown(client) == []
    scene.advance(HOUR_S)

    assert shown(client) == [("a", b"later", qos, True)]


@pytest.mark.parametrize("back_s", [1.0, HOUR_S + 1])
@pytest.mark.parametrize("kill", [False, True])
def test_a_session_gets_a_retained_message_in_time_although_a_restart_came_between(
    scene: Scene, kill: bool, back_s: float
) -> None:
    retain_later(scene, "a")
    lasting: Properties = {Property.SESSION_EXPIRY_INTERVAL: 2 * int(HOUR_S)}
    client = scene.client(properties=lasting)
    client.subscribe("a", qos=1)
    assert shown(client) == []

    scene.restart(kill=kill)
    scene.advance(back_s)
    client = scene.client(clean=False, properties=lasting)
    found = shown(client)
    assert bool(found) == (back_s > HOUR_S)
    scene.advance(HOUR_S)

    assert found + shown(client) == [("a", b"later", 1, True)]


def test_a_retained_message_that_waits_comes_as_all_filters_want_it(
    scene: Scene, client: Client
) -> None:
    retain_later(scene, "a")
    for filter_, qos, number in (("#", 1, 8), ("a", 0, 9)):
        asked: Properties = {Property.SUBSCRIPTION_IDENTIFIER: number}
        client.subscribe(filter_, qos=qos, properties=asked)
    client.packets()

    scene.advance(HOUR_S)

    (one,) = client.messages()
    assert one.qos == 1
    assert one.properties is not None
    assert one.properties[Property.SUBSCRIPTION_IDENTIFIER] == [8, 9]


@pytest.mark.parametrize("qos", [0, 1])
def test_a_retained_message_that_was_replaced_before_its_time_is_not_shown(
    scene: Scene, client: Client, qos: int
) -> None:
    retain_later(scene, "a")
    client.subscribe("a", qos=qos)
    retain(scene, "a", payload=b"new")
    assert shown(client) == [("a", b"new", qos, False)]

    scene.advance(HOUR_S)

    assert shown(client) == []


@pytest.mark.parametrize("qos", [0, 1])
def test_who_has_unsubscribed_gets_no_retained_message_when_its_time_comes(
    scene: Scene, client: Client, qos: int
) -> None:
    retain_later(scene, "a")
    client.subscribe("a", qos=qos)
    client.unsubscribe("a")
    client.packets()

    scene.advance(HOUR_S)

    assert shown(client) == []


def test_so_many_retained_messages_wait_for_a_client(
    scene: Scene, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "MAX_LATE", 2)
    retain_later(scene, "a", "b", "c")
    client.subscribe("#", qos=1)
    client.packets()

    scene.advance(HOUR_S)

    assert [topic for topic, *_ in shown(client)] == ["a", "b"]
    client.subscribe("c", qos=1)
    assert [topic for topic, *_ in shown(client)] == ["c"]


def test_people_see_a_retained_message_before_its_time(scene: Scene) -> None:
    retain_later(scene, "a")

    desk = RetainedDesk(scene.broker)

    assert [one.topic for one in desk.retained().retained] == ["a"]
    assert desk.message(topic="a").payload == b"later"


def test_a_retained_message_that_is_too_large_is_not_shown(scene: Scene) -> None:
    retain(scene, "a", payload=bytes(500))
    retain(scene, "b")

    for qos in (0, 1):
        client = scene.client(
            f"client {qos}", properties={Property.MAXIMUM_PACKET_SIZE: 100}
        )
        client.subscribe("#", qos=qos)
        assert [one.topic for one in client.messages()] == ["b"]


def test_what_was_retained_comes_as_there_is_room(scene: Scene) -> None:
    retain(scene, *[f"a/{number}" for number in range(20)], payload=bytes(1000))
    client = scene.client()
    client.packets()
    peer = scene.peers.pop(client.gateway)  # it reads what the test reads
    client.subscribe("#", qos=0)
    now_s = scene.clock.now_s()

    sizes = [len(b"".join(client.gateway.output(now_s, 5000))) for _ in range(6)]

    assert max(sizes) < 8000
    total = len(peer.got) + sum(sizes)
    assert total > 20 * 1000


def test_the_identifier_of_the_subscription_is_told(
    scene: Scene, client: Client
) -> None:
    retain(scene, "a")

    for qos in (0, 1):
        client.subscribe("a", qos=qos, properties={Property.SUBSCRIPTION_IDENTIFIER: 9})
        (one,) = client.messages()
        assert one.properties == {Property.SUBSCRIPTION_IDENTIFIER: [9]}


def test_a_rule_may_name_the_clients_and_groups_it_is_good_for(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limited(Rule("subscribe", "#", ("ann", "job-*"))))
    denied = Reason.NOT_AUTHORIZED
    found = {}
    for name in ("ann", "billing", "job-1", ""):
        client = scene.client(name, user="anna", password=b"pw")
        client.packets()
        client.subscribe("a", "$share/job-2/a", "$share/billing/a")
        found[name] = client.suback()

    assert found == {
        "ann": [0, 0, denied],
        "billing": [denied, 0, denied],
        "job-1": [0, 0, denied],
        # One that we have made up takes nobody's place.
        "": [0, 0, denied],
    }
    scene.close()
