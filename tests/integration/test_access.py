"""A user with rules at a real server: what is allowed and refused, by every door."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.broker.access import Rule
from penstock.client import Client, connect
from penstock.errors import ServerRefused
from penstock.server.users_file import set_password, set_rules
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
    set_rules(folder / "users", "anna", RULES)
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
            "ask for topics.delete of sensors/1",
            "ask for dead-letters",
        )
    ]


BASIC = "Basic " + base64.b64encode(b"anna:secret").decode()


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


def test_a_user_without_rules_may_do_everything(server: Serving) -> None:
    with native(server, "boss") as boss:
        boss.publish("doomed", [b"x"])
        boss.ask("topics.delete", name="doomed")
        boss.ask("dead-letters")


def test_other_rules_end_a_session_and_count_for_the_next_request(
    server: Serving, folder: Path
) -> None:
    users = folder / "users"
    set_password(users, "dora", "secret")
    set_rules(users, "dora", [Rule("publish", "one")])
    http = Http(server, None)
    login = http.ask("POST", "/v1/session", {"user": "dora", "password": "secret"})
    cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
    basic = "Basic " + base64.b64encode(b"dora:secret").decode()

    def statuses() -> list[int]:
        paths = [f"/v1/topics/{topic}/events" for topic in ("one", "two")]
        said = {"Authorization": basic}
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

        allowed = server.run("users", "allow", "cora", "publish", "cora", *file)

        assert allowed.stdout == b"cora may publish cora\n"
        with Wire(where) as wire:
            assert publishes(log_in(wire)) == "published"
        assert publishes(before) == "error:"
    assert server.run("users", "deny", "cora", "everything", *file).returncode == 0
    with Wire(where) as wire:
        assert publishes(log_in(wire)) == "error:"
    assert server.run("users", "show", "cora", *file).stdout == b"nothing\n"
    assert server.run("users", "allow", "cora", "everything", *file).returncode == 0
    with Wire(where) as wire:
        assert publishes(log_in(wire)) == "published"
