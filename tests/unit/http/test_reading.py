from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from penstock.errors import BadRequest, InvalidArgument
from penstock.http.options import HttpOptions
from penstock.http.reading import (
    MAX_QUESTION_BYTES,
    MAX_SHOWN_BYTES,
    query_of,
    typed,
)
from tests.unit.http.scene import http_house
from tests.unit.server.scene import run


class Query(msgspec.Struct, forbid_unknown_fields=True):
    limit: int = 1
    own: bool = False
    name: str | None = None


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        (b"", {}),
        (b"a=1&b=", {"a": "1", "b": ""}),
        (b"a=x+y%2Fz%C3%A9", {"a": "x y/zé"}),
        (b"a", {"a": ""}),
    ],
)
def test_a_query_is_fields_and_their_text(raw: bytes, fields: dict[str, str]) -> None:
    assert query_of(raw) == fields


@pytest.mark.parametrize(
    "raw", [b"a=%ff", b"\xff", b"a=1&a=2", b"&".join([b"a=1"] * 101)]
)
def test_a_query_that_makes_no_sense_is_refused(raw: bytes) -> None:
    with pytest.raises(BadRequest):
        query_of(raw)


def test_text_becomes_what_it_has_to_be() -> None:
    found = typed({"limit": "5", "own": "true", "name": "null"}, Query, "v")

    assert found == Query(limit=5, own=True, name="null")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limit": "x"}, r"v: .*argument `limit`"),
        ({"own": "perhaps"}, r"argument `own`"),
        ({"limits": "1"}, r"there is no argument `limits`"),
    ],
)
def test_what_it_cannot_be_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        typed(given, Query, "v")


@pytest.mark.parametrize(
    ("body", "media_type", "status", "error"),
    [
        (b'{"name": "a"}', "application/json", 201, ""),
        (b'{"name": "a"}', "Application/JSON; charset=utf-8", 201, ""),
        (b'{"name": "a"}', "text/plain", 415, "WrongMediaType"),
        (b'{"name": "a"}', "", 415, "WrongMediaType"),
        (b"", "", 422, "InvalidArgument"),
        (b"{", "application/json", 400, "BadRequest"),
        (b"\xff", "application/json", 400, "BadRequest"),
        (b'{"name": "\xff"}', "application/json", 400, "BadRequest"),
        (b"[" * 100_000, "application/json", 422, "InvalidArgument"),
        (b"[]", "application/json", 422, "InvalidArgument"),
        (b'{"name": 1}', "application/json", 422, "InvalidArgument"),
        (b'{"name": "a", "x": 1}', "application/json", 422, "InvalidArgument"),
    ],
)
def test_a_body_is_json_of_the_right_kind(
    tmp_path: Path, body: bytes, media_type: str, status: int, error: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {"content-type": media_type} if media_type else {}
            answer = await house.ask("POST", "/v1/topics", body, headers=headers)

            assert answer.status == status
            assert answer.json().get("error", "") == error

    run(scene())


def test_a_body_that_is_declared_too_large_is_not_read(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(max_body_bytes=1024)) as house:
            headers = {"content-type": "application/json", "content-length": "1025"}
            answer = await house.ask("POST", "/v1/topics", headers=headers, parts=[])

            assert answer.status == 413
            assert answer.json()["limit"] == "1024"
            assert "http.max_body_bytes" in answer.json()["detail"]

    run(scene())


def test_a_body_that_becomes_too_large_is_read_no_further(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(max_body_bytes=1024)) as house:
            parts = [b" " * 500] * 3
            headers = {"content-type": "application/json"}
            answer = await house.ask(
                "POST", "/v1/topics", headers=headers, parts=[*parts, b"", b""]
            )

            assert answer.status == 413

    run(scene())


def test_whom_nobody_knows_has_less_time_for_its_body(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(header_s=0.01)) as house:
            headers = {"content-type": "application/json"}
            answer = await house.ask("POST", "/v1/session", headers=headers, parts=[])

            assert answer.status == 408
            assert "http.header_s" in answer.json()["detail"]

    run(scene())


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(
            tmp_path, HttpOptions(header_s=0.001, body_s=0.01)
        ) as house:
            headers = {"content-type": "application/json"}
            answer = await house.ask("POST", "/v1/topics", headers=headers, parts=[])

            assert answer.status == 408
            assert "http.body_s" in answer.json()["detail"]

    run(scene())


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "value"),
    [
        ("GET", "/v1/topics?limit=2000", None, "limit", "2000"),
        ("GET", "/v1/topics?limit=many", None, "limit", "many"),
        ("GET", "/v1/topics/t/events/x", None, "offset", "'x'"),
        ("POST", "/v1/topics", {"name": 7}, "name", "7"),
        ("POST", "/v1/topics", {"name": ["a", 1]}, "name", '["a",1]'),
        ("POST", "/v1/topics", {}, "name", ""),
    ],
)
def test_a_problem_names_the_value_that_does_not_fit(
    tmp_path: Path, method: str, path: str, body: object, field: str, value: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})

            answer = await house.ask(method, path, body)

            assert answer.status == 422
            said = answer.json()
            assert said.get("value", "") == value
            assert said.get("field", "") == field

    run(scene())


@pytest.mark.parametrize(
    ("path", "size", "status"),
    [
        ("/v1/topics", MAX_QUESTION_BYTES, 201),
        ("/v1/topics", MAX_QUESTION_BYTES + 1, 413),
        ("/v1/dead-letters/0/edit", MAX_QUESTION_BYTES + 1, 422),
        ("/v1/topics/t/schema/check", MAX_QUESTION_BYTES + 1, 422),
        ("/v1/subscriptions/me/t/pull", MAX_QUESTION_BYTES + 1, 422),
    ],
)
def test_bodies_that_carry_no_payload_are_not_as_large_as_others(
    tmp_path: Path, path: str, size: int, status: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {"content-type": "application/json"}
            body = b'{"name": "a"}'.ljust(size)
            answer = await house.ask("POST", path, body, headers=headers)

            assert answer.status == status, answer.body

    run(scene())


@pytest.mark.parametrize(("size", "shown"), [(100, True), (MAX_SHOWN_BYTES + 1, False)])
def test_what_is_wrong_in_a_body_is_shown_unless_it_is_large(
    tmp_path: Path, size: int, *, shown: bool
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {"content-type": "application/json"}
            body = b'{"name": 17}'.ljust(size)
            answer = await house.ask("POST", "/v1/topics", body, headers=headers)

            assert answer.status == 422
            assert (answer.json().get("value") == "17") is shown

    run(scene())
