"""What a request says, as typed values: its JSON body, and its query."""

from __future__ import annotations

import re
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from penstock.desk.verbs import in_our_words
from penstock.errors import BadRequest, InvalidArgument, WrongMediaType
from penstock.http.answers import JSON
from penstock.http.call import Call

T = TypeVar("T")

# Of a query; no route takes that many.
MAX_FIELDS = 100
# Of a body that asks for something. Values of JSON take many times their text, and no
# question is as long; what carries payloads has limits of its own.
MAX_QUESTION_BYTES = 1 << 20
# A body that is longer is not read a second time to show what is wrong in it.
MAX_SHOWN_BYTES = 1 << 16
# Where msgspec found something; what is in a list has no number there.
_PLACE = re.compile(r"at `\$((?:\.\w+)+)`$")


async def json_body(
    call: Call, kind: type[T], what: str, most: int | None = MAX_QUESTION_BYTES
) -> T:
    """The body as that type; none at all is an empty object.

    ``most``: bytes of it; None for as many as the settings allow of any body.
    Raises WrongMediaType, BadRequest if it is no JSON, InvalidArgument, TooLarge.
    """
    media_type = media_type_of(call)
    if media_type not in ("", JSON):
        raise WrongMediaType(media_type, (JSON,))
    data = await call.body(most)
    if data and not media_type:
        raise WrongMediaType("", (JSON,))
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except msgspec.ValidationError as error:
        value = _in(data, str(error))
        raise InvalidArgument(what, in_our_words(str(error)), value) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is no JSON: {error}") from None


def media_type_of(call: Call) -> str:
    """The content type of the body without its parameters, in lower case."""
    given = call.request.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


def query_of(raw: bytes) -> dict[str, str]:
    """The fields of a query, each once; raises BadRequest."""
    try:
        fields = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except UnicodeDecodeError:
        raise BadRequest("the query is not UTF-8") from None
    except ValueError:
        raise BadRequest(f"the query has more than {MAX_FIELDS} fields") from None
    found = dict(fields)
    if len(found) < len(fields):
        names = [name for name, _ in fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRequest(f"the query has {twice[:80]!r} more than once")
    return found


def typed(given: dict[str, str], kind: type[T], what: str) -> T:
    """Text as the type it has to be; raises InvalidArgument."""
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        value = _at(given, str(error))
        raise InvalidArgument(what, in_our_words(str(error)), value) from None


def _in(data: bytes, text: str) -> str | None:
    """The same of JSON that is of another kind than it should be."""
    if len(data) > MAX_SHOWN_BYTES:
        return None
    try:
        return _at(msgspec.json.decode(data), text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _at(given: object, text: str) -> str | None:
    """The value that an error of msgspec is about; None if it does not say which."""
    found = _PLACE.search(text)
    if found is None:
        return None
    for name in found[1].split(".")[1:]:
        if not isinstance(given, dict) or name not in given:
            return None
        given = given[name]
    return given if isinstance(given, str) else msgspec.json.encode(given).decode()
