from __future__ import annotations

from pathlib import Path

import pytest

from penstock.http.answers import json_answer
from tests.unit.http.scene import http_house
from tests.unit.server.scene import run


def test_an_answer_in_json_is_not_to_be_stored() -> None:
    answer = json_answer({"a": 1}, 201)

    assert answer.body == b'{"a":1}'
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/v1/topics", 200),
        ("GET", "/v1/topics/none", 404),
        ("GET", "/nothing", 404),
        ("PUT", "/v1/topics", 405),
        ("GET", "/openapi.json", 200),
        ("GET", "/%ff", 400),
    ],
)
def test_every_answer_has_the_headers_that_keep_browsers_out_of_trouble(
    tmp_path: Path, method: str, path: str, status: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask(method, path)

            assert answer.status == status
            assert answer.headers["x-content-type-options"] == "nosniff"
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'self';")
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert not [name for name in answer.headers if "allow-origin" in name]

    run(scene())
