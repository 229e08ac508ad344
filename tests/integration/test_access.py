"""A user with rules at a real server: what is allowed and refused, by every door."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.access.grants import Rule
from penstock.client import Client, connect
from penstock.errors import ServerRefused
from penstock.server.users_file import remove_user, set_password, set_rules
from penstock.wire.mqtt import (
    ClientParser,
    Connack,
    Connect,
    Properties,
    Property,
    RequestedFilter,
    Suback,
    SubscribePacket,
    WillPacket,
    render_connect,
    render_subscribe,
)
from tests.command import command
from tests.http_client import Http, Reply
from tests.serving import Serving, serving
from tests.wire_client import Wire

pytestmark = pytest.mark.slow

RULES = (
    Rule("publish", "sensors/#"),
    Rule("subscribe", "+/temp"),
    Rule("read", "archive"),
)
PLEASE, WELCOME = "Please login!", "Succesfully logged in!"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Serving]:
    for name in ("anna", "boss"):
        set_password(folder / "users", name, "secret")
    set_password(folder / "users", "cook", "secret")
    set_rules(folder / "users", "anna", RULES)
    set_rules(folder / "users", "boss", None, admin=True)
    flags = ("--users-file", str(folder / "users"), "--no-maze")
    with serving(folder, *flags) as server:
        with native(server, "boss") as boss:
            for topic in ("sensors/1", "room/temp", "archive", "other"):
                boss.publish(topic, [b'{"n":1}'])
        yield server


def native(server: Serving, user: str) -> Client:
    where = f"127.0.0.1:{server.ports['native']}"
    return connect(where, user=user, password="secret")


def refused(step: Callable[[], object]) -> str:
    with pytest.raises(ServerRefused) as caught:
        step()
    assert caught.value.error == "NotAllowed"
    assert caught.value.hint
    return str(caught.value)


def test_over_the_line_protocol(server: Serving) -> None:
    with Wire(server.ports["line"]) as wire:
        wire.say("as anna secret", "confirm on")
        wire.lines(3)

        assert wire.ask('pub sensors/2 {"id":"1"}') == "published sensors/2 1 0"
        assert wire.ask("pub other {}") == "error: user anna may not publish to other"
        assert wire.ask("sub other") == "error: user anna may not subscribe to other"
        assert wire.ask("sub room/temp") == (
            "successfully subscribed to topic room/temp"
        )


def test_over_the_json_protocol(server: Serving) -> None:
    with Wire(server.ports["consumer"]) as wire:
        wire.say("log anna secret")
        assert wire.lines(2) == [PLEASE, WELCOME]

        assert wire.ask('{"type":"SUB","topic":"json/temp"}') == "OK"
        assert wire.ask('{"type":"SUB","topic":"archive"}') == (
            'ERROR "user anna may not subscribe to archive"'
        )
    with Wire(server.ports["publisher"]) as wire:
        wire.say("log anna secret")
        assert wire.lines(2) == [PLEASE, WELCOME]

        assert wire.ask('{"type":"PUB","topic":"json/temp","msg":1}') == (
            'ERROR "user anna may not publish to json/temp"'
        )
        assert "PUBREC" in wire.ask('{"type":"PUB","topic":"sensors/3","msg":1}')


def test_over_the_native_protocol(server: Serving) -> None:
    with native(server, "anna") as anna:
        anna.publish("sensors/1", [b"2"])
        with anna.subscribe("room/temp", "job", start=0) as mine:
            delivery = mine.next(20.0)
            assert delivery is not None
            mine.ack(delivery)
        assert anna.fetch("archive", 0, 1).next_offset == 1
        assert anna.fetch("room/temp", 0, 1).next_offset == 1
        anna.stage("job", 0, 0, 0, "sensors/4", [b"x"])
        anna.ask("sinks.commit", query="job", epoch=0, parts=[(0, 0)])
        anna.ask("topics.show", name="sensors/4")

        said = [
            refused(lambda: anna.publish("archive", [b"x"])),
            refused(lambda: anna.subscribe("archive", "job")),
            refused(lambda: anna.fetch("sensors/1", 0, 1)),
            refused(lambda: anna.stage("job", 1, 0, 0, "other", [b"x"])),
            refused(lambda: anna.ask("topics.show", name="other")),
            refused(lambda: anna.ask("topics.delete", name="sensors/1")),
            refused(lambda: anna.ask("dead-letters")),
        ]

    assert said == [
        f"user anna may not {what}"
        for what in (
            "publish to archive",
            "subscribe to archive",
            "read sensors/1",
            "publish to other",
            "see other",
            "ask for topics.delete of sensors/1: it needs an administrator",
            "ask for dead-letters",
        )
    ]


def basic(user: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:secret".encode()).decode()


BASIC = basic("anna")


def session_of(http: Http) -> dict[str, str]:
    """The headers of a browser that anna has logged in with."""
    login = {"user": "anna", "password": "secret"}
    answer = http.ask("POST", "/v1/session", login)
    assert answer.json()["scope"] == "topics"
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {"Cookie": cookie, "X-CSRF-Token": answer.json()["csrf"]}


@pytest.mark.parametrize("by", ["password", "session"])
def test_over_http(server: Serving, by: str) -> None:
    http = Http(server, None)
    headers = {"Authorization": BASIC} if by == "password" else session_of(http)

    def ask(method: str, path: str, body: object = None) -> Reply:
        return http.ask(method, path, body, headers)

    event = {"payload": 1}
    found = {
        (method, path): ask(method, path, body).status
        for method, path, body in [
            ("POST", "/v1/topics/sensors%2F5/events", event),
            ("POST", "/v1/topics/other/events", event),
            ("GET", "/v1/topics/archive/events?offset=0", None),
            ("GET", "/v1/topics/room%2Ftemp/events/0", None),
            ("GET", "/v1/topics/sensors%2F1/events/0", None),
            ("GET", "/v1/topics/sensors%2F1", None),
            ("GET", "/v1/topics/other", None),
            ("POST", "/v1/subscriptions/web/room%2Ftemp/pull", {}),
            ("POST", "/v1/subscriptions/web/archive/pull", {}),
            ("GET", "/v1/topics", None),
            ("DELETE", "/v1/topics/archive", None),
            ("POST", "/v1/dead-letters/drop", {"numbers": [0], "reason": "x"}),
        ]
    }

    assert list(found.values()) == [
        *(201, 403),
        *(200, 200, 403),
        *(200, 403),
        *(200, 403),
        *(403, 403, 403),
    ], found
    problem = ask("POST", "/v1/topics/other/events", event).json()
    assert problem["error"] == "NotAllowed"
    assert problem["detail"] == "user anna may not publish to other"


def test_a_user_who_may_administer_may_do_everything(server: Serving) -> None:
    with native(server, "boss") as boss:
        boss.publish("doomed", [b"x"])
        boss.ask("topics.delete", name="doomed")
        boss.ask("dead-letters")
    http, headers = Http(server, None), {"Authorization": basic("boss")}
    http.ask("POST", "/v1/topics", {"name": "doomed"}, headers)
    assert http.ask("DELETE", "/v1/topics/doomed", headers=headers).status == 200
    assert http.ask("GET", "/v1/session", headers=headers).json()["scope"] == "admin"


def test_a_user_without_rules_does_all_but_administer(server: Serving) -> None:
    with native(server, "cook") as cook:
        cook.publish("kitchen", [b"1"])
        with cook.subscribe("kitchen", "anybody", start=0) as mine:
            assert mine.next(20.0) is not None
        cook.ask("dead-letters")
        cook.ask("topics.create", name="pantry", compact=True)
        said = refused(lambda: cook.ask("topics.delete", name="kitchen"))
    http, headers = Http(server, None), {"Authorization": basic("cook")}
    found = [
        http.ask(method, path, body, headers).status
        for method, path, body in [
            ("GET", "/v1/topics", None),
            ("GET", "/v1/dead-letters", None),
            ("POST", "/v1/topics", {"name": "cellar"}),
            ("POST", "/v1/topics/kitchen/events", {"payload": 1}),
            ("POST", "/v1/subscriptions/web/kitchen/pull", {}),
            ("DELETE", "/v1/topics/kitchen", None),
            ("POST", "/v1/dead-letters/drop", {"numbers": [0], "reason": "x"}),
            ("GET", "/v1/tokens", None),
        ]
    ]

    assert said == (
        "user cook may not ask for topics.delete of kitchen: it needs an administrator"
    )
    assert found == [200, 200, 201, 201, 200, 403, 403, 403]
    assert http.ask("GET", "/v1/session", headers=headers).json()["scope"] == "use"


# In whose name


@pytest.fixture
def nora(server: Serving, folder: Path) -> str:
    """A user who may subscribe under some names."""
    set_password(folder / "users", "nora", "secret")
    rule = Rule("subscribe", "room/temp", ("nora", "job-*"))
    set_rules(folder / "users", "nora", [rule])
    return "nora"


def needs(name: str) -> str:
    return (
        f"user nora may not subscribe as {name} to room/temp: "
        f"it needs the rule 'nora may subscribe room/temp as {name}'"
    )


def test_nobody_takes_the_place_of_another_by_the_line_protocol(
    server: Serving, nora: str
) -> None:
    with Wire(server.ports["line"]) as wire:
        wire.say(f"as {nora} secret", "as billing")
        wire.lines(3)

        assert wire.ask("sub room/temp") == f"error: {needs('billing')}"
        assert wire.ask("unsub room/temp") == f"error: {needs('billing')}"
        assert wire.ask("as job-line") == "subscriber job-line"
        assert wire.ask("sub room/temp").startswith("successfully subscribed")


def test_nobody_takes_the_place_of_another_by_the_json_protocol(
    server: Serving, folder: Path, nora: str
) -> None:
    subscribe = '{"type":"SUB","topic":"room/temp"}'
    answers = []
    for names in (("nora",), ("job-*",)):
        rule = Rule("subscribe", "room/temp", names)
        set_rules(folder / "users", nora, [rule])
        with Wire(server.ports["consumer"]) as wire:
            wire.say(f"log {nora} secret")
            wire.lines(2)
            answers.append(wire.ask(subscribe))

    assert answers == ["OK", f'ERROR "{needs("nora")}"']


def test_nobody_takes_the_place_of_another_by_the_native_protocol(
    server: Serving, nora: str
) -> None:
    place = {"topic": "room/temp", "offset": 0}
    with native(server, nora) as client:
        client.subscribe("room/temp", "job-native").close()
        client.subscribe("room/temp").close()
        client.ask("subscriptions.progress", subscriber="job-spark", **place)

        assert refused(lambda: client.subscribe("room/temp", "billing")) == needs(
            "billing"
        )
        said = {"subscriber": "billing", **place}
        assert refused(lambda: client.ask("subscriptions.progress", **said)) == needs(
            "billing"
        )


def test_nobody_takes_the_place_of_another_over_http(
    server: Serving, nora: str
) -> None:
    http, headers = Http(server, None), {"Authorization": basic(nora)}

    def pull(name: str) -> Reply:
        path = f"/v1/subscriptions/{name}/room%2Ftemp/pull"
        return http.ask("POST", path, {}, headers)

    stream = "/v1/topics/room%2Ftemp/stream?subscriber=billing"
    assert pull("job-http").status == 200
    assert (pull("billing").status, pull("billing").json()["detail"]) == (
        403,
        needs("billing"),
    )
    assert http.ask("GET", stream, None, headers).status == 403
    socket = "/v1/topics/room%2Ftemp/socket?subscriber={}"
    assert upgraded(http, socket.format("billing"), headers) == 403
    assert upgraded(http, socket.format("job-socket"), headers) == 101


def test_nobody_takes_the_place_of_another_over_mqtt(
    server: Serving, nora: str
) -> None:
    wanted = ("room/temp", "$share/job-1/room/temp", "$share/billing/room/temp")

    assert granted(server, nora, "job-mqtt", wanted) == [0, 0, DENIED]
    assert granted(server, nora, "billing", wanted) == [DENIED, 0, DENIED]


def test_nobody_makes_up_a_name_as_the_broker_does(server: Serving, nora: str) -> None:
    with Wire(server.ports["mqtt"]) as wire:
        assert greeted(wire, hello_of(nora, "auto-mine")).reason == DENIED


@pytest.mark.parametrize("version", [4, 5])
def test_nobody_keeps_a_session_under_the_name_of_another(
    server: Serving, folder: Path, version: int
) -> None:
    for name in ("robber", "victim"):
        rule = Rule("subscribe", "room/temp", (name, f"{name}-*"))
        set_password(folder / "users", name, "secret")
        set_rules(folder / "users", name, [rule])

    def come(user: str, client: str) -> Connack:
        with Wire(server.ports["mqtt"]) as wire:
            connack = greeted(wire, lasting(hello_of(user, client), version))
            wire.sock.sendall(b"\xe0\0")
            assert wire.sock.recv(1) == b"", "it has left"
        return connack

    mine = come("robber", f"robber-{version}"), come("robber", f"robber-{version}")
    theirs = come("robber", f"victim-{version}"), come("robber", f"victim-{version}")
    rightful = come("victim", f"victim-{version}"), come("victim", f"victim-{version}")

    told = theirs[0].properties.get(Property.SESSION_EXPIRY_INTERVAL)
    assert told == (0 if version == 5 else None)
    assert [one.session_present for one in mine] == [False, True]
    assert [one.session_present for one in theirs] == [False, False]
    assert [one.session_present for one in rightful] == [False, True]
    assert come("robber", f"victim-{version}").reason == DENIED


@pytest.mark.parametrize("how", ["removed", "other rules"])
def test_wills_of_users_who_may_not_publish_any_more_are_dropped(
    server: Serving, folder: Path, how: str
) -> None:
    users, topic = folder / "users", f"wills/{how}"
    # One of each: what is said of a user is said once a minute.
    gone = {f"gone-{how.split()[0]}-{delay_s}": delay_s for delay_s in (0, 1)}
    for user in gone:
        set_password(users, user, "secret")
        set_rules(users, user, [Rule("publish", "wills/#"), Rule("subscribe", "a")])
    with Wire(server.ports["mqtt"]) as now, Wire(server.ports["mqtt"]) as later:
        for (user, delay_s), wire in zip(gone.items(), (now, later), strict=True):
            will = WillPacket(
                topic=topic,
                payload=b"x",
                retain=True,
                properties={Property.WILL_DELAY_INTERVAL: delay_s},
            )
            hello = lasting(hello_of(user, f"client of {user}", will))
            assert greeted(wire, hello).reason == 0
        for user in gone:
            if how == "removed":
                remove_user(users, user)
            else:
                set_rules(users, user, [Rule("subscribe", "a")])
        for wire in (now, later):
            while wire.sock.recv(1 << 16):
                pass

    said = [f"the will of client of {user} was not published" for user in gone]
    eventually(lambda: all(one in server.log.read_text() for one in said))
    with native(server, "boss") as boss:
        assert topic not in names(boss)


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < deadline, "it has not come true"
        time.sleep(0.05)


DENIED = 0x87


def hello_of(user: str, client: str, will: WillPacket | None = None) -> Connect:
    return Connect(
        version=5,
        client_id=client,
        clean_start=True,
        keep_alive=0,
        user=user,
        password=b"secret",
        will=will,
    )


def lasting(hello: Connect, version: int = 5) -> Connect:
    """The CONNECT of a client whose session is to be kept."""
    asked: Properties = {Property.SESSION_EXPIRY_INTERVAL: 60}
    return replace(
        hello,
        version=version,
        clean_start=False,
        properties=asked if version == 5 else {},
    )


def greeted(wire: Wire, hello: Connect) -> Connack:
    """What a broker says to a CONNECT."""
    wire.sock.sendall(render_connect(hello))
    parser = ClientParser(1 << 20, hello.version)
    while not (packets := parser.feed(wire.sock.recv(1 << 16))):
        pass
    assert isinstance(packets[0], Connack)
    return packets[0]


def granted(
    server: Serving, user: str, client: str, wanted: tuple[str, ...]
) -> list[int]:
    """What a broker says to a SUBSCRIBE of a client."""
    hello = hello_of(user, client)
    filters = [RequestedFilter(one, 0) for one in wanted]
    subscribe = SubscribePacket(packet_id=1, filters=filters)
    parser, packets = ClientParser(1 << 20, 5), list[object]()
    with Wire(server.ports["mqtt"]) as wire:
        wire.sock.sendall(render_connect(hello) + render_subscribe(5, subscribe))
        while not any(isinstance(one, Suback) for one in packets):
            data = wire.sock.recv(1 << 16)
            assert data, packets
            packets += parser.feed(data)
    (suback,) = (one for one in packets if isinstance(one, Suback))
    return list(suback.reasons)


def upgraded(http: Http, path: str, headers: dict[str, str]) -> int:
    """The status of a request to open a WebSocket."""
    key = base64.b64encode(bytes(16)).decode()
    asked = {
        **headers,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
    }
    connection = HTTPConnection(*http.address, timeout=20.0)
    try:
        connection.request("GET", path, None, asked)
        return connection.getresponse().status
    finally:
        connection.close()


# Nonsense


@pytest.mark.parametrize("port", ["consumer", "publisher"])
def test_nonsense_on_the_json_ports_writes_to_no_topic_of_others(
    server: Serving, port: str
) -> None:
    with native(server, "boss") as boss:
        before = letters(boss)
        with Wire(server.ports[port]) as wire:
            wire.say("nonsense before the login")
            assert wire.lines(2) == [PLEASE, PLEASE]
            assert letters(boss) == before
            wire.say("log anna secret")
            wire.lines(1)
            assert wire.ask("nonsense") == "INVALID JSON"
        boss.publish("kitchen", [b"1"])  # what was before is written with it
        assert letters(boss) == before + 1
        assert "deadLetterChan" not in names(boss)


def letters(client: Client) -> int:
    found: Any = client.ask("dead-letters.groups")
    return sum(group["count"] for group in found["groups"])


def names(client: Client) -> list[str]:
    found: Any = client.ask("topics")
    return [topic["name"] for topic in found["topics"]]


# Files from before


def test_a_file_without_roles_is_told_of_on_start(tmp_path: Path) -> None:
    users = tmp_path / "users"
    for name in ("anna", "bert"):
        set_password(users, name, "secret")
    set_rules(users, "bert", [Rule("subscribe", "room/#")])
    with serving(tmp_path, "--users-file", str(users), "--no-maze") as server:
        with native(server, "anna") as anna:
            anna.publish("room/temp", [b"1"])
            refused(lambda: anna.ask("topics.delete", name="room/temp"))
        with native(server, "bert") as bert:
            bert.subscribe("room/temp", "anybody").close()

        said = server.log.read_text()
        assert "users without rules do not administer any more: anna;" in said
        assert "'penstock users allow anna administer' lets one do so" in said
        assert "subscribe under any name: 1;" in said

        file = ("--file", str(users))
        done = command(server, "users", "allow", "anna", "administer", *file)
        assert done.stdout == b"anna may administer\n"
        with native(server, "anna") as anna:
            anna.ask("topics.delete", name="room/temp")
        command(server, "users", "deny", "anna", "administer", *file)
        with native(server, "anna") as anna:
            anna.publish("room/temp", [b"1"])
            refused(lambda: anna.ask("topics.delete", name="room/temp"))


def test_other_rules_end_a_session_and_count_for_the_next_request(
    server: Serving, folder: Path
) -> None:
    users = folder / "users"
    set_password(users, "dora", "secret")
    set_rules(users, "dora", [Rule("publish", "one")])
    http = Http(server, None)
    login = http.ask("POST", "/v1/session", {"user": "dora", "password": "secret"})
    cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}

    def statuses() -> list[int]:
        paths = [f"/v1/topics/{topic}/events" for topic in ("one", "two")]
        said = {"Authorization": basic("dora")}
        return [http.ask("POST", one, {"payload": 1}, said).status for one in paths]

    before = statuses(), http.ask("GET", "/v1/session", headers=cookie).status
    set_rules(users, "dora", [Rule("publish", "two")])
    after = statuses(), http.ask("GET", "/v1/session", headers=cookie).status

    assert before == ([201, 403], 200)
    assert after == ([403, 201], 401)


def test_other_rules_count_for_the_next_login(server: Serving, folder: Path) -> None:
    file = ("--file", str(folder / "users"))
    set_password(folder / "users", "cora", "secret")
    set_rules(folder / "users", "cora", [])
    where = server.ports["line"]

    def publishes(wire: Wire) -> str:
        return wire.ask('pub cora {"id":"1"}').partition(" ")[0]

    def log_in(wire: Wire) -> Wire:
        wire.say("as cora secret", "confirm on")
        wire.lines(3)
        return wire

    with Wire(where) as before:
        log_in(before)
        assert publishes(before) == "error:"

        allowed = command(server, "users", "allow", "cora", "publish", "cora", *file)

        assert allowed.stdout == b"cora may publish cora\n"
        with Wire(where) as wire:
            assert publishes(log_in(wire)) == "published"
        assert publishes(before) == "error:"
    assert command(server, "users", "deny", "cora", "everything", *file).returncode == 0
    with Wire(where) as wire:
        assert publishes(log_in(wire)) == "error:"
    assert command(server, "users", "show", "cora", *file).stdout == b"nothing\n"
    assert (
        command(server, "users", "allow", "cora", "everything", *file).returncode == 0
    )
    with Wire(where) as wire:
        assert publishes(log_in(wire)) == "published"
