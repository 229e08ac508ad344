"""Which topics there are for whoever asks, and when asking ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from penstock.access.grants import Grants, Rule
from penstock.errors import InvalidQuery, LimitReached, MissingExtra, PenstockError
from penstock.http import sql_routes
from penstock.http.options import HttpOptions
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.http.streaming import streamed
from tests.unit.server.scene import run

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
FOUND = {"columns": [], "rows": [[1]], "cut": None, "notes": []}
SELECT = "/v1/sql?query=SELECT%201"


class Fake:
    """Answers at once, or when it is let; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str], dict[str, str]]] = []
        self.askers: list[str] = []
        self.problem: PenstockError | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self.waiting = 0

    def check(self) -> None:
        if self.problem is not None:
            raise self.problem

    async def answer(
        self,
        query: str,
        topics: Sequence[str],
        schemas: Mapping[str, str],
        asker: str = "",
    ) -> bytes:
        self.asked.append((query, list(topics), dict(schemas)))
        self.askers.append(asker)
        self.check()
        self.waiting += 1
        try:
            await self.answers.wait()
        finally:
            self.waiting -= 1
        return json.dumps(FOUND).encode()


@asynccontextmanager
async def asking(folder: Path, **more: Any) -> AsyncIterator[tuple[HttpHouse, Fake]]:
    async with http_house(folder, **more) as house:
        fake = Fake()
        object.__setattr__(house.house, "questions", fake)  # frozen for others
        for name in ("orders", "secret", "$own"):
            house.broker.log.create_topic(name)
        house.broker.log.commit()
        yield house, fake


def sql(query: str) -> str:
    return f"/v1/sql?query={quote(query)}"


def test_an_answer_comes_with_the_time_it_took(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            answer = await house.ask("GET", sql("SELECT 1 AS ü"))

            told = answer.json()
            assert told.pop("seconds") >= 0
            assert told == FOUND
            assert answer.headers["cache-control"] == "no-store"
            assert fake.asked[0][0] == "SELECT 1 AS ü"

    run(scene())


@pytest.mark.parametrize(
    ("scope", "patterns", "topics"),
    [
        ("admin", (), ["$own", "orders", "secret"]),
        ("read", (), ["$own", "orders", "secret"]),
        ("topics", ("orders",), ["orders"]),
        ("topics", ("*",), ["orders", "secret"]),
    ],
)
def test_only_what_a_token_may_read_is_there_for_it(
    tmp_path: Path, scope: str, patterns: tuple[str, ...], topics: list[str]
) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            token = house.new_token("t", scope=scope, subscribe=patterns)

            answer = await house.ask("GET", sql("FROM secret"), token=token)
            listed = await house.ask("GET", "/v1/sql/topics", token=token)

            assert answer.status == 200
            assert fake.asked[0][1] == topics
            assert fake.askers == ["token t"]
            shown = [name for name in topics if not name.startswith("$")]
            assert listed.json()["topics"] == shown

    run(scene())


def test_rules_of_a_user_say_what_is_there(tmp_path: Path) -> None:
    async def check(user: str, password: str, address: str) -> Grants:
        return Grants(
            user="anna", rules=(Rule("read", "orders"), Rule("publish", "secret"))
        )

    async def scene() -> None:
        async with asking(tmp_path, check_user=check) as (house, fake):
            login = {"authorization": "Basic YW5uYTpwdw=="}

            answer = await house.ask("GET", SELECT, headers=login)

            assert answer.status == 200
            assert fake.asked[0][1] == ["orders"]
            assert fake.askers == ["user anna"]

    run(scene())


def test_who_may_read_nothing_asks_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            token = house.new_token("p", scope="topics", publish=("orders",))

            answer = await house.ask("GET", SELECT, token=token)

            assert answer.status == 403
            assert fake.asked == []

    run(scene())


def test_schemas_go_with_the_topics_that_are_named(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            for topic in ("orders", "secret"):
                path = f"/v1/topics/{topic}/schema"
                assert (await house.ask("PUT", path, {"schema": SCHEMA})).status == 200

            await house.ask("GET", sql("SELECT n FROM ORDERS"))

            assert list(fake.asked[0][2]) == ["orders"]
            assert json.loads(fake.asked[0][2]["orders"]) == SCHEMA

    run(scene())


def test_a_schema_of_a_topic_one_may_not_read_is_not_passed_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            await house.ask("PUT", "/v1/topics/secret/schema", {"schema": SCHEMA})
            token = house.new_token("t", scope="topics", subscribe=("orders",))

            await house.ask("GET", sql("SELECT n FROM secret"), token=token)

            assert fake.asked[0][1:] == (["orders"], {})

    run(scene())


def test_a_question_carries_so_many_schemas_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_routes, "MAX_SCHEMA_BYTES", 10)

    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            await house.ask("PUT", "/v1/topics/orders/schema", {"schema": SCHEMA})

            answer = await house.ask("GET", sql("SELECT n FROM orders"))

            assert answer.status == 422
            assert "more than 10 bytes" in answer.json()["detail"]
            assert fake.asked == []

    run(scene())


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (InvalidQuery("no"), 422),
        (LimitReached("questions in SQL", 2, "http.sql_questions"), 429),
        (MissingExtra("SQL", "duckdb", "sql"), 501),
    ],
)
def test_what_is_refused_is_a_problem(
    tmp_path: Path, problem: PenstockError, status: int
) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            fake.problem = problem

            answer = await house.ask("GET", SELECT)

            assert answer.status == status
            assert answer.json()["detail"] == str(problem)

    run(scene())


@pytest.mark.parametrize(
    "path",
    ["/v1/sql", "/v1/sql?query=", "/v1/sql?query=a&more=b", "/v1/sql/topics?x=1"],
)
def test_what_is_no_question_is_refused(tmp_path: Path, path: str) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            assert (await house.ask("GET", path)).status == 422
            assert fake.asked == []

    run(scene())


def test_the_limits_are_told(tmp_path: Path) -> None:
    async def scene() -> None:
        options = HttpOptions(sql_rows=7, sql_s=1.5, sql_answer_bytes=2048)
        async with asking(tmp_path, options=options) as (house, _):
            limits = (await house.ask("GET", "/v1/sql/topics")).json()["limits"]

            assert limits == {
                "seconds": 1.5,
                "memory_bytes": options.sql_memory_bytes,
                "rows": 7,
                "answer_bytes": 2048,
            }

    run(scene())


def test_topics_come_by_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_routes, "MAX_ROWS", 1)
    monkeypatch.setattr(sql_routes, "STEP", 1)

    async def scene() -> None:
        async with asking(tmp_path) as (house, _):
            first = (await house.ask("GET", "/v1/sql/topics")).json()
            then = (await house.ask("GET", "/v1/sql/topics?after=orders")).json()

            assert (first["topics"], first["more"]) == (["orders"], True)
            assert (then["topics"], then["more"]) == (["secret"], False)

    run(scene())


def test_a_question_ends_with_its_client(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            fake.answers.clear()
            async with streamed(house, "GET", SELECT) as answer:
                await house.process.until(lambda: fake.waiting)
                answer.disconnect()
                await answer.until_done()

            assert fake.waiting == 0
            assert answer.messages == []
            assert house.house.opened.count == 0

    run(scene())


def test_a_question_ends_with_the_server(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            fake.answers.clear()
            async with streamed(house, "GET", SELECT) as answer:
                await house.process.until(lambda: fake.waiting)
                house.house.opened.end()
                await answer.until_done()

            assert answer.status == 503
            assert fake.waiting == 0

    run(scene())


def test_a_question_ends_with_the_login(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            fake.answers.clear()
            token = house.new_token("r", scope="read")
            async with streamed(house, "GET", SELECT, token=token) as answer:
                await house.process.until(lambda: fake.waiting)
                assert (await house.ask("DELETE", "/v1/tokens/r")).status == 200
                house.house.opened.check()
                await answer.until_done()

            assert answer.status == 401
            assert fake.waiting == 0

    run(scene())


def test_a_page_of_another_site_asks_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with asking(tmp_path) as (house, fake):
            logged_in = await house.ask(
                "POST", "/v1/session", {"token": house.token}, token=None
            )
            cookie = logged_in.headers["set-cookie"].partition(";")[0]
            own = {"cookie": cookie, "sec-fetch-site": "same-origin"}
            other = {"cookie": cookie, "sec-fetch-site": "cross-site"}

            forged = await house.ask("GET", SELECT, token=None, headers=other)
            asked = await house.ask("GET", SELECT, token=None, headers=own)

            assert (forged.status, asked.status) == (403, 200)
            assert len(fake.asked) == 1

    run(scene())


def test_a_house_without_answers_has_no_such_route(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            assert (await house.ask("GET", SELECT)).status == 404

    run(scene())
