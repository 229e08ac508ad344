"""Tokens over HTTP, as ``penstock token`` has them: for those who may do everything."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from penstock.http.access import Access
from penstock.http.answers import json_answer
from penstock.http.call import Call, Special
from penstock.http.key_file import (
    DAY_MS,
    MAX_DAYS,
    MAX_PATTERNS,
    KeyScope,
    TokenRequest,
    TokenRow,
    row_of,
)
from penstock.http.reading import json_body

PATH = "/v1/tokens"

Days = Annotated[float, Meta(gt=0, le=MAX_DAYS)]
Patterns = Annotated[tuple[str, ...], Meta(max_length=MAX_PATTERNS)]


class TokenList(msgspec.Struct, frozen=True):
    tokens: list[TokenRow]


class NewToken(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A token to be made.

    Scope ``topics`` names topics to ``publish`` and ``subscribe`` to; ``*`` at the end
    of one stands for anything.
    """

    name: str
    scope: KeyScope = "admin"
    publish: Patterns = ()
    subscribe: Patterns = ()
    days: Days | None = None


class MadeToken(TokenRow, frozen=True, kw_only=True):
    """``token`` is shown here and never again."""

    token: str


async def list_tokens(call: Call) -> Response:
    return json_answer(TokenList([row_of(key) for key in call.house.keys.all()]))


async def add_token(call: Call) -> Response:
    said = await json_body(call, NewToken, PATH)
    now_ms = int(call.house.clock.now_s() * 1000)
    expires_ms = None if said.days is None else now_ms + int(said.days * DAY_MS)
    wanted = TokenRequest(
        name=said.name,
        scope=said.scope,
        publish=said.publish,
        subscribe=said.subscribe,
        expires_ms=expires_ms,
    )
    token = call.house.keys.add(wanted, now_ms)
    made = MadeToken(
        name=wanted.name,
        scope=wanted.scope,
        publish=wanted.publish,
        subscribe=wanted.subscribe,
        made_ms=now_ms,
        expires_ms=expires_ms,
        token=token,
    )
    return json_answer(made, 201)


async def remove_token(call: Call) -> Response:
    return json_answer(row_of(call.house.keys.remove(call.path["name"])))


TOKENS = (
    Special(
        method="GET",
        path=PATH,
        access=Access.ADMIN,
        handle=list_tokens,
        describe={
            "summary": "All tokens, without their secrets.",
            "responses": {"200": {"description": "These.", "answer": TokenList}},
        },
    ),
    Special(
        method="POST",
        path=PATH,
        access=Access.ADMIN,
        handle=add_token,
        describe={
            "summary": "Make a token; the answer is the only one that shows it.",
            "body": NewToken,
            "responses": {"201": {"description": "Made.", "answer": MadeToken}},
        },
    ),
    Special(
        method="DELETE",
        path=f"{PATH}/{{name}}",
        access=Access.ADMIN,
        handle=remove_token,
        describe={
            "summary": "Remove a token; sessions that it began end.",
            "responses": {"200": {"description": "Removed.", "answer": TokenRow}},
        },
    ),
)
