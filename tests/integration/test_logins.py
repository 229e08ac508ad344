"""Guessing passwords at a real server, by every door; and users who are removed."""

from __future__ import annotations

import base64
import itertools
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.server import password
from penstock.server.users_file import remove_user, set_password, set_rules
from tests.doors import DOORS, IN, STANDING, WAIT, WRONG, door, log_in
from tests.http_client import Http, answer_of
from tests.serving import Serving, serving
from tests.wire_client import Wire

pytestmark = pytest.mark.slow

LIMIT = 3
PATIENCE_S = 60.0
USERS = ("anna", "bert", "carl")
_numbers = itertools.count(1)
# Of every test its own, as everybody at an address is counted.
_places = (f"127.7.{high}.{low}" for high in range(9) for low in range(1, 250))


@pytest.fixture(scope="module")
def cheap() -> Iterator[None]:
    """Passwords of which a check takes no time; the file says what it costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(password, "COST_N", 2)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cheap: None) -> Path:
    folder = tmp_path_factory.mktemp("logins")
    for name in USERS:
        set_password(folder / "users", name, "right")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Serving]:
    config = folder / "penstock.toml"
    config.write_text(
        f"[http]\nlogin_attempts = {LIMIT}\nproxies = '127.6.0.0/16'\n"
        "[line]\nlogin_attempts = 100\n"
    )
    flags = ("--users-file", str(folder / "users"), "--no-maze")
    with serving(folder, *flags, "--config", str(config)) as server:
        yield server


@pytest.fixture
def place() -> str:
    return next(_places)


@pytest.fixture
def user(folder: Path) -> str:
    """Somebody whom nobody has tried to be; the password is ``right``."""
    name = f"user{next(_numbers)}"
    set_password(folder / "users", name, "right")
    return name


@pytest.mark.parametrize("name", DOORS)
def test_a_guesser_has_to_wait_and_nobody_else(
    server: Serving, place: str, name: str, user: str
) -> None:
    tries = [log_in(name, server, place, user, f"no{n}") for n in range(LIMIT + 2)]

    assert tries == [WRONG] * LIMIT + [WAIT] * 2
    assert log_in(name, server, place, user, "right") == WAIT
    assert log_in(name, server, place, "bert", "right") == IN, "a neighbour"
    assert log_in(name, server, next(_places), user, "right") == IN, "the owner"


@pytest.mark.parametrize("name", DOORS)
def test_names_that_nobody_has_are_treated_alike(
    server: Serving, place: str, name: str
) -> None:
    nobody = f"nobody{next(_numbers)}"

    tries = [log_in(name, server, place, nobody, "no") for _ in range(LIMIT + 1)]

    assert tries == [WRONG] * LIMIT + [WAIT]


def test_all_doors_count_together(server: Serving, place: str, user: str) -> None:
    for name in ("line", "mqtt 5", "basic"):
        assert log_in(name, server, place, user, "no") == WRONG

    said = {name: log_in(name, server, place, user, "right") for name in DOORS}

    assert said == dict.fromkeys(DOORS, WAIT)


def test_somebody_who_tries_many_names_has_few_tries_of_each(
    server: Serving, place: str, user: str
) -> None:
    for number in range(LIMIT):
        log_in("line", server, place, f"somebody{number}", "no")

    tries = [log_in("native", server, place, user, "no") for _ in range(3)]

    assert tries == [WRONG, WRONG, WAIT]
    assert log_in("consumer", server, place, "bert", "right") == IN


def test_a_name_that_is_tried_from_everywhere_is_still_its_owners(
    server: Serving, place: str, user: str
) -> None:
    assert log_in("line", server, place, user, "right") == IN
    for _ in range(LIMIT * 3):
        log_in("line", server, next(_places), user, "no")

    assert log_in("mqtt 5", server, place, user, "right") == IN
    assert log_in("mqtt 5", server, next(_places), user, "right") == IN
    known = [log_in("line", server, place, user, "no") for _ in range(LIMIT + 1)]
    fresh = next(_places)
    others = [log_in("line", server, fresh, user, "no") for _ in range(LIMIT)]
    assert known == [WRONG] * LIMIT + [WAIT]
    assert others == [WRONG, WRONG, WAIT]


def test_a_known_user_comes_in_among_sixty_bogus_ones(
    server: Serving, place: str, user: str
) -> None:
    with ExitStack() as stack:
        for number in range(60):
            one = stack.enter_context(door("line", server, place))
            one.sock.sendall(f"as bogus{number} no\n".encode())

        assert log_in("line", server, place, user, "right") == IN


def test_wrong_tokens_count_and_a_right_one_is_not_held_up(server: Serving) -> None:
    def statuses(*tokens: str) -> list[int]:
        found = []
        for token in tokens:
            client = Http(server, token)
            found.append(client.ask("GET", "/v1/topics").status)
        return found

    right = Http(server).token
    assert right is not None

    wrong = statuses(*["pk_" + "x" * 43] * LIMIT)
    body = {"token": "pk_no"}
    login = Http(server, None).ask("POST", "/v1/session", body)

    assert wrong == [401] * LIMIT
    assert (login.status, login.json()["error"]) == (429, "TooManyAttempts")
    assert statuses("pk_no", right) == [429, 200]


def test_failures_are_in_the_log_and_in_the_metrics(
    server: Serving, place: str, user: str
) -> None:
    before = counted(server, "failures", "mqtt")
    refused = counted(server, "refusals", "mqtt")

    for _ in range(LIMIT + 2):
        log_in("mqtt 5", server, place, user, "no")

    assert counted(server, "failures", "mqtt") - before == LIMIT
    assert counted(server, "refusals", "mqtt") - refused == 2
    lines = [one for one in server.log.read_text().splitlines() if place in one]
    assert len(lines) == 1, "the others are one line, a minute later"
    assert f"a login over mqtt as '{user}' from {place} has failed" in lines[0]


def counted(server: Serving, what: str, gateway: str) -> int:
    page = Http(server).ask("GET", "/metrics").body.decode()
    name = f'penstock_login_{what}_total{{gateway="{gateway}"}}'
    found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.M)
    return int(float(found[1])) if found else 0


# Behind a proxy

PROXY = "127.6.0.1"


def ask(server: Serving, user: str, source: str, **headers: str) -> int:
    """The status of a request with a wrong password."""
    said = base64.b64encode(f"{user}:no".encode()).decode()
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with socket.create_connection(
        ("127.0.0.1", server.ports["http"]), PATIENCE_S, (source, 0)
    ) as sock:
        head = "GET /v1/session HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: Basic {said}\r\n"
        sock.sendall((head + "\r\n".join([*lines, "", ""])).encode())
        return answer_of(sock).status


@pytest.mark.parametrize(
    "header",
    [
        {"X_Forwarded_For": "{}"},
        {"X_Forwarded_For": "198.51.100.77, {}, 127.6.0.2"},
        {"Forwarded": 'for=198.51.100.77, for="{}:1234";proto=https'},
        {"X_Forwarded_For": "{}", "Forwarded": "for={}"},
    ],
)
def test_behind_a_proxy_the_client_is_counted(
    server: Serving, header: dict[str, str], user: str
) -> None:
    guesser, other = f"203.0.113.{next(_numbers)}", f"203.0.113.{next(_numbers)}"

    def says(client: str) -> dict[str, str]:
        return {name: text.format(client) for name, text in header.items()}

    guesses = [ask(server, user, PROXY, **says(guesser)) for _ in range(LIMIT + 1)]

    assert guesses == [401] * LIMIT + [429]
    assert ask(server, user, PROXY, **says(other)) == 401
    assert f"from {guesser} has failed" in server.log.read_text()


def test_who_is_no_proxy_cannot_say_where_it_comes_from(
    server: Serving, place: str, user: str
) -> None:
    made_up = (f"203.0.113.{200 + n}" for n in range(LIMIT + 1))

    guesses = [ask(server, user, place, X_Forwarded_For=one) for one in made_up]

    assert guesses == [401] * LIMIT + [429]


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Forwarded_For": "203.0.113.{}", "Forwarded": "for=203.0.113.250"},
        {"X_Forwarded_For": "unknown {}"},
        {"Forwarded": "for=_hidden{}"},
    ],
)
def test_a_header_that_makes_no_sense_gives_nobody_a_place_of_its_own(
    server: Serving, headers: dict[str, str], user: str
) -> None:
    proxy = f"127.6.1.{next(_numbers)}"

    guesses = [
        ask(
            server,
            user,
            proxy,
            **{name: text.format(n) for name, text in headers.items()},
        )
        for n in range(LIMIT + 1)
    ]

    assert guesses == [401] * LIMIT + [429]


# Users who are not what they were


@pytest.mark.parametrize(
    ("name", "change"),
    [*((one, "removed") for one in STANDING), ("line", "password"), ("line", "rules")],
)
def test_a_user_who_changes_is_cut_off(
    server: Serving, folder: Path, place: str, user: str, name: str, change: str
) -> None:
    path = folder / "users"
    with door(name, server, place) as one, door(name, server, place) as other:
        assert one.log_in(user, "right") == IN
        assert other.log_in("bert", "right") == IN
        assert peers(server).count(place) == 2

        if change == "removed":
            remove_user(path, user)
        elif change == "password":
            set_password(path, user, "new")
        else:
            set_rules(path, user, [Rule("publish", "t")])

        said = one.last_word()
        if name != "mqtt 3.1.1":
            assert "the users file has changed" in said
        if "mqtt" in name and said:
            assert said.startswith("0x87")
        if name == "native":
            assert said.startswith("LoginRefused")
        until(lambda: peers(server).count(place) == 1)


def test_a_user_who_is_removed_while_its_body_comes_publishes_nothing(
    server: Serving, folder: Path, user: str
) -> None:
    basic = base64.b64encode(f"{user}:right".encode()).decode()
    head = (
        "POST /v1/topics/late/events HTTP/1.1\r\nhost: localhost\r\n"
        f"authorization: Basic {basic}\r\ncontent-type: application/json\r\n"
        "expect: 100-continue\r\ncontent-length: 13\r\n\r\n"
    )
    with Wire(server.ports["http"]) as wire:
        wire.sock.sendall(head.encode())
        assert b"100 Continue" in wire.sock.recv(4096)  # it was let in
        remove_user(folder / "users", user)
        wire.sock.sendall(b'{"payload":1}')

        assert b" 401 " in wire.sock.recv(4096)


def test_who_does_not_read_is_cut_off_too(
    server: Serving, folder: Path, place: str, user: str
) -> None:
    with door("line", server, place) as one:
        assert one.log_in(user, "right") == IN
        one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sock.settimeout(1.0)
        try:
            while True:  # until the server does not read either
                one.sock.sendall(b"window 1\n" * 10_000)
        except TimeoutError:
            assert place in peers(server)

        remove_user(folder / "users", user)

        until(lambda: place not in peers(server))


def peers(server: Serving) -> list[str]:
    """Where those are that are connected."""
    answer = Http(server).ask("GET", "/v1/connections")
    return [one["peer"] for one in json.loads(answer.body)["connections"]]


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
