from __future__ import annotations

from pathlib import Path

from penstock.log import Columns
from tests.unit.http.scene import http_house
from tests.unit.server.scene import run


def test_a_server_that_answers_lives_and_is_ready(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            for path in ("/healthz", "/readyz"):
                answer = await house.ask("GET", path, token=None)

                assert answer.status == 200
                assert answer.json()["status"] == "ok"

    run(scene())


def test_a_server_that_ends_lives_and_is_not_ready(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.house.opened.end()

            assert (await house.ask("GET", "/healthz", token=None)).status == 200
            answer = await house.ask("GET", "/readyz", token=None)

            assert answer.status == 503
            assert answer.json()["status"] == "ending"

    run(scene())


def test_a_server_that_cannot_write_is_not_ready(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.broker.publish("t", Columns([b"1"], 0))
            house.files.fail("write", "journal")
            house.engine.kick()
            await house.process.until(lambda: house.engine.broker.log.failure)

            answer = await house.ask("GET", "/readyz", token=None)

            assert answer.status == 503
            assert answer.json()["status"] == "failing"
            house.clock.advance(1)
            assert (await house.ask("GET", "/readyz", token=None)).status == 200

    run(scene())
