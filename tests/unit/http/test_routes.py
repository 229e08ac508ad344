from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from penstock.http.access import Access
from penstock.http.asking import parameters
from penstock.http.call import Special
from penstock.http.routes import ROUTES, SPECIAL
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.server.scene import run

ALL = [
    *((one.method, one.path, one.access) for one in ROUTES),
    *(
        (one.method, one.path, one.access)
        for one in SPECIAL
        if isinstance(one, Special)
    ),
]
SAFE = ("GET", "HEAD")
UNSAFE = [one for one in ALL if one[0] not in SAFE]


def filled(path: str, topic: str = "t") -> str:
    for name in parameters(path):
        value = topic if name == "topic" else "1"
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


def test_no_verb_is_asked_in_two_ways_that_do_the_same() -> None:
    asked = [(one.method, one.verb) for one in ROUTES]

    assert len(asked) == len(set(asked))


def test_whatever_changes_something_needs_more_than_reading() -> None:
    free = {(method, path) for method, path, access in UNSAFE if access in EVERYBODYS}

    assert free == {("POST", "/v1/session"), ("DELETE", "/v1/session")}


EVERYBODYS = (Access.NONE, Access.ANY, Access.READ, Access.SEE, Access.FOLLOW)


def test_only_these_need_no_token() -> None:
    free = {(method, path) for method, path, access in ALL if access is Access.NONE}

    assert free == {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),  # asks for itself
        ("POST", "/v1/session"),
    }


@pytest.mark.parametrize(("method", "path", "access"), ALL)
def test_every_route_that_needs_a_token_asks_for_it(
    tmp_path: Path, method: str, path: str, access: Access
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            for token in (None, "pk_" + "x" * 43):
                answer = await house.ask(method, filled(path), token=token)

                assert (answer.status == 401) == (
                    access is not Access.NONE or path == "/metrics"
                )

    run(scene())


@pytest.mark.parametrize(
    ("method", "path"),
    [one[:2] for one in UNSAFE if one[2] not in (Access.NONE, Access.ANY)],
)
def test_a_token_that_reads_changes_nothing(
    tmp_path: Path, method: str, path: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            token = house.new_token("r", scope="read")

            answer = await house.ask(method, filled(path), {}, token=token)

            assert answer.status == 403
            assert answer.json()["error"] == "NotAllowed"

    run(scene())


@pytest.mark.parametrize(
    ("method", "path", "access"), [one for one in ALL if one[2] is Access.ADMIN]
)
def test_a_token_of_topics_changes_nothing_but_their_events(
    tmp_path: Path, method: str, path: str, access: Access
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            token = topics_token(house)

            assert (
                await house.ask(method, filled(path), {}, token=token)
            ).status == 403

    run(scene())


@pytest.mark.parametrize(
    ("method", "path", "access"),
    [one for one in ALL if "{topic}" in one[1] and one[2] is not Access.ADMIN],
)
def test_a_token_of_topics_is_for_its_topics_only(
    tmp_path: Path, method: str, path: str, access: Access
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            token = topics_token(house)

            for topic in ("other", "$dead-letters", "t/x"):
                answer = await house.ask(method, filled(path, topic), {}, token=token)

                assert answer.status == 403, topic

    run(scene())


def topics_token(house: HttpHouse) -> str:
    return house.new_token("s", scope="topics", publish=("t",), subscribe=("t",))


def test_a_token_of_topics_sees_its_topics(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})
            token = topics_token(house)

            for path, status in [
                ("/v1/topics/t", 200),
                ("/v1/topics/t/comments", 200),
                ("/v1/topics", 403),
                ("/v1/overview", 403),
                ("/v1/dead-letters", 403),
            ]:
                answer = await house.ask("GET", path, token=token)
                assert answer.status == status, path

    run(scene())


def test_every_question_of_a_get_has_an_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})
            for one in ROUTES:
                if one.method == "GET":
                    path = filled(one.path)
                    if one.verb == "topics.offset_at":
                        path += "?timestamp=0"
                    answer = await house.ask("GET", path)
                    assert answer.status in (200, 404), (path, answer.body)
                    if "{" not in one.path or one.path.endswith("{topic}/log"):
                        assert answer.status == 200, path

    run(scene())


def test_payloads_in_logs_are_for_those_who_may_read_them() -> None:
    logs = next(route for route in ROUTES if route.verb == "logs")

    assert logs.access is Access.FOLLOW
