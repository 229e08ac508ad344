from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.http.scene import http_house
from tests.unit.server.scene import run


def test_a_token_is_made_shown_once_and_counts_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            said = {
                "name": "shop",
                "scope": "topics",
                "publish": ["orders"],
                "days": 0.5,
            }
            made = await house.ask("POST", "/v1/tokens", said)
            listed = await house.ask("GET", "/v1/tokens")

            told = made.json()
            assert made.status == 201
            assert told["expires_ms"] == told["made_ms"] + 12 * 3600 * 1000
            assert told["token"] not in listed.body.decode()
            names = [row["name"] for row in listed.json()["tokens"]]
            assert names == ["admin", "shop"]
            who = await house.ask("GET", "/v1/session", token=told["token"])
            assert who.json()["scope"] == "topics"

    run(scene())


def test_a_token_is_removed_by_a_name_with_slashes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            token = house.new_token("a/b c")

            answer = await house.ask("DELETE", "/v1/tokens/a%2Fb%20c")
            again = await house.ask("DELETE", "/v1/tokens/a%2Fb%20c")

            assert (answer.status, again.status) == (200, 404)
            assert answer.json()["name"] == "a/b c"
            assert (await house.ask("GET", "/v1/session", token=token)).status == 401

    run(scene())


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"name": ""},
        {"name": "admin"},
        {"name": "x", "scope": "root"},
        {"name": "x", "scope": "topics"},
        {"name": "x", "publish": ["t"]},
        {"name": "x", "days": 0},
        {"name": "x", "days": 1e9},
        {"name": "x", "more": 1},
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, said: object) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("POST", "/v1/tokens", said)

            assert answer.status == 422
            assert list(house.key_file.read()) == ["admin"]

    run(scene())
