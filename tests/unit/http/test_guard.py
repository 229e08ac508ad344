from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.access.grants import Grants, Rule
from penstock.errors import LoginRefused
from penstock.http.access import Access
from penstock.http.guard import PLACE, Guard
from penstock.http.options import HttpOptions
from tests.unit.http.scene import HOST, Answer, HttpHouse, http_house
from tests.unit.http.streaming import streamed
from tests.unit.server.scene import run

OWN = f"http://{HOST}"


async def login(house: HttpHouse, token: str | None = None) -> tuple[str, str]:
    """A session: its cookie, and the word against forgery."""
    said = {"token": token or house.token}
    answer = await house.ask("POST", "/v1/session", said, token=None)
    assert answer.status == 200, answer.body
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return cookie, answer.json()["csrf"]


async def change(house: HttpHouse, headers: Mapping[str, str]) -> Answer:
    """Something that needs a token, and changes something."""
    body = {"name": "made"}
    return await house.ask("POST", "/v1/topics", body, token=None, headers=headers)


def test_without_a_token_there_is_nothing_to_see(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("GET", "/v1/topics", token=None)

            assert answer.status == 401
            assert answer.json()["error"] == "LoginRefused"
            assert "Basic" not in answer.headers["www-authenticate"]

    run(scene())


@pytest.mark.parametrize(
    "said",
    [
        "Bearer",
        "Bearer ",
        "Bearer pk_" + "x" * 43,
        "Bearer x",
        "Digest x",
        "x",
        "Basic !",
        "Basic eA==",
        "Basic /w==",
        "",
    ],
)
def test_a_wrong_token_is_refused(tmp_path: Path, said: str) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {"authorization": said}
            answer = await house.ask("GET", "/v1/topics", headers=headers)

            assert answer.status == 401

    run(scene())


def test_a_wrong_token_is_refused_beside_a_good_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            cookie, _ = await login(house)
            headers = {"authorization": "Bearer pk_no", "cookie": cookie}
            answer = await house.ask("GET", "/v1/topics", headers=headers)

            assert answer.status == 401

    run(scene())


def test_a_token_that_expires_takes_its_sessions_along(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            ends_ms = int(house.clock.now_s() * 1000) + 60_000
            token = house.new_token("brief", expires_ms=ends_ms)
            cookie, _ = await login(house, token)
            headers = {"cookie": cookie}
            before = await house.ask("GET", "/v1/topics", token=None, headers=headers)

            house.clock.advance(60)

            after = await house.ask("GET", "/v1/topics", token=None, headers=headers)
            assert (before.status, after.status) == (200, 401)
            assert (await house.ask("GET", "/v1/topics", token=token)).status == 401

    run(scene())


def test_a_token_that_is_removed_takes_its_sessions_along(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            cookie, _ = await login(house, house.new_token("brief"))
            removed = await house.ask("DELETE", "/v1/tokens/brief")

            headers = {"cookie": cookie}
            answer = await house.ask("GET", "/v1/topics", token=None, headers=headers)

            assert (removed.status, answer.status) == (200, 401)

    run(scene())


def test_a_session_changes_things_with_its_word(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            cookie, csrf = await login(house)
            headers = {
                "cookie": cookie,
                "x-csrf-token": csrf,
                "origin": OWN,
                "sec-fetch-site": "same-origin",
            }

            assert (await change(house, headers)).status == 201

    run(scene())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-csrf-token": ""},
        {"x-csrf-token": "wrong"},
        {"x-csrf-token": "right", "origin": "http://evil.example"},
        {"x-csrf-token": "right", "origin": "null"},
        {"x-csrf-token": "right", "origin": "http://127.0.0.1:9999"},
        {"x-csrf-token": "right", "origin": f"ftp://{HOST}"},
        {"x-csrf-token": "right", "origin": "http://[::1"},
        {"x-csrf-token": "right", "sec-fetch-site": "cross-site"},
        {"x-csrf-token": "right", "sec-fetch-site": "same-site"},
    ],
)
def test_what_other_pages_send_with_our_cookie_is_forged(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            cookie, csrf = await login(house)
            said = {**headers, "cookie": cookie}
            if said.get("x-csrf-token") == "right":
                said["x-csrf-token"] = csrf

            answer = await change(house, said)

            assert answer.status == 403
            assert answer.json()["error"] == "Forged"
            assert not house.broker.log.has_topic("made")

    run(scene())


def test_other_pages_may_not_even_look_with_our_cookie(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            cookie, _ = await login(house)
            headers = {"cookie": cookie, "sec-fetch-site": "same-site"}

            answer = await house.ask("GET", "/v1/topics", token=None, headers=headers)

            assert answer.status == 403

    run(scene())


def test_a_token_needs_no_word_and_may_come_from_anywhere(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {
                "authorization": f"Bearer {house.token}",
                "origin": "http://elsewhere.example",
            }

            assert (await change(house, headers)).status == 201

    run(scene())


def test_behind_a_proxy_its_address_is_our_own(tmp_path: Path) -> None:
    async def scene() -> None:
        options = HttpOptions(public_url="https://events.example")
        async with http_house(tmp_path, options) as house:
            cookie, csrf = await login(house)
            headers = {"cookie": cookie, "x-csrf-token": csrf}
            own = {**headers, "origin": "https://events.example"}
            other = {**headers, "origin": "http://events.example"}

            assert (await change(house, other)).status == 403
            assert (await change(house, own)).status == 201

    run(scene())


def test_loopback_is_open_only_if_the_settings_say_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(open_on_loopback=True)) as house:
            assert (await house.ask("GET", "/v1/topics", token=None)).status == 200
            assert (await change(house, {})).status == 201
            who = await house.ask("GET", "/v1/session", token=None)
            assert who.json()["scope"] == "open"

    run(scene())


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        (("192.0.2.1", 1), {}),
        (("not an address", 1), {}),
        (("127.0.0.1", 1), {"host": "evil.example:8420"}),
        (("127.0.0.1", 1), {"host": "[::1"}),
        (("127.0.0.1", 1), {"host": ""}),
        (("127.0.0.1", 1), {"x-forwarded-for": "127.0.0.1"}),
        (("127.0.0.1", 1), {"forwarded": "for=127.0.0.1"}),
        (("127.0.0.1", 1), {"x-real-ip": "127.0.0.1"}),
        (("127.0.0.1", 1), {"via": "1.1 proxy"}),
        (("127.0.0.9", 1), {}),
    ],
)
def test_an_open_loopback_is_open_to_this_machine_by_its_own_name(
    tmp_path: Path, client: tuple[str, int], headers: dict[str, str]
) -> None:
    async def scene() -> None:
        options = HttpOptions(open_on_loopback=True, proxies="127.0.0.9")
        async with http_house(tmp_path, options) as house:
            answer = await house.ask(
                "GET", "/v1/topics", token=None, client=client, headers=headers
            )

            assert answer.status == 401

    run(scene())


def test_other_pages_do_not_get_in_by_an_open_loopback(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(open_on_loopback=True)) as house:
            answer = await change(house, {"origin": "http://evil.example"})

            assert answer.status == 403

    run(scene())


class Users:
    """Anna's password is ``right``; knows from where somebody asked."""

    def __init__(self, *rules: Rule) -> None:
        self.addresses: list[str] = []
        self.rules: tuple[Rule, ...] | None = rules or None

    async def __call__(self, user: str, password: str, address: str) -> Grants:
        self.addresses.append(address)
        if (user.lower(), password) != ("anna", "right"):
            raise LoginRefused(f"wrong password for {user}")
        return Grants(user="anna", rules=self.rules)


def basic(user: str, password: str) -> dict[str, Any]:
    said = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"authorization": f"Basic {said}"}


def test_users_come_in_with_their_passwords(tmp_path: Path) -> None:
    async def scene() -> None:
        users = Users()
        async with http_house(tmp_path, check_user=users) as house:
            for user, password, status in [
                ("anna", "right", 200),
                ("Anna", "right", 200),
                ("anna", "wrong", 401),
                ("", "", 401),
            ]:
                headers = basic(user, password)
                answer = await house.ask("GET", "/v1/topics", headers=headers)
                assert answer.status == status

            assert users.addresses == ["127.0.0.1"] * 4

    run(scene())


@pytest.mark.parametrize(
    ("password", "told"), [("right", ["excused", "known"]), ("wrong", ["excused"])]
)
def test_whose_password_is_checked_is_excused_whether_its_body_is_here_or_not(
    tmp_path: Path, password: str, told: list[str]
) -> None:
    class Noting:
        def __init__(self) -> None:
            self.told: list[str] = []

        def excused(self) -> None:
            self.told.append("excused")

        def known(self) -> None:
            self.told.append("known")

    async def scene() -> None:
        async with http_house(tmp_path, check_user=Users()) as house:
            place = Noting()
            scope = {
                "type": "http",
                "method": "POST",
                "client": ("127.0.0.1", 1),
                "headers": [
                    (name.encode(), value.encode())
                    for name, value in basic("anna", password).items()
                ],
                "state": {PLACE: place},
            }
            with suppress(LoginRefused):
                await Guard(house.house).enter(scope, Access.ANY, None)

            assert place.told == told

    run(scene())


def test_without_a_users_file_there_are_no_users(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = basic("anna", "right")
            answer = await house.ask("GET", "/v1/topics", headers=headers)

            assert answer.status == 401

    run(scene())


def test_who_is_taken_out_of_the_users_file_has_no_session_left(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        lines: dict[str, object] = {"anna": "her line"}
        async with http_house(
            tmp_path, check_user=Users(), find_user=lines.get
        ) as house:
            body = {"user": "anna", "password": "right"}
            login = await house.ask("POST", "/v1/session", body, token=None)
            cookie = {"cookie": login.headers["set-cookie"].split(";")[0]}
            asked = [cookie, basic("anna", "right")]
            for headers in asked:
                answer = await house.ask(
                    "GET", "/v1/topics", token=None, headers=headers
                )
                assert answer.status == 200
            async with streamed(house, "GET", "/v1/live", cookie) as stream:
                await stream.until(lambda: b"data:" in stream.body)

                lines["anna"] = "another password"
                house.house.opened.check()

                await stream.until_done()
            answer = await house.ask("GET", "/v1/topics", token=None, headers=cookie)
            assert answer.status == 401

    run(scene())


def test_a_user_with_rules_does_what_they_say(tmp_path: Path) -> None:
    async def scene() -> None:
        users = Users(Rule("publish", "in"), Rule("read", "old"))
        async with http_house(tmp_path, check_user=users) as house:
            headers = basic("anna", "right")
            event = {"payload": 1}
            for topic in ("in", "old"):
                await house.ask("POST", "/v1/topics", {"name": topic})

            for method, path, body, status in [
                ("POST", "/v1/topics/in/events", event, 201),
                ("POST", "/v1/topics/old/events", event, 403),
                ("GET", "/v1/topics/in/events", None, 403),
                ("GET", "/v1/topics/old/events", None, 200),
                ("GET", "/v1/topics/in", None, 200),
                ("POST", "/v1/subscriptions/me/old/pull", {}, 403),
                ("GET", "/v1/topics", None, 403),
                ("DELETE", "/v1/topics/in", None, 403),
                ("GET", "/v1/session", None, 200),
            ]:
                answer = await house.ask(method, path, body, headers=headers)
                assert answer.status == status, (method, path)

    run(scene())
