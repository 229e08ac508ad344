from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.http.options import HttpOptions
from tests.unit.http.scene import http_house
from tests.unit.http.test_guard import Users, login
from tests.unit.server.scene import run


def test_logging_in_sets_a_cookie_that_no_script_reads(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            said = {"token": house.token}
            answer = await house.ask("POST", "/v1/session", said, token=None)

            told = answer.json()
            assert (told["scope"], told["name"]) == ("admin", "admin")
            assert told["expires_ms"] > house.clock.now_s() * 1000
            cookie = answer.headers["set-cookie"]
            assert cookie.startswith("penstock_session=")
            parts = {part.strip().lower() for part in cookie.split(";")[1:]}
            assert parts == {"httponly", "samesite=strict", "path=/"}
            assert told["csrf"] not in cookie

    run(scene())


def test_by_tls_the_cookie_is_secure(tmp_path: Path) -> None:
    async def scene() -> None:
        options = HttpOptions(public_url="https://events.example")
        async with http_house(tmp_path, options) as house:
            said = {"token": house.token}
            answer = await house.ask("POST", "/v1/session", said, token=None)

            assert "; secure" in answer.headers["set-cookie"].lower()

    run(scene())


def test_who_one_is_can_be_asked(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            cookie, csrf = await login(house)
            by_cookie = await house.ask(
                "GET", "/v1/session", token=None, headers={"cookie": cookie}
            )
            by_token = await house.ask("GET", "/v1/session")
            nobody = await house.ask("GET", "/v1/session", token=None)

            assert by_cookie.json()["csrf"] == csrf
            assert by_token.json() == {
                "scope": "admin",
                "name": "admin",
                "csrf": "",
                "expires_ms": None,
            }
            assert nobody.status == 401

    run(scene())


def test_logging_out_ends_the_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            cookie, csrf = await login(house)
            headers = {"cookie": cookie, "x-csrf-token": csrf}
            forged = await house.ask(
                "DELETE", "/v1/session", token=None, headers={"cookie": cookie}
            )

            out = await house.ask("DELETE", "/v1/session", token=None, headers=headers)
            after = await house.ask("GET", "/v1/session", token=None, headers=headers)

            assert (forged.status, out.status, after.status) == (403, 204, 401)
            assert 'penstock_session=""' in out.headers["set-cookie"]

    run(scene())


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({}, 422),
        ({"token": "pk_no"}, 401),
        ({"token": 1}, 422),
        ({"token": "pk_no", "user": "anna", "password": "right"}, 422),
        ({"user": "anna"}, 422),
        ({"user": "anna", "password": "wrong"}, 401),
        ({"user": "anna", "password": "right"}, 200),
        ({"token": "pk_no", "more": 1}, 422),
    ],
)
def test_a_login_is_a_token_or_a_user_with_the_password(
    tmp_path: Path, said: object, status: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, check_user=Users()) as house:
            answer = await house.ask("POST", "/v1/session", said, token=None)

            assert answer.status == status
            assert ("set-cookie" in answer.headers) == (status == 200)

    run(scene())


def test_other_pages_do_not_log_anybody_in(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {"origin": "http://evil.example"}
            said = {"token": house.token}
            answer = await house.ask(
                "POST", "/v1/session", said, token=None, headers=headers
            )

            assert answer.status == 403

    run(scene())


def test_a_form_is_no_login(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {"content-type": "text/plain"}
            body = b'{"token": "x"}'
            answer = await house.ask(
                "POST", "/v1/session", body, token=None, headers=headers
            )

            assert answer.status == 415

    run(scene())


def test_a_login_is_short(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            said = {"token": "x" * 20_000}
            answer = await house.ask("POST", "/v1/session", said, token=None)

            assert answer.status == 413
            assert answer.json()["limit"] == "16384"

    run(scene())


def test_the_session_of_a_user_with_rules_is_bound_by_them(tmp_path: Path) -> None:
    async def scene() -> None:
        users = Users(Rule("publish", "in"))
        async with http_house(tmp_path, check_user=users) as house:
            said = {"user": "anna", "password": "right"}
            answer = await house.ask("POST", "/v1/session", said, token=None)
            told = answer.json()
            headers = {
                "cookie": answer.headers["set-cookie"].partition(";")[0],
                "x-csrf-token": told["csrf"],
            }

            stored, refused = [
                await house.ask(
                    *("POST", f"/v1/topics/{topic}/events", {"payload": 1}),
                    token=None,
                    headers=headers,
                )
                for topic in ("in", "out")
            ]

            assert (told["scope"], told["name"]) == ("topics", "anna")
            assert (stored.status, refused.status) == (201, 403)
            problem = refused.json()
            assert problem["error"] == "NotAllowed"
            assert problem["detail"] == "user anna may not publish to out"
            assert problem["hint"]

    run(scene())
