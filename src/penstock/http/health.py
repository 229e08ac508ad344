"""Whether the server lives, and can be given work; no client is asked who it is."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from penstock.http.access import Access
from penstock.http.answers import json_answer
from penstock.http.call import Call, Special


class Health(msgspec.Struct, frozen=True):
    """``status`` is ``ok``, ``ending`` or ``failing``; then ``reason`` says why."""

    status: str
    reason: str = ""


async def healthz(call: Call) -> Response:
    """Answering is all there is to it."""
    return json_answer(Health("ok"))


async def readyz(call: Call) -> Response:
    """Not ready: the server ends, or cannot write."""
    if call.house.opened.ending:
        return json_answer(Health("ending", "the server is told to stop"), 503)
    trouble = call.house.promises.trouble()
    if trouble is not None:
        return json_answer(Health("failing", trouble.reason), 503)
    return json_answer(Health("ok"))


HEALTH = (
    Special(
        method="GET",
        path="/healthz",
        access=Access.NONE,
        handle=healthz,
        describe={
            "summary": "Whether the server lives.",
            "responses": {"200": {"description": "It does.", "answer": Health}},
        },
    ),
    Special(
        method="GET",
        path="/readyz",
        access=Access.NONE,
        handle=readyz,
        describe={
            "summary": "Whether the server can be given work.",
            "responses": {
                "200": {"description": "It can.", "answer": Health},
                "503": {"description": "It ends, or cannot write.", "answer": Health},
            },
        },
    ),
)
