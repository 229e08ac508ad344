"""Questions in SQL over the topics that the client may read.

Which topics there are for a question is decided here, before anything looks at it: one
that may not be read is answered as one that does not exist. What answers is a process
that the server starts; it ends with the client, the login and the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta, Raw
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from penstock.desk.views import MAX_ROWS
from penstock.errors import Ending, InvalidQuery, NoRoute, UnknownSchema
from penstock.http.access import Access, Who
from penstock.http.answers import json_answer
from penstock.http.call import Call, Special
from penstock.http.notifier import Notifier
from penstock.http.opened import Guest
from penstock.http.reading import query_of, typed
from penstock.http.watching import watched

# Names that are looked at between two turns of the loop.
STEP = 1_000
WAIT_S = 15.0
# Of all topics that a question names, which may be very many in few words.
MAX_SCHEMA_BYTES = 4 << 20


class Questions(Protocol):
    """What answers; see server/questions.py."""

    def check(self) -> None:
        """Raises MissingExtra, or LimitReached if there are never any."""

    async def answer(
        self,
        query: str,
        topics: Sequence[str],
        schemas: Mapping[str, str],
        asker: str = "",
    ) -> bytes:
        """An ``SqlAnswer`` as JSON, over these topics alone; ends if it is cancelled.

        ``asker``: the token or user that leaves places for others; none has to where
        all are let in. Raises InvalidQuery, TooMuchAsked, LimitReached, MissingExtra.
        """


class SqlQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One SELECT, in the SQL of DuckDB: every topic is a table."""

    query: Annotated[str, Meta(min_length=1)]


class SqlColumn(msgspec.Struct, kw_only=True):
    """A column of an answer, with its type in the words of DuckDB."""

    name: str
    type: str


class SqlAnswer(msgspec.Struct, kw_only=True):
    """Rows, each a list of values by column; ``seconds``: how long it took.

    ``cut`` says which limit left out the rest, if one did: that of ``rows``, or of
    ``bytes``. ``notes`` are for people: payloads that do not fit their schema.
    """

    columns: list[SqlColumn]
    rows: Raw
    cut: Literal["rows", "bytes"] | None
    notes: list[str]
    seconds: float = 0.0


class SqlLimits(msgspec.Struct, kw_only=True):
    """What a question may take, and how long its answer may be."""

    seconds: float
    memory_bytes: int
    rows: int
    answer_bytes: int


class TopicsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Topics behind the name ``after``."""

    after: str = ""


class SqlTopics(msgspec.Struct, kw_only=True):
    """Names of topics that can be asked about, and the limits of a question."""

    topics: list[str]
    more: bool
    limits: SqlLimits


async def sql(call: Call) -> Response:
    """Answer a question; raises as ``Questions.answer`` does, and NotAllowed."""
    said = typed(query_of(call.request.scope["query_string"]), SqlQuery, "sql")
    questions = _questions(call)
    began_s = asyncio.get_running_loop().time()
    with call.house.opened.one(call.still, call.account) as guest:
        names = await _readable(call)
        if not names:  # no work for a client that may read nothing
            call.need(Access.READ)
        schemas = await _schemas(call, said.query, names)
        asked = asyncio.ensure_future(
            questions.answer(said.query, names, schemas, _asker(call.who))
        )
        found = msgspec.json.decode(await _watched(call, guest, asked), type=SqlAnswer)
    found.seconds = round(asyncio.get_running_loop().time() - began_s, 3)
    return json_answer(found)


async def _watched(call: Call, guest: Guest, asked: asyncio.Future[bytes]) -> bytes:
    """What comes of it, unless the client may not have it any more."""
    notifier = Notifier()
    asked.add_done_callback(lambda _: notifier.notify())
    try:
        async with watched(call.request.receive, guest, notifier) as watch:
            while not asked.done() and not watch.over:
                await notifier.wait(WAIT_S)
        if watch.gone:
            raise ClientDisconnect
        if guest.over:
            raise guest.revoked or Ending()
        return asked.result()
    finally:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)


async def topics(call: Call) -> Response:
    """What can be asked about; raises MissingExtra, LimitReached."""
    said = typed(query_of(call.request.scope["query_string"]), TopicsQuery, "topics")
    _questions(call).check()
    options = call.house.options
    names = [
        name
        for name in await _readable(call)
        if name > said.after and not name.startswith("$")
    ]
    limits = SqlLimits(
        seconds=options.sql_s,
        memory_bytes=options.sql_memory_bytes,
        rows=options.sql_rows,
        answer_bytes=options.sql_answer_bytes,
    )
    page, more = names[:MAX_ROWS], len(names) > MAX_ROWS
    return json_answer(SqlTopics(topics=page, more=more, limits=limits))


def _questions(call: Call) -> Questions:
    if call.house.questions is None:
        raise NoRoute(call.request.scope["path"])
    return call.house.questions


def _asker(who: Who) -> str:
    """A token or a user, which may have the same name; none where all are let in."""
    if who.scope == "open":
        return ""
    return f"{'token' if who.grants is None else 'user'} {who.name}"


async def _readable(call: Call) -> list[str]:
    """The topics whose events they may read, by name."""
    names = call.house.broker.log.topics()
    found: list[str] = []
    for start in range(0, len(names), STEP):
        part = names[start : start + STEP]
        found += [name for name in part if call.who.may(Access.FOLLOW, name)]
        await asyncio.sleep(0)
    return found


async def _schemas(call: Call, query: str, names: Sequence[str]) -> dict[str, str]:
    """Those of topics that a question names, in any case; raises InvalidQuery."""
    registry, lowered = call.house.broker.registry, query.lower()
    found: dict[str, str] = {}
    size = 0
    for number, name in enumerate(names):
        if number % STEP == 0:
            await asyncio.sleep(0)
        if name.lower() in lowered:
            try:
                text = registry.version(name).schema
            except UnknownSchema:
                continue
            size += len(text)
            if size > MAX_SCHEMA_BYTES:
                limit = f"more than {MAX_SCHEMA_BYTES} bytes"
                raise InvalidQuery(f"schemas of the topics it names have {limit}")
            found[name] = text.decode()
    return found


def _said(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def _parameter(name: str, about: str, *, required: bool) -> dict[str, object]:
    schema = {"type": "string", **({"minLength": 1} if required else {})}
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": about,
        "schema": schema,
    }


SQL = (
    Special(
        method="GET",
        path="/v1/sql",
        access=Access.ANY,
        handle=sql,
        describe={
            "summary": "The answer to a question in SQL, over topics one may read.",
            "description": (
                "Every topic whose events the asker may read is a table; others do "
                "not exist. The limits are those of `http.sql_…` in the settings."
            ),
            "parameters": [_parameter("query", _said(SqlQuery), required=True)],
            "responses": {
                "200": {"description": _said(SqlAnswer), "answer": SqlAnswer}
            },
        },
    ),
    Special(
        method="GET",
        path="/v1/sql/topics",
        access=Access.ANY,
        handle=topics,
        describe={
            "summary": "The topics that one may ask about in SQL, and the limits.",
            "parameters": [_parameter("after", _said(TopicsQuery), required=False)],
            "responses": {
                "200": {"description": _said(SqlTopics), "answer": SqlTopics}
            },
        },
    ),
)
