from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import UnknownTopic
from penstock.http.line_intake import LineIntake, refusal, said
from penstock.log import Columns
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.server.scene import run


async def answered(intake: LineIntake, house: HttpHouse, *parts: bytes) -> list[Any]:
    """What is said about lines that come in these parts."""
    data = b""
    for number, part in enumerate(parts, 1):
        answers = await intake.take_in(part, last=number == len(parts))
        if answers is not None:
            if answers.group:
                await house.house.promises.kept(answers.group)
            data += answers.said()
    return [json.loads(line) for line in data.splitlines()]


def test_lines_are_counted_over_all_parts(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            intake = LineIntake(house.house, "t", "shop")

            answers = await answered(
                intake, house, b'{"payload":1}\n\n{"pay', b'load":2}\nx\n{"payload":3}'
            )

            assert [one.get("offset") for one in answers] == [0, 1, None, 2]
            assert answers[2]["line"] == 4
            assert intake.lines == 5

    run(scene())


GOOD, BAD, EMPTY = b'{"payload":1}', b"{", b""


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    lines=st.lists(st.sampled_from([GOOD, GOOD, GOOD, BAD, EMPTY]), max_size=30),
    cuts=st.lists(st.integers(0, 400), max_size=5),
    ended=st.booleans(),
)
def test_answers_do_not_depend_on_how_the_body_is_cut(
    tmp_path_factory: Any, lines: list[bytes], cuts: list[int], ended: bool
) -> None:
    body = b"\n".join(lines) + (b"\n" if ended else b"")
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    parts = [body[a:b] for a, b in zip(places, places[1:], strict=False)]

    async def scene() -> None:
        async with http_house(tmp_path_factory.mktemp("house")) as house:
            intake = LineIntake(house.house, "t", None)

            answers = await answered(intake, house, *parts)

            wanted = [
                (number, line) for number, line in enumerate(lines, 1) if line != EMPTY
            ]
            assert len(answers) == len(wanted)
            offset = 0
            for answer, (number, line) in zip(answers, wanted, strict=True):
                if line == GOOD:
                    assert answer["offset"] == offset
                    offset += 1
                else:
                    assert (answer["error"], answer["line"]) == ("BadRequest", number)

    run(scene())


def test_a_refusal_says_which_line_and_why() -> None:
    answer = json.loads(refusal(UnknownTopic("t"), 7))

    assert (answer["error"], answer["line"]) == ("UnknownTopic", 7)
    assert "t" in answer["detail"]


def test_ids_that_need_care_are_still_json() -> None:
    ids = ['quote"', "back\\slash", "Straße", None]

    answers = [json.loads(line) for line in said([1, 2, 3, 4], ids)]

    assert [one["id"] for one in answers] == ids


def test_events_that_do_not_keep_to_their_lines_are_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            intake = LineIntake(house.house, "t", None)

            body = b'{"payload":1}{"payload":2}\n{"payload":3}\n'
            answers = await answered(intake, house, body)

            assert [one.get("offset") for one in answers] == [None, 0]
            assert answers[0]["line"] == 1

    run(scene())


def test_misfits_of_a_schema_are_found_in_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": "t"})
            schema = {"schema": {"type": "integer"}, "type": "N"}
            await house.ask("PUT", "/v1/topics/t/schema", schema)
            intake = LineIntake(house.house, "t", None)
            steps = 0
            publish = house.broker.publish

            def counted(topic: str, events: Columns, **more: Any) -> Any:
                nonlocal steps
                steps += len(events)
                return publish(topic, events, **more)

            monkeypatch.setattr(house.broker, "publish", counted)
            body = b'{"payload":"x"}\n' * 512
            answers = await answered(intake, house, body)

            assert [one["line"] for one in answers] == list(range(1, 513))
            assert steps <= 512 * 10  # not the square of them

    run(scene())


@pytest.mark.parametrize(
    ("body", "refused", "stored"),
    [
        (b'{"payload":1}{"payload":2}\n\n', [1], 0),
        (b'{"payload":1} {"payload":2}\n \r\n{"payload":3}\n', [1], 1),
        (b'\n{"payload":1}\n{"payload":2}{"payload":3}\n', [3], 1),
        (b'{"payload":\n{"a":1}}\n{"payload":2}{"payload":3}\n', [1, 2, 3], 0),
        (b'{"payload":1\n}{"payload":2}\n', [1, 2], 0),
        (b'{"payload":1}\r\n\r\n{"payload":2}\r\n', [], 2),
    ],
)
def test_a_line_holds_one_event_and_no_more(
    tmp_path: Path, body: bytes, refused: list[int], stored: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            intake = LineIntake(house.house, "t", None)

            answers = await answered(intake, house, body)

            assert [one["line"] for one in answers if "error" in one] == refused
            assert len([one for one in answers if "offset" in one]) == stored

    run(scene())
