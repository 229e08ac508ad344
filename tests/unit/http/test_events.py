from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.http import event_json, events, scanning
from penstock.http.options import HttpOptions
from penstock.log import Columns
from penstock.model.failure import refused
from penstock.model.policy import Policy
from tests.unit.http.scene import Answer, HttpHouse, http_house
from tests.unit.server.scene import run

EVENTS = "/v1/topics/t/events"


async def filled(house: HttpHouse, count: int = 50) -> None:
    """Event n is {"n": n}, of second n, every fifth with key five and type fifth."""
    columns = Columns(
        [b'{"n":%d}' % n for n in range(count)],
        [n * 1000 for n in range(count)],
        ids=[f"e{n % 10}" for n in range(count)],
        keys=[b"five" if n % 5 == 0 else None for n in range(count)],
        headers=[{"type": "fifth"} if n % 5 == 0 else {} for n in range(count)],
    )
    house.broker.publish("t", columns)
    await house.house.promises.kept(house.broker.group)


def numbers(answer: Answer) -> list[int]:
    assert answer.status == 200, answer.body
    return [event["payload"]["n"] for event in answer.json()["events"]]


PAGES = [
    ("", list(range(50)), None, None),
    ("limit=3", [0, 1, 2], 3, None),
    ("offset=10&limit=2", [10, 11], 12, 8),
    ("offset=48", [48, 49], None, 0),
    ("offset=49&limit=10", [49], None, 39),
    ("offset=99&limit=5", [], None, 45),
    ("timestamp=7000&limit=1", [7], 8, 6),
    ("timestamp=7001&limit=1", [8], 9, 7),
    ("tail=3", [47, 48, 49], None, 44),
    ("tail=3&until=10", [7, 8, 9], 10, 4),
    ("offset=5&until=8", [5, 6, 7], None, 0),
    ("key=five&limit=3", [0, 5, 10], 15, None),
    ("key=five&offset=11&limit=2", [15, 20], 25, 5),
    ("type=fifth&tail=2", [40, 45], None, 30),
    ("search=n%3E46", [47, 48, 49], None, None),
    ("search=n%3C3&tail=10", [0, 1, 2], None, None),
    ("id=e3", [3, 13, 23, 33, 43], None, None),
    ("id=e3&offset=20&limit=2", [23, 33], 43, None),
    ("id=nobody", [], None, None),
]


@pytest.mark.parametrize(("query", "found", "next_", "previous"), PAGES)
def test_a_page_is_what_was_asked_for(
    tmp_path: Path,
    query: str,
    found: list[int],
    next_: int | None,
    previous: int | None,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house)

            answer = await house.ask("GET", f"{EVENTS}?{query}")

            page = answer.json()
            assert numbers(answer) == found
            assert (page["next"], page["previous"]) == (next_, previous)
            assert page["more"] == (next_ is not None)
            assert (page["start_offset"], page["end_offset"]) == (0, 50)

    run(scene())


def test_going_back_and_forth_meets_every_match(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house)
            page = (await house.ask("GET", f"{EVENTS}?key=five&tail=3")).json()
            seen = [one["offset"] for one in page["events"]]
            while page["previous"] is not None:
                path = f"{EVENTS}?key=five&limit=3&offset={page['previous']}"
                page = (await house.ask("GET", path)).json()
                seen = [one["offset"] for one in page["events"]] + seen

            assert sorted(set(seen)) == list(range(0, 50, 5))

    run(scene())


def test_a_search_looks_at_so_many_events_and_says_where_to_go_on(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(search_events=20)) as house:
            await filled(house)

            page = (await house.ask("GET", f"{EVENTS}?search=n=45")).json()

            assert (page["events"], page["next"], page["scanned"]) == ([], 20, 20)

    run(scene())


REFUSED = [
    ("limit=1001", 422, "1000"),
    ("limit=0", 422, "limit"),
    ("offset=-1", 422, "offset"),
    ("offset=1&tail=2", 422, "offset"),
    ("colour=red", 422, "colour"),
    ("search=" + "x" * 1001, 422, "1000"),
    ("offset=1&offset=2", 400, "offset"),
]


@pytest.mark.parametrize(("query", "status", "text"), REFUSED)
def test_a_question_that_makes_no_sense_is_refused(
    tmp_path: Path, query: str, status: int, text: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house)

            answer = await house.ask("GET", f"{EVENTS}?{query}")

            assert answer.status == status
            assert text in answer.json()["detail"]

    run(scene())


def test_an_unknown_topic_is_not_found(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("GET", EVENTS)

            assert (answer.status, answer.json()["error"]) == (404, "UnknownTopic")

    run(scene())


def test_a_token_that_only_publishes_reads_no_events(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house)
            publisher = house.new_token("p", scope="topics", publish=("t",))
            follower = house.new_token("f", scope="topics", subscribe=("t",))

            refused_ = await house.ask("GET", EVENTS, token=publisher)
            answer = await house.ask("GET", EVENTS, token=follower)

            assert (refused_.status, answer.status) == (403, 200)

    run(scene())


def test_long_payloads_of_a_page_are_cut_unless_it_is_to_be_whole(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", EVENTS, {"payload": "x" * 100_000})

            (cut,) = (await house.ask("GET", EVENTS)).json()["events"]
            (whole,) = (await house.ask("GET", f"{EVENTS}?whole=true")).json()["events"]

            assert (cut["cut"], cut["bytes"], cut["encoding"]) == (
                True,
                100_002,
                "text",
            )
            assert len(cut["payload"]) == 65_536
            assert (whole["encoding"], len(whole["payload"])) == ("json", 100_000)

    run(scene())


def test_one_event_is_told_with_its_deliveries(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house, 3)
            _subscribed(house, "anna")

            answer = await house.ask("GET", f"{EVENTS}/1")

            told = answer.json()
            assert told["event"]["payload"] == {"n": 1}
            (delivery,) = told["deliveries"]
            assert (delivery["subscriber"], delivery["state"]) == ("anna", "waiting")
            assert delivery["errors"][0]["message"] == "no"
            assert (delivery["tries"], delivery["letter"]) == (1, None)

    run(scene())


def _subscribed(house: HttpHouse, name: str) -> None:
    """Somebody who got event 0 and 1, and refused 1."""
    policy = Policy(window=10, backoff_s=60)
    one = house.broker.subscribe(name, "t", policy, "earliest")
    consumer: Any = house.broker.attach(one, _Nobody())
    house.broker.take(consumer, 1.0, 2)
    house.broker.refuse(consumer, 1, refused("no"), 1.0)


class _Nobody:
    def released(self, consumer: Any, owed: Any) -> None: ...
    def ended(self, consumer: Any, reason: str) -> None: ...
    def moved(self, consumer: Any) -> None: ...


@pytest.mark.parametrize(
    ("offset", "status"), [("50", 404), ("-1", 422), ("x", 422), ("9" * 19, 422)]
)
def test_an_event_that_is_not_there_is_not_found(
    tmp_path: Path, offset: str, status: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house)

            assert (await house.ask("GET", f"{EVENTS}/{offset}")).status == status

    run(scene())


def test_events_of_an_id_are_found_in_all_topics(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await filled(house)
            body = {"payload": {"n": 99}, "id": "e3"}
            await house.ask("POST", "/v1/topics/u/events", body)

            answer = await house.ask("GET", "/v1/events/e3")
            nobody = await house.ask("GET", "/v1/events/nobody")

            assert sorted(numbers(answer)) == [3, 13, 23, 33, 43, 99]
            assert not answer.json()["cut"]
            assert (nobody.status, nobody.json()["error"]) == (404, "UnknownEvent")

    run(scene())


def test_an_id_of_many_events_is_cut(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            columns = Columns([b'{"n":1}'] * 150, 5, ids=["same"] * 150)
            house.broker.publish("t", columns)
            await house.house.promises.kept(house.broker.group)

            answer = await house.ask("GET", "/v1/events/same")

            assert (len(numbers(answer)), answer.json()["cut"]) == (100, True)

    run(scene())


def test_a_long_search_lets_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "READ_BYTES", 1)

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            for _ in range(200):
                await filled(house, 20)
            searching = asyncio.create_task(house.ask("GET", f"{EVENTS}?search=n=-1"))

            turns = 0
            while not searching.done():
                await asyncio.sleep(0)
                turns += 1

            assert numbers(await searching) == []
            assert turns > 20

    run(scene())


def test_of_many_large_events_with_an_id_an_answer_holds_what_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    view_json = event_json.view_json

    def counted(topic: str, *rest: Any) -> Any:
        made.append(topic)
        return view_json(topic, *rest)

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            for topic, size in (("t", 1 << 20), ("other", 10)):
                rows = [{"text": "x" * size, "id": "same"}] * 12
                answer = await house.ask("POST", f"/v1/topics/{topic}/events", rows)
                assert answer.status == 201, answer.body
            monkeypatch.setattr(events, "view_json", counted)

            path = "/v1/topics/t/events?id=same&whole=true"
            page = (await house.ask("GET", path)).json()

            offsets = [event["offset"] for event in page["events"]]
            assert offsets == list(range(8))
            assert (page["next"], page["more"]) == (8, True)
            assert made == ["t"] * 8, "what is not wanted is not made"
            rest = (await house.ask("GET", f"{path}&offset=8")).json()
            assert [event["offset"] for event in rest["events"]] == [8, 9, 10, 11]
            assert rest["next"] is None
            last = (await house.ask("GET", f"{path}&tail=2")).json()
            assert [event["offset"] for event in last["events"]] == [10, 11]

    run(scene())
