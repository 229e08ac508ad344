"""Logging in and out with a browser, and asking who one is."""

from __future__ import annotations

import msgspec
from starlette.requests import cookie_parser
from starlette.responses import Response

from penstock.errors import InvalidArgument
from penstock.http.access import Access, Scope
from penstock.http.answers import json_answer
from penstock.http.call import Call, Special
from penstock.http.reading import json_body
from penstock.http.sessions import COOKIE, WebSession

PATH = "/v1/session"
# Of a login, which any client may try.
MAX_BYTES = 1 << 14


class LoginBody(msgspec.Struct, forbid_unknown_fields=True):
    """A token, or a user of the users file with the password."""

    token: str | None = None
    user: str | None = None
    password: str | None = None


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """Who one is. ``csrf`` goes into the header X-CSRF-Token of what changes things.

    Without a session (a token in the request, or an open server) it is empty, and
    ``expires_ms`` is None.
    """

    scope: Scope
    name: str
    csrf: str = ""
    expires_ms: int | None = None


async def log_in(call: Call) -> Response:
    guard, scope = call.guard, call.request.scope
    guard.check_origin(call.request.headers)
    said = await json_body(call, LoginBody, PATH, MAX_BYTES)
    if said.token is not None and said.user is None and said.password is None:
        session = guard.begin(said.token, scope)
    elif said.token is None and said.user is not None and said.password is not None:
        who = await guard.check_password(said.user, said.password, scope)
        session = call.house.sessions.begin(who, None)
    else:
        raise InvalidArgument(PATH, "say either `token`, or `user` and `password`")
    answer = json_answer(_view(session))
    answer.set_cookie(
        COOKIE,
        session.id,
        path="/",
        httponly=True,
        samesite="strict",
        secure=guard.secure or call.request.url.scheme == "https",
    )
    return answer


async def who_am_i(call: Call) -> Response:
    if call.session is not None:
        return json_answer(_view(call.session))
    return json_answer(SessionView(scope=call.who.scope, name=call.who.name))


async def log_out(call: Call) -> Response:
    cookies = cookie_parser(call.request.headers.get("cookie", ""))
    call.house.sessions.end(cookies.get(COOKIE, ""))
    answer = Response(status_code=204, headers={"cache-control": "no-store"})
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _view(session: WebSession) -> SessionView:
    return SessionView(
        scope=session.who.scope,
        name=session.who.name,
        csrf=session.csrf,
        expires_ms=session.expires_ms,
    )


SESSION = (
    Special(
        method="POST",
        path=PATH,
        access=Access.NONE,
        handle=log_in,
        describe={
            "summary": "Log in with a browser: a cookie, and a word against forgery.",
            "body": LoginBody,
            "responses": {"200": {"description": "Logged in.", "answer": SessionView}},
        },
    ),
    Special(
        method="GET",
        path=PATH,
        access=Access.ANY,
        handle=who_am_i,
        describe={
            "summary": "Who one is.",
            "responses": {"200": {"description": "This.", "answer": SessionView}},
        },
    ),
    Special(
        method="DELETE",
        path=PATH,
        access=Access.ANY,
        handle=log_out,
        describe={
            "summary": "Log out; the cookie is worth nothing any more.",
            "responses": {"204": {"description": "Done."}},
        },
    ),
)
