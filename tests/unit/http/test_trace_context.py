from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.http.trace_context import context_of, put_into
from penstock.log import Columns
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.server.scene import run

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-00"
EVENTS = "/v1/topics/t/events"


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ([], {}),
        ([("traceparent", TRACE)], {"traceparent": TRACE}),
        (
            [("traceparent", TRACE), ("tracestate", "a=1"), ("tracestate", "b=2")],
            {"traceparent": TRACE, "tracestate": "a=1,b=2"},
        ),
        ([("tracestate", "a=1")], {}),
        ([("traceparent", TRACE), ("traceparent", OTHER)], {}),
        ([("traceparent", TRACE.upper())], {}),
        ([("traceparent", TRACE + "-more")], {}),
        ([("traceparent", "01" + TRACE[2:] + "-more")], {"traceparent": ...}),
        ([("traceparent", "ff" + TRACE[2:])], {}),
        ([("traceparent", f"00-{'0' * 32}-{'1' * 16}-01")], {}),
        ([("traceparent", f"00-{'1' * 32}-{'0' * 16}-01")], {}),
        ([("traceparent", TRACE), ("tracestate", "ü")], {"traceparent": TRACE}),
        ([("traceparent", TRACE), ("tracestate", "x" * 600)], {"traceparent": TRACE}),
    ],
)
def test_only_what_is_valid_is_passed_on(
    sent: list[tuple[str, str]], found: dict[str, Any]
) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in sent]

    context = context_of(raw)

    assert context == {
        name: dict(sent)[name] if value is ... else value
        for name, value in found.items()
    }


def test_an_event_keeps_what_it_says_itself() -> None:
    columns = Columns(
        [b"1", b"2", b"3"],
        0,
        headers=[{"traceparent": OTHER}, {"tracestate": "old=1", "a": "b"}, {}],
    )

    put_into(columns, {"traceparent": TRACE})

    assert columns.headers == [
        {"traceparent": OTHER},
        {"a": "b", "traceparent": TRACE},
        {"traceparent": TRACE},
    ]


async def headers_of(house: HttpHouse) -> list[dict[str, str]]:
    page = (await house.ask("GET", EVENTS)).json()
    return [event["headers"] for event in page["events"]]


LINES = "application/x-ndjson"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"payload":1}'),
        ("application/json", b'[{"payload":1},{"payload":2}]'),
        ("text/plain", b"anything"),
        (LINES, b'{"payload":1}\n{"payload":2}\n'),
        (LINES, b'{"payload":1,"id":"a"}\nnonsense\n{"payload":2}\n'),
    ],
)
def test_events_go_on_with_the_trace_of_their_request(
    tmp_path: Path, kind: str, body: bytes
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            headers = {"content-type": kind, "traceparent": TRACE}

            answer = await house.ask("POST", EVENTS, body, headers=headers)

            assert answer.status in (200, 201)
            found = await headers_of(house)
            assert found
            assert all(one == {"traceparent": TRACE} for one in found)

    run(scene())
