from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.http.asking import body_name, parameters
from penstock.log import Columns
from penstock.model.policy import Policy
from tests.unit.http.scene import http_house
from tests.unit.server.scene import run


def test_parameters_of_a_path_come_in_order() -> None:
    assert parameters("/v1/x/{a}/y/{b}") == ["a", "b"]
    assert parameters("/v1") == []


def test_a_body_has_the_name_of_its_verb() -> None:
    assert body_name("topics.create") == "TopicsCreate"
    assert body_name("dead-letters.republish") == "DeadLettersRepublish"


def test_a_topic_is_made_shown_listed_and_deleted(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            said = {"name": "a/b ü", "durability": "os"}
            made = await house.ask("POST", "/v1/topics", said)
            shown = await house.ask("GET", "/v1/topics/a%2Fb%20%C3%BC")
            listed = await house.ask("GET", "/v1/topics?limit=1")
            gone = await house.ask("DELETE", "/v1/topics/a%2Fb%20%C3%BC")
            after = await house.ask("GET", "/v1/topics/a%2Fb%20%C3%BC")

            assert made.status == 201
            assert made.json()["name"] == "a/b ü"
            assert shown.json()["durability"] == "os"
            assert [row["name"] for row in listed.json()["topics"]] == ["a/b ü"]
            assert gone.status == 200
            assert after.status == 404
            assert after.json()["error"] == "UnknownTopic"

    run(scene())


def test_an_answer_waits_until_it_is_on_disk(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("POST", "/v1/topics", {"name": "t"})

            assert answer.status == 201
            log = house.broker.log
            assert log.synced == log.open_group - 1

    run(scene())


def test_what_cannot_be_written_was_not_done(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.files.fail("write", "journal")

            answer = await house.ask("POST", "/v1/topics", {"name": "t"})

            assert answer.status == 507
            assert answer.json()["retriable"]
            assert not house.broker.log.has_topic("t")

    run(scene())


def test_what_is_written_again_is_answered_at_last(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})
            await house.house.promises.kept(
                house.broker.publish("t", Columns([b"1", b"2"], 0)).group
            )
            house.broker.subscribe("me", "t", Policy(), "latest")
            await house.house.promises.kept_at_last(house.broker.promised)
            house.files.fail("write", "journal")

            path = "/v1/subscriptions/me/t/seek"
            asked = asyncio.create_task(house.ask("POST", path, {"start": 0}))
            await house.process.until(lambda: house.engine.broker.log.failure)
            assert not asked.done()
            house.clock.advance(1)
            house.engine.tick()
            answer = await asked

            assert answer.status == 200
            assert answer.json()["position"] == 0

    run(scene())


def test_who_did_it_is_whose_token_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})
            token = house.new_token("anna")
            said = {"text": "hello"}
            made = await house.ask("POST", "/v1/topics/t/comments", said, token=token)
            claimed = await house.ask(
                "POST", "/v1/topics/t/comments", {**said, "by": "otto"}, token=token
            )

            assert made.json()["by"] == "anna"
            assert claimed.status == 422
            assert claimed.json()["field"] == "by"

    run(scene())


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/v1/topics?limit=0", 422, "limit"),
        ("/v1/topics?limit=1001", 422, "limit"),
        ("/v1/topics?limit=x", 422, "limit"),
        ("/v1/topics?limits=1", 422, "limits"),
        ("/v1/topics/t?name=x", 422, "name"),
        ("/v1/topics/t/offset", 422, "timestamp"),
        ("/v1/dead-letters/x", 422, "number"),
        ("/v1/dead-letters/-1", 422, "number"),
        ("/v1/dead-letters?status=odd", 422, "status"),
        ("/v1/dead-letters?filter=x", 422, "filter"),
        ("/v1/dead-letters?topic=t&since_ms=5&limit=3", 200, ""),
        ("/v1/errors?subscriber=me&oldest_first=true", 200, ""),
        ("/v1/dead-letters/audit?by=anna", 200, ""),
        ("/v1/topics/t/documentation?text=x", 422, "text"),
        ("/v1/topics?limit=1&limit=2", 400, ""),
    ],
)
def test_what_a_query_says_is_checked(
    tmp_path: Path, path: str, status: int, field: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})

            answer = await house.ask("GET", path)

            assert answer.status == status, answer.body
            if status == 422:
                assert answer.json()["field"] == field

    run(scene())


def test_documentation_is_put_and_got(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})
            path = "/v1/topics/t/documentation"
            nothing = await house.ask("PUT", path, {})
            put = await house.ask("PUT", path, {"text": "# T"})
            got = await house.ask("GET", path)

            assert nothing.status == 422
            assert put.json()["by"] == "admin"
            assert got.json()["text"] == "# T"

    run(scene())


def test_a_schema_is_registered_checked_and_made_up_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            path = "/v1/topics/t/schema"
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
            put = await house.ask("PUT", path, {"schema": schema, "type": "T"})
            got = await house.ask("GET", path)
            mode = await house.ask("PUT", f"{path}/mode", {"mode": "none"})
            bad_mode = await house.ask("PUT", f"{path}/mode", {})
            payloads = {"payloads": [{"n": 1}, {"n": "x"}]}
            check = await house.ask("POST", f"{path}/check", payloads)
            mock = await house.ask("GET", f"{path}/mock?count=2&seed=5")

            assert put.json()["version"] == 1
            assert got.json()["type"] == "T"
            assert mode.json()["mode"] == "none"
            assert bad_mode.status == 422
            assert [row["index"] for row in check.json()["misfits"]] == [1]
            assert len(mock.json()["documents"]) == 2

    run(scene())


def test_a_chain_is_asked_for_by_id_or_by_place(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.broker.publish("t", Columns([b"1"], 0, ids=["e1"]))
            await house.house.promises.kept(house.broker.promised)
            house.broker.chains.step()

            by_id = await house.ask("GET", "/v1/events/e1/chain")
            by_place = await house.ask("GET", "/v1/events/e1/chain?topic=t&offset=0")
            unknown = await house.ask("GET", "/v1/events/none/chain")
            over = await house.ask("GET", "/v1/events/e1/chain?next=99")

            assert [one["id"] for one in by_id.json()["events"]] == ["e1"]
            assert by_place.json()["events"] == by_id.json()["events"]
            assert unknown.status == 404
            assert "question 99 is over" in over.json()["detail"]

    run(scene())


@pytest.mark.parametrize("depth", [100, 300, 500, 700, 900, 1100, 2000, 100_000])
def test_what_is_nested_too_deep_is_refused(tmp_path: Path, depth: int) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {"content-type": "application/json"}
            nested = b'{"not":' * depth + b"true" + b"}" * depth
            for path, method, body in [
                ("/v1/topics/t/schema", "PUT", b'{"schema": ' + nested + b"}"),
                ("/v1/topics/t/schema/check", "POST", b'{"schema": ' + nested + b"}"),
            ]:
                answer = await house.ask(method, path, body, headers=headers)

                assert answer.status in (200, 400, 422), answer.body

    run(scene())


BIG = 10**30


@pytest.mark.parametrize(
    ("path", "said", "status"),
    [
        ("/v1/topics", {"name": "u", "segment_bytes": BIG}, 422),
        ("/v1/topics", {"name": "u", "retention_bytes": BIG}, 422),
        ("/v1/topics", {"name": "u", "retention_age_s": 1e308}, 201),
        ("/v1/subscriptions/me/t/pull", {"tries": BIG}, 422),
        ("/v1/subscriptions/me/t/pull", {"ack_timeout_s": 1e308}, 422),
        ("/v1/subscriptions/me/t/pull", {"start": BIG}, 200),
        ("/v1/dead-letters/republish", {"numbers": [BIG]}, 404),
    ],
)
def test_a_number_that_no_journal_can_carry_stops_nothing(
    tmp_path: Path, path: str, said: object, status: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})

            answer = await house.ask("POST", path, said)

            assert answer.status == status
            after = await house.ask("POST", "/v1/topics", {"name": "after"})
            assert after.status == 201
            house.broker.log.checkpoint()

    run(scene())
