"""Users with quotas at a real server: what is refused or waits, by every door."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from websockets.sync.client import connect as connect_websocket

from penstock.access.quota import Quota
from penstock.client import Client, connect
from penstock.errors import ServerRefused
from penstock.server import password
from penstock.server.users_file import set_password, set_quota
from penstock.wire.mqtt import (
    Ack,
    Acks,
    ClientParser,
    Connack,
    Connect,
    PacketKind,
    Publishes,
    Reason,
    RequestedFilter,
    ServerPacket,
    Suback,
    SubscribePacket,
    WillPacket,
    render_connect,
    render_publish,
    render_subscribe,
)
from tests.command import command
from tests.http_client import Http, Reply, answer_of
from tests.serving import Serving, serving
from tests.wire_client import PATIENCE_S, Wire

pytestmark = pytest.mark.slow

MANY = 16
KIB = b'"' + b"x" * 1022 + b'"'
NDJSON = {"Content-Type": "application/x-ndjson"}
WELCOME = "Succesfully logged in!"
QUOTAS = {
    "single": Quota(connections=1),
    "maker": Quota(topics=1),
    "small": Quota(stored_bytes=4000),
    "slow": Quota(events_per_s=1000),
    "crawling": Quota(events_per_s=1),
    "wordy": Quota(bytes_per_s=1000),
    "reader": Quota(subscriptions=1),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("quotas")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(password, "COST_N", 2)
        set_password(folder / "users", "boss", "x")
        for name, quota in QUOTAS.items():
            for number in range(MANY):  # everybody is new to its test
                set_password(folder / "users", f"{name}{number}", "x")
                set_quota(folder / "users", f"{name}{number}", quota)
    (folder / "penstock.toml").write_text("[quota]\nconnections = 50\n")
    flags = ("--users-file", str(folder / "users"), "--no-maze")
    config = ("--config", str(folder / "penstock.toml"))
    with serving(folder, *flags, *config) as server:
        with native(server, "boss") as boss:
            boss.publish("shared", [KIB])
        yield server


def native(server: Serving, user: str) -> Client:
    where = f"127.0.0.1:{server.ports['native']}"
    return connect(where, user=user, password="x")


def line(server: Serving, user: str) -> Wire:
    wire = Wire(server.ports["line"])
    wire.say(f"as {user} x")
    wire.line()  # the greeting
    return wire


def publisher(server: Serving, user: str) -> Wire:
    wire = Wire(server.ports["publisher"])
    wire.say(f"log {user} x")
    wire.line()  # that it shall log in
    return wire


def http(server: Serving, user: str) -> Callable[..., Reply]:
    client = Http(server, None)
    basic = "Basic " + base64.b64encode(f"{user}:x".encode()).decode()

    def ask(
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        said = {"Authorization": basic, **(headers or {})}
        return client.ask(method, path, body, said)

    return ask


class Mqtt:
    """A client; ``reason`` is what it was answered when it came."""

    def __init__(
        self,
        server: Serving,
        user: str,
        version: int = 5,
        will: WillPacket | None = None,
    ) -> None:
        self.sock = socket.create_connection(
            ("127.0.0.1", server.ports["mqtt"]), PATIENCE_S
        )
        self._version = version
        self._parser = ClientParser(1 << 20, version)
        self._got: list[ServerPacket] = []
        self.sock.sendall(connect_packet(user, version, will))
        first = self.next()
        assert isinstance(first, Connack)
        self.reason = first.reason

    def __enter__(self) -> Mqtt:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def next(self) -> ServerPacket | None:
        """The next packet; None if the server has closed."""
        while not self._got:
            data = self.sock.recv(1 << 16)
            if not data:
                return None
            self._got += self._parser.feed(data)
        return self._got.pop(0)

    def publish(self, topic: str, payload: bytes) -> int | None:
        """What a publish of QoS 1 is answered; None if the server closes."""
        packet = Publishes(
            topic=topic,
            qos=1,
            retain=False,
            dup=False,
            payloads=[payload],
            packet_ids=[1],
        )
        self.sock.sendall(render_publish(self._version, packet))
        answer = self.next()
        if answer is None:
            return None
        assert isinstance(answer, Acks | Ack) and answer.kind is PacketKind.PUBACK
        return answer.reason if isinstance(answer, Ack) else 0

    def subscribe(self, *filters: str) -> list[int]:
        wanted = [RequestedFilter(one, 1) for one in filters]
        packet = SubscribePacket(packet_id=1, filters=wanted)
        self.sock.sendall(render_subscribe(self._version, packet))
        answer = self.next()
        assert isinstance(answer, Suback)
        return answer.reasons


def connect_packet(
    user: str, version: int = 5, will: WillPacket | None = None
) -> bytes:
    return render_connect(
        Connect(
            version=version,
            client_id=f"{user}-{version}",
            clean_start=True,
            keep_alive=0,
            user=user,
            password=b"x",
            will=will,
        )
    )


def refused(step: Callable[[], object]) -> str:
    with pytest.raises(ServerRefused) as caught:
        step()
    assert caught.value.error == "QuotaReached"
    return str(caught.value)


def quota_text(user: str, said: str) -> str:
    return f"user {user} has reached its quota: {said}"


def has_topic(server: Serving, topic: str) -> bool:
    path = f"/v1/topics/{topic.replace('/', '%2F')}"
    return Http(server).ask("GET", path).status == 200


# Connections


def test_connections_are_counted_over_all_gateways(server: Serving) -> None:
    with ExitStack() as stack:
        stack.enter_context(native(server, "single0"))
        text = quota_text("single0", "connections is 1")

        with line(server, "single0") as wire:
            assert wire.line() == f"error: {text}"
            assert wire.line() == ""
        with publisher(server, "single0") as wire:
            assert wire.line() == f'ERROR "{text}"'
            assert wire.line() == ""
        with Wire(server.ports["consumer"]) as wire:
            wire.say("log single0 x")
            assert wire.lines(3) == ["Please login!", f'ERROR "{text}"', ""]
        with Mqtt(server, "single0") as mqtt:
            assert mqtt.reason == Reason.QUOTA_EXCEEDED
            assert mqtt.next() is None
        with Mqtt(server, "single0", version=4) as mqtt:
            assert mqtt.reason == Reason.SERVER_UNAVAILABLE  # the nearest there is
        assert refused(lambda: native(server, "single0")) == text
        stream = http(server, "single0")("GET", "/v1/topics/shared/stream")
        assert (stream.status, stream.json()["error"]) == (429, "QuotaReached")
        pull = http(server, "single0")(
            "POST", "/v1/subscriptions/me/shared/pull", {"wait_s": 0}
        )
        assert (pull.status, pull.json()["detail"]) == (429, text)
        # What stands for a moment only is not counted.
        assert http(server, "single0")("GET", "/v1/topics/shared").status == 200


@pytest.mark.parametrize(
    "door", [line, publisher, native, Mqtt], ids=["line", "json", "native", "mqtt"]
)
def test_a_connection_that_is_gone_makes_room(
    server: Serving, door: Callable[[Serving, str], Wire | Client | Mqtt]
) -> None:
    doors: list[object] = [line, publisher, native, Mqtt]
    user = f"single{1 + doors.index(door)}"
    for _ in range(3):
        with door(server, user) as one:
            if isinstance(one, Wire):
                assert one.line() in (WELCOME, f"subscriber {user}")
            if isinstance(one, Mqtt):
                assert one.reason == 0
        until_unconnected(server, user)


def test_mqtt_over_websocket_and_streams_count(server: Serving) -> None:
    url = f"ws://127.0.0.1:{server.ports['http']}/mqtt"
    user = "single5"
    with connect_websocket(url, subprotocols=["mqtt"]) as socket_:  # type: ignore[list-item]  # a str
        socket_.send(connect_packet(user))
        assert socket_.recv()

        with Mqtt(server, user) as mqtt:
            assert mqtt.reason == Reason.QUOTA_EXCEEDED
    until_unconnected(server, user)
    basic = base64.b64encode(f"{user}:x".encode()).decode()
    with Http(server).raw() as sock:
        sock.sendall(
            b"GET /v1/topics/shared/stream HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Basic %b\r\n\r\n" % basic.encode()
        )
        assert sock.recv(15) == b"HTTP/1.1 200 OK"

        with Mqtt(server, user) as mqtt:
            assert mqtt.reason == Reason.QUOTA_EXCEEDED
    until_unconnected(server, user)
    with Mqtt(server, user) as mqtt:
        assert mqtt.reason == 0


def until_unconnected(server: Serving, user: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while usage(server, user)["connections"]:
        assert time.monotonic() < deadline_s


def usage(server: Serving, user: str) -> dict[str, object]:
    page = Http(server).ask("GET", f"/v1/users/usage?user={user}").json()
    row: dict[str, object] = page["users"][0]
    return row


# Topics


def by_line(server: Serving, user: str, topic: str, payload: bytes) -> str:
    with line(server, user) as wire:
        wire.say(
            "confirm on", f"pub {topic} {json.dumps({'msg': json.loads(payload)})}"
        )
        said = wire.lines(3)[-1]
    return "" if said.startswith(f"published {topic}") else said


def by_json(server: Serving, user: str, topic: str, payload: bytes) -> str:
    with publisher(server, user) as wire:
        wire.line()
        said = wire.ask(
            json.dumps({"type": "PUB", "topic": topic, "msg": json.loads(payload)})
        )
        if "PUBREC" not in said:
            return said
        number = json.loads(said)["msgId"]
        said = wire.ask(json.dumps({"type": "PUBREL", "msgId": number}))
    return "" if "PUBCOMP" in said else said


def by_native(server: Serving, user: str, topic: str, payload: bytes) -> str:
    with native(server, user) as client:
        try:
            client.publish(topic, [payload])
        except ServerRefused as error:
            return str(error)
    return ""


def by_dedup(server: Serving, user: str, topic: str, payload: bytes) -> str:
    with native(server, user) as client:
        try:
            client.publish(topic, [payload], dedup_ids=["once"])
        except ServerRefused as error:
            return str(error)
    return ""


def by_epoch(server: Serving, user: str, topic: str, payload: bytes) -> str:
    with native(server, user) as client:
        try:
            query = f"{user}-{topic.replace('/', '-')}"
            client.stage(query, 0, 0, 0, topic, [payload])
            client.ask("sinks.commit", query=query, epoch=0, parts=[(0, 0)])
        except ServerRefused as error:
            return str(error)
    return ""


def by_mqtt(server: Serving, user: str, topic: str, payload: bytes) -> str:
    with Mqtt(server, user) as client:
        reason = client.publish(topic, payload)
    assert reason in (0, Reason.QUOTA_EXCEEDED)
    return "quota" if reason else ""


def by_old_mqtt(server: Serving, user: str, topic: str, payload: bytes) -> str:
    with Mqtt(server, user, version=4) as client:
        return "quota" if client.publish(topic, payload) is None else ""


def by_http(server: Serving, user: str, topic: str, payload: bytes) -> str:
    path = f"/v1/topics/{topic.replace('/', '%2F')}/events"
    kind = {"Content-Type": "application/octet-stream"}
    answer = http(server, user)("POST", path, payload, kind)
    assert answer.status in (201, 429)
    return "" if answer.status == 201 else answer.json()["detail"]


def by_lines(server: Serving, user: str, topic: str, payload: bytes) -> str:
    path = f"/v1/topics/{topic.replace('/', '%2F')}/events"
    body = b'{"payload":%b}\n' % payload
    said = http(server, user)("POST", path, body, NDJSON).json()
    return said.get("detail", "")


WAYS = (
    *(by_line, by_json, by_native, by_dedup, by_epoch),
    *(by_mqtt, by_old_mqtt, by_http, by_lines),
)
Way = Callable[[Serving, str, str, bytes], str]


@pytest.mark.parametrize("way", WAYS, ids=lambda one: one.__name__)
def test_one_topic_too_many_is_refused_and_leaves_nothing(
    server: Serving, way: Way
) -> None:
    user = f"maker{WAYS.index(way)}"
    mine, other = f"{user}/1", f"{user}/2"

    assert way(server, user, mine, b"1") == ""
    assert way(server, user, "shared", b"1") == ""  # somebody else's
    said = way(server, user, other, b"1")

    assert quota_text(user, "topics is 1") in said or said == "quota"
    assert not has_topic(server, other)
    assert usage(server, user)["topics"] == 1
    Http(server).ask("DELETE", f"/v1/topics/{mine.replace('/', '%2F')}")
    assert way(server, user, other, b"1") == ""
    assert has_topic(server, other)


def test_other_ways_to_make_a_topic_are_refused_too(server: Serving) -> None:
    user = "maker15"
    text = quota_text(user, "topics is 1")
    assert by_native(server, user, "maker15/1", b"1") == ""

    with native(server, user) as client:
        assert refused(lambda: client.ask("topics.create", name="maker15/2")) == text
        assert text == refused(
            lambda: client.ask("schemas.register", topic="maker15/2", schema={})
        )
    create = http(server, user)("POST", "/v1/topics", {"name": "maker15/2"})
    assert (create.status, create.json()["detail"]) == (429, text)
    with Wire(server.ports["consumer"]) as wire:
        wire.say(f"log {user} x")
        assert wire.lines(2)[1] == WELCOME
        said = wire.ask('{"type":"SUB","topic":"maker15/2"}')
        assert said == f'ERROR "{text}"'
    will = WillPacket(topic="maker15/2", payload=b"gone", qos=0, retain=False)
    with Mqtt(server, user, will=will) as mqtt:
        assert mqtt.reason == 0
    until_unconnected(server, user)

    assert not has_topic(server, "maker15/2")


def test_what_makes_no_sense_makes_no_topic_of_the_user(server: Serving) -> None:
    with publisher(server, "maker14") as wire:
        wire.line()
        assert wire.ask("nonsense").startswith("INVALID JSON")

    assert usage(server, "maker14")["topics"] == 0
    assert by_json(server, "maker14", "maker14/1", b"1") == ""


# Bytes


@pytest.mark.parametrize("way", WAYS, ids=lambda one: one.__name__)
def test_own_topics_take_no_more_than_the_quota(server: Serving, way: Way) -> None:
    user = f"small{WAYS.index(way)}"
    mine = f"{user}/1"

    said = [way(server, user, mine, KIB)]
    if way is by_epoch:
        said += [by_native(server, user, mine, KIB) for _ in range(2)]
        said.append(by_epoch(server, user, f"{user}/2", KIB))
    elif way is by_dedup:
        said += [by_native(server, user, mine, KIB) for _ in range(2)]
        said.append(by_dedup(server, user, f"{user}/2", KIB))
    else:
        said += [way(server, user, mine, KIB) for _ in range(3)]

    assert said[:3] == ["", "", ""]
    last = said[3]
    assert quota_text(user, "stored_bytes is 4000") in last or last == "quota"
    assert not has_topic(server, f"{user}/2")
    if way not in (by_epoch, by_dedup):  # once is once
        assert way(server, user, "shared", KIB) == ""


# Rates over HTTP; those of connections are in tests/unit/server/test_rates.py


def test_requests_wait_and_nothing_is_refused(server: Serving) -> None:
    ask = http(server, "slow0")
    events = [{"payload": 1}] * 1500
    before, answers = waits(server), []
    deadline_s = time.monotonic() + PATIENCE_S

    while waits(server) == before:  # unless we are slower than the user may be
        answers.append(ask("POST", "/v1/topics/slow0/events", events))
        assert time.monotonic() < deadline_s

    assert {one.status for one in answers} == {201}
    stored = [one.json()["first"] for one in answers]
    assert stored == [1500 * number for number in range(len(answers))]


def waits(server: Serving) -> float:
    text = Http(server).ask("GET", "/metrics").body.decode()
    name = 'penstock_quota_waits_total{quota="events_per_s"} '
    return float(text.partition(name)[2].partition("\n")[0])


def test_lines_wait_and_nothing_is_refused(server: Serving) -> None:
    ask = http(server, "slow1")
    bad = b'{"payload":1}\n{}\n' + b'{"payload":1}\n' * 1200

    answers = [
        ask("POST", "/v1/topics/slow1/events", body, NDJSON)
        for body in (b'{"payload":1}\n' * 1200, bad, b'{"payload":1}\n')
    ]

    said = [[json.loads(one) for one in answer.body.splitlines()] for answer in answers]
    assert [one["offset"] for one in said[2]] == [2401]
    assert sum("error" in one for one in said[1]) == 1


def test_whoever_would_wait_for_too_long_is_told_when_to_come_again(
    server: Serving,
) -> None:
    ask = http(server, "crawling0")
    assert ask("POST", "/v1/topics/slow2/events", [{"payload": 1}] * 300).status == 201

    basic = base64.b64encode(b"crawling0:x")
    with Http(server).raw() as sock:
        sock.sendall(
            b"POST /v1/topics/slow2/events HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Basic %b\r\nContent-Length: 1000\r\n\r\n" % basic
        )  # and no body: it is not waited for
        answer = answer_of(sock)

    assert answer.status == 429
    assert 100 < int(answer.headers["retry-after"]) <= 300
    assert answer.json()["detail"].startswith(
        quota_text("crawling0", "events_per_s is 1, wait")
    )


# Failed tries


def test_what_a_refusal_has_written_is_paid(server: Serving) -> None:
    with native(server, "wordy0") as client:
        again = client.subscribe("shared", "wordy0", start="earliest", tries=1_000_000)
        event = again.next(PATIENCE_S)
        assert event is not None
        for _ in range(50):
            again.nack(event, "e" * 4000, kind="K", traceback="t" * 16_000)

        wait_s = until_in_debt(server, "wordy0")

    assert 30 < wait_s < 60  # of one refusal: the others were about nothing


def test_letters_of_refusals_are_paid(server: Serving) -> None:
    with native(server, "wordy1") as client:
        shared = client.subscribe("shared", "wordy1", start="earliest")
        event = shared.next(PATIENCE_S)
        assert event is not None
        shared.nack(event, "e" * 4000, traceback="t" * 16_000, final=True)

        assert until_in_debt(server, "wordy1") > 40


def until_in_debt(server: Serving, user: str) -> float:
    deadline_s = time.monotonic() + PATIENCE_S
    while not (wait_s := usage(server, user)["wait_s"]):
        assert time.monotonic() < deadline_s
    assert isinstance(wait_s, float)
    return wait_s


def test_refusals_over_http_are_paid(server: Serving) -> None:
    topic, user = "wordy-pull", "wordy2"
    with native(server, "boss") as boss:
        boss.publish(topic, [KIB] * 40)
    ask, path = http(server, user), f"/v1/subscriptions/{user}/{topic}/pull"
    got = ask("POST", path, {"start": "earliest", "tries": 1000}).json()
    nacks = [{"offset": one["offset"], "error": "e" * 4000} for one in got["events"]]
    assert len(nacks) == 40

    first = ask("POST", path, {"nack": nacks})

    assert (first.status, first.json()["settled"]) == (200, 40)
    assert first.json()["events"] == []  # they are not tried again before it is paid
    later = ask("POST", path, {"nack": nacks[:1]})
    assert later.status == 429
    assert int(later.headers["retry-after"]) > 200
    assert ask("POST", path, {"ack": [0]}).status == 200


def test_refusals_over_a_socket_are_paid(server: Serving) -> None:
    user = "wordy3"
    basic = "Basic " + base64.b64encode(f"{user}:x".encode()).decode()
    where = f"ws://127.0.0.1:{server.ports['http']}/v1/topics/shared/socket"
    with connect_websocket(
        f"{where}?subscriber={user}&start=earliest",
        additional_headers={"Authorization": basic},
    ) as socket_:
        events = json.loads(socket_.recv(PATIENCE_S))["events"]
        nack = {"offset": events[0]["offset"], "error": "e" * 4000, "final": True}
        socket_.send(json.dumps({"nack": [nack]}))

        assert until_in_debt(server, user) > 10


# Subscriptions


def test_one_subscription_too_many_is_refused_by_every_door(server: Serving) -> None:
    user, topic = "reader0", "shared"
    said = quota_text(user, "subscriptions is 1")
    with native(server, user) as client:
        client.subscribe(topic, "mine")
        client.subscribe(topic, "mine").close()  # which is there
        assert said in refused(lambda: client.subscribe(topic, "another"))
        assert said in refused(lambda: client.subscribe(topic))
    with line(server, user) as wire:
        wire.line()
        assert said in wire.ask(f"sub {topic}")
    with Wire(server.ports["consumer"]) as wire:
        wire.say(f"log {user} x")
        wire.lines(2)
        assert "OK" not in wire.ask(json.dumps({"type": "SUB", "topic": topic}))
    with Mqtt(server, user) as mqtt:
        assert mqtt.subscribe("a", "b") == [Reason.QUOTA_EXCEEDED] * 2
    ask = http(server, user)
    assert ask("POST", f"/v1/subscriptions/another/{topic}/pull", {}).status == 429
    assert ask("GET", f"/v1/topics/{topic}/stream").status == 429
    assert usage(server, user)["subscriptions"] == 1

    with native(server, "reader1") as other:
        other.subscribe(topic, "of another user")


def test_filters_over_mqtt_are_subscriptions_of_their_user(server: Serving) -> None:
    with Mqtt(server, "reader2") as mqtt:
        assert mqtt.subscribe("a/#", "b", "a/#") == [1, Reason.QUOTA_EXCEEDED, 1]
        with native(server, "reader2") as client:
            refused(lambda: client.subscribe("shared"))


def test_a_temporary_subscription_makes_room_when_it_ends(server: Serving) -> None:
    with native(server, "reader3") as client:
        client.subscribe("shared").close()
        client.subscribe("shared")
    deadline_s = time.monotonic() + PATIENCE_S
    while usage(server, "reader3")["subscriptions"]:
        assert time.monotonic() < deadline_s


# Looking at it


def test_what_users_have_is_shown_to_whoever_administers(server: Serving) -> None:
    with line(server, "single9") as wire:
        wire.line()
        assert by_http(server, "single9", "of9", b"1") == ""

        shown = command(server, "users", "usage", "single9")
        rows = json.loads(command(server, "users", "usage", "--json").stdout)

    heading, row = shown.stdout.decode().splitlines()
    assert heading.split()[:3] == ["USER", "CONNECTIONS", "TOPICS"]
    assert row.split()[:3] == ["single9", "1/1", "1"]
    found = next(one for one in rows if one["user"] == "single9")
    assert found["limits"] == {"connections": 1}
    boss = next(one for one in rows if one["user"] == "boss")
    assert boss["limits"] == {"connections": 50}  # of the settings
