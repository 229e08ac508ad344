from __future__ import annotations

from pathlib import Path

import pytest

from penstock.http import live as module
from penstock.http.live import LiveView
from penstock.http.options import HttpOptions
from penstock.log import Columns
from tests.unit.http.scene import http_house
from tests.unit.http.streaming import streamed
from tests.unit.server.scene import run


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds take no time."""
    monkeypatch.setattr(module, "FRAME_S", 0.001)
    monkeypatch.setattr(module, "LATE_S", 0.0)


def test_a_look_lasts_until_its_client_goes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            async with streamed(house, "GET", "/v1/live") as answer:
                await answer.until(lambda: answer.body.count(b"event: overview") > 2)

                assert answer.status == 200
                assert answer.headers["content-type"].startswith("text/event-stream")
                assert house.house.opened.count == 1

            assert not answer.ended  # it was the client who went
            assert house.house.opened.count == 0

    run(scene())


def test_a_look_ends_with_the_server(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path) as house,
            streamed(house, "GET", "/v1/live") as answer,
        ):
            await answer.until(lambda: b"event: overview" in answer.body)

            house.house.opened.end()
            await answer.until_done()

            assert answer.ended

    run(scene())


def test_who_does_not_read_is_told_everything_at_last(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path) as house,
            streamed(house, "GET", "/v1/live") as answer,
        ):
            await answer.until(lambda: b"event: overview" in answer.body)
            answer.reads.clear()
            seen, number = len(answer.writes), house.house.live.number
            with house.house.live.look(LiveView()) as other:
                while house.house.live.number < number + 5:
                    await other.notifier.wait(1.0)

            answer.reads.set()
            await answer.until(lambda: len(answer.writes) >= seen + 2)

            assert b'"whole":true' in answer.writes[seen + 1]

    run(scene())


def test_only_the_head_is_sent_to_whoever_asks_for_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("HEAD", "/v1/live")

            assert (answer.status, answer.body) == (200, b"")
            assert house.house.opened.count == 0

    run(scene())


def test_no_more_look_than_there_may_be_streams(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            http_house(tmp_path, HttpOptions(max_streams=1)) as house,
            streamed(house, "GET", "/v1/live") as one,
        ):
            await one.until(lambda: bool(one.messages))

            answer = await house.ask("GET", "/v1/live")

            assert answer.status >= 400
            assert answer.json()["error"] == "LimitReached"

    run(scene())


@pytest.mark.parametrize("query", ["?topics=perhaps", "?nonsense=1"])
def test_a_wish_that_makes_no_sense_is_refused(tmp_path: Path, query: str) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("GET", f"/v1/live{query}")

            assert (answer.status, answer.json()["error"]) == (422, "InvalidArgument")

    run(scene())


def test_metrics_need_a_token_that_reads_unless_they_are_open(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path / "a") as house:
            house.broker.publish("t", Columns([b"x"], 0))
            house.broker.log.commit()
            topics = house.new_token("some", scope="topics", subscribe=("t",))
            reader = house.new_token("reader", scope="read")

            assert (await house.ask("GET", "/metrics", token=None)).status == 401
            assert (await house.ask("GET", "/metrics", token=topics)).status == 403
            answer = await house.ask("GET", "/metrics", token=reader)
            assert answer.status == 200
            assert b'penstock_topic_events{topic="t"} 1.0' in answer.body
        async with http_house(tmp_path / "b", HttpOptions(open_metrics=True)) as house:
            assert (await house.ask("GET", "/metrics", token=None)).status == 200

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    run(scene())
