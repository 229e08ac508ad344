"""Errors as HTTP tells them: a status, and problem+json that names what was wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from penstock import errors
from penstock.errors import PenstockError
from penstock.model.remote_errors import public_fields

MEDIA_TYPE = "application/problem+json"
# Of a value, in a problem: enough to recognise it.
MAX_VALUE_CHARACTERS = 200

STATUS: Mapping[type[PenstockError], int] = {
    errors.BadRequest: 400,
    errors.RemoteProtocolError: 400,
    errors.LoginRefused: 401,
    errors.NotAllowed: 403,
    errors.Forged: 403,
    errors.ReservedName: 403,
    errors.NoRoute: 404,
    errors.UnknownTopic: 404,
    errors.UnknownSubscription: 404,
    errors.UnknownSession: 404,
    errors.NothingRetained: 404,
    errors.UnknownDeadLetter: 404,
    errors.UnknownFailure: 404,
    errors.UnknownEvent: 404,
    errors.UnknownComment: 404,
    errors.UnknownSchema: 404,
    errors.UnknownToken: 404,
    errors.UnknownVerb: 404,
    errors.OffsetOutOfRange: 404,
    errors.WrongMethod: 405,
    errors.NotAcceptable: 406,
    errors.TooSlow: 408,
    errors.TopicExists: 409,
    errors.WrongOrder: 409,
    errors.WrongQos: 409,
    errors.TakenInOrder: 409,
    errors.NotMoved: 409,
    errors.MissingStage: 409,
    errors.IncompatibleSchema: 409,
    errors.TooLarge: 413,
    errors.WrongMediaType: 415,
    errors.Misdirected: 421,
    errors.InvalidOption: 422,
    errors.InvalidName: 422,
    errors.InvalidArgument: 422,
    errors.InvalidBatch: 422,
    errors.InvalidPayload: 422,
    errors.InvalidSchema: 422,
    errors.InvalidToken: 422,
    errors.UnsupportedSchema: 422,
    errors.TooMuchWork: 422,
    errors.InvalidQuery: 422,
    errors.TooMuchAsked: 422,
    errors.LimitReached: 429,
    errors.TooManyAttempts: 429,
    errors.MissingExtra: 501,
    errors.Backlogged: 503,
    errors.BeingDeleted: 503,
    errors.Busy: 503,
    errors.LogClosed: 503,
    errors.Ending: 503,
    errors.InDoubt: 503,
    errors.WriteFailed: 503,
    errors.DiskFull: 507,
}

_ARGUMENT = re.compile(r"argument `([^`]+)`(?: is (.*?):)?")
# Seconds after which it is worth trying again.
RETRY_AFTER_S = 1


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, after RFC 9457.

    ``type`` and ``error`` name the error, ``detail`` says what it is about, ``hint``
    what a person can do. ``field``, ``value`` and ``limit`` are there where one thing
    was outside its bounds; ``fields`` has all values of the error that can be told.
    """

    type: str
    title: str
    status: int
    detail: str
    error: str
    hint: str = ""
    field: str = ""
    value: str = ""
    limit: str = ""
    retriable: bool = False
    fields: dict[str, object] = {}


def status_of(error: PenstockError) -> int:
    """The status of an error; 500 is a mistake of ours."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return 500


def problem_of(error: PenstockError, status: int | None = None) -> Problem:
    """The problem of an error, with its status unless another one is given."""
    status = status or status_of(error)
    name = type(error).__name__
    return Problem(
        type=f"urn:penstock:error:{name}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=error.for_client,
        error=name,
        hint=error.hint,
        field=_field(error),
        value=_value(error),
        limit=_limit(error),
        retriable=error.retriable,
        fields=public_fields(error),
    )


def refusal(error: PenstockError, status: int | None = None) -> Response:
    """The answer to a request that met this error."""
    return answer(problem_of(error, status), _headers(error))


def failure() -> Response:
    """The answer to a request that met a mistake of ours."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return answer(
        Problem(
            type="about:blank",
            title=status.phrase,
            status=status.value,
            detail="the request failed by a mistake of the server, which has logged it",
            error="InternalError",
        )
    )


def answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(problem),
        problem.status,
        {**(headers or {}), "cache-control": "no-store"},
        MEDIA_TYPE,
    )


def _headers(error: PenstockError) -> dict[str, str]:
    match error:
        case errors.LoginRefused():
            # Not Basic: browsers would ask for a password in a window of their own.
            return {"www-authenticate": 'Bearer realm="penstock"'}
        case errors.WrongMethod():
            return {"allow": ", ".join(error.allowed)}
        case errors.TooManyAttempts():
            return {"retry-after": str(int(error.wait_s) + 1)}
        case errors.QuotaReached() if error.wait_s:
            return {"retry-after": str(int(error.wait_s) + 1)}
        case errors.WrongMediaType():
            return {"accept": ", ".join(error.wanted)}
        case _ if error.retriable:
            return {"retry-after": str(RETRY_AFTER_S)}
        case _:
            return {}


def _field(error: PenstockError) -> str:
    match error:
        case errors.InvalidOption():
            return error.name
        case errors.InvalidBatch():
            return error.field
        case errors.InvalidName():
            return error.kind
        case errors.InvalidPayload() | errors.InvalidSchema():
            return error.path
        case errors.TooLarge():
            return error.what
        case errors.InvalidArgument():
            found = _ARGUMENT.search(error.reason)
            return "" if found is None else found[1]
        case _:
            return ""


def _value(error: PenstockError) -> str:
    said = _said(error, "value", "size", "name", "offset")
    if said or not isinstance(error, errors.InvalidArgument):
        return said
    found = _ARGUMENT.search(error.reason)
    return "" if found is None else (found[2] or "")[:MAX_VALUE_CHARACTERS]


def _limit(error: PenstockError) -> str:
    match error:
        case (
            errors.InvalidArgument()
            | errors.InvalidName()
            | errors.InvalidPayload()
            | errors.InvalidSchema()
        ):
            return error.reason
        case errors.OffsetOutOfRange():
            return f"{error.start}..{error.end}"
        case _:
            return _said(error, "limit")


def _said(error: PenstockError, *names: str) -> str:
    for name in names:
        found = getattr(error, name, None)
        if found is not None:
            return str(found)[:MAX_VALUE_CHARACTERS]
    return ""
