from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from penstock.errors import NotAllowed
from penstock.http.access import Access, Who
from penstock.http.call import Call, SocketCall
from penstock.http.guard import Guard
from tests.unit.http.scene import HttpHouse, http_house
from tests.unit.server.scene import run


def call_of(house: HttpHouse, who: Who, coming: list[dict[str, Any]]) -> Call:
    async def receive() -> dict[str, Any]:
        return coming.pop(0)

    scope = {"type": "http", "method": "POST", "headers": []}
    return Call(
        house=house.house,
        guard=Guard(house.house),
        request=Request(scope, receive),
        path={},
        who=who,
    )


def test_parts_come_as_they_are_sent_until_the_sender_goes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            coming: list[dict[str, Any]] = [
                {"type": "http.request", "body": b"a", "more_body": True},
                {"type": "http.request", "body": b"", "more_body": True},
                {"type": "http.request", "body": b"b", "more_body": True},
                {"type": "http.disconnect"},
            ]
            call = call_of(house, Who(name="x", scope="admin"), coming)

            assert [part async for part in call.parts()] == [b"a", b"b"]

    run(scene())


def test_a_route_may_need_more_than_it_said(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            reader = Who(name="r", scope="read")
            call = call_of(house, reader, [])
            call.need(Access.FOLLOW, "t")
            with pytest.raises(NotAllowed, match=r"token r .*subscribe"):
                call.need(Access.CONSUME, "t")

            socket = SocketCall(
                house=house.house,
                guard=call.guard,
                socket=None,  # type: ignore[arg-type]
                path={},
                who=reader,
            )
            socket.need(Access.FOLLOW, "t")
            with pytest.raises(NotAllowed):
                socket.need(Access.CONSUME, "t")

    run(scene())
