"""From a request to a verb of the desk and back: arguments in, an answer out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import msgspec
from starlette.responses import Response

from penstock.desk.verbs import BY, Promise, Verb, arguments_of
from penstock.desk.verbs import call as call_verb
from penstock.desk.views.letters import LetterView
from penstock.errors import InvalidArgument
from penstock.http.access import Access
from penstock.http.answers import json_answer
from penstock.http.bodies import is_said
from penstock.http.call import Call
from penstock.http.event_json import EventJson, view_json
from penstock.http.reading import MAX_QUESTION_BYTES, json_body, query_of, typed
from penstock.http.routes import Route


class LetterJson(LetterView, frozen=True, kw_only=True):
    """All of the letter; ``event`` as in pages and streams, and always whole."""

    event: EventJson | None  # type: ignore[assignment]


def letter_json(letter: LetterView) -> LetterJson:
    fields = msgspec.structs.asdict(letter)
    found = letter.event
    fields["event"] = None if found is None else view_json(letter.topic or "", found)
    return LetterJson(**fields)


# The argument whose fields stand in a query by themselves.
FILTER = "filter"

Kinds = dict[str, tuple[Any, ...]]
"""A name, its type, and its default if it has one."""


class Asking:
    """One route: its verb, and the types of what comes in."""

    def __init__(self, route: Route, verb: Verb) -> None:
        self.route = route
        self.verb = verb
        self.types = _types_of(route, verb.function)

    async def __call__(self, call: Call) -> Response:
        """Carry the question out; raises what the desk raises."""
        route, verb, house = self.route, self.verb, call.house
        arguments = await self._arguments(call)
        if BY in verb.arguments.__struct_fields__:
            arguments[BY] = call.who.name
        if route.arrange is not None:
            arguments = route.arrange(arguments)
        with house.broker.accounts.acting(call.account):
            result = call_verb(verb, arguments)
        if verb.promise is Promise.STORED:
            await house.promises.kept(house.broker.promised)
        elif verb.promise is Promise.KEPT:
            await house.promises.kept_at_last(house.broker.promised)
        if isinstance(result, LetterView):
            result = letter_json(result)
        return json_answer(result, route.status)

    async def _arguments(self, call: Call) -> dict[str, object]:
        given = {self.types.path[name]: value for name, value in call.path.items()}
        query = query_of(call.request.scope["query_string"])
        for name in query.keys() & given.keys():
            reason = f"the path says it: argument `{name}`"
            raise InvalidArgument(self.verb.name, reason)
        said = typed({**query, **given}, self.types.outside, self.verb.name)
        outside = _said(said)
        if (filtered := self.types.filter) is not None:
            names = filtered.__struct_fields__
            chosen = {name: outside.pop(name) for name in names if name in outside}
            outside[FILTER] = filtered(**chosen)
        if self.types.inside is None:
            return outside
        most = MAX_QUESTION_BYTES if self.route.body is None else self.route.body.most
        body = await json_body(call, self.types.inside, self.verb.name, most)
        if any(is_said(getattr(body, name)) for name in self.route.changing):
            call.need(Access.ADMIN, call.path.get(self.route.topic))
        inside = body.arguments() if self.route.body is not None else _said(body)
        return {**inside, **outside}


def parameters(path: str) -> list[str]:
    """The names in braces, in order."""
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def body_name(verb: str) -> str:
    """``topics.create`` is TopicsCreate."""
    words = verb.replace(".", "-").replace("_", "-").split("-")
    return "".join(word.capitalize() for word in words)


class Types(NamedTuple):
    """What a request is made of.

    ``outside`` are the arguments from path and query, ``inside`` those in the body;
    ``path`` has the argument of each parameter.
    """

    path: dict[str, str]
    query: Kinds
    filter: type[msgspec.Struct] | None
    outside: type[msgspec.Struct]
    inside: type[Any] | None
    answer: Any


# Once for all servers of a process: it takes a while.
@cache
def _types_of(route: Route, function: Callable[..., object]) -> Types:
    kinds = _fields(arguments_of(function))
    left_out = {BY, *route.without}
    path = {name: route.names.get(name, name) for name in parameters(route.path)}
    in_path = set(path.values())
    rest = {
        name: kind
        for name, kind in kinds.items()
        if name not in left_out and name not in in_path
    }
    outside = {name: (kinds[name][0],) for name in in_path}
    if route.has_body:
        inside = route.body or _struct(
            body_name(route.verb), _with_required(rest, route.required)
        )
        made = _struct("Outside", outside)
        return Types(path, {}, None, made, inside, _answer_of(function))
    filtered = _filter_in(rest)
    query = rest if filtered is None else {**rest, **_fields(filtered)}
    made = _struct("Outside", {**outside, **query})
    return Types(path, query, filtered, made, None, _answer_of(function))


def _fields(struct: type[msgspec.Struct]) -> Kinds:
    hints = get_type_hints(struct, include_extras=True)
    return {
        one.name: (hints[one.name],)
        if one.default is msgspec.NODEFAULT
        else (hints[one.name], one.default)
        for one in msgspec.structs.fields(struct)
    }


def _with_required(kinds: Kinds, required: frozenset[str]) -> Kinds:
    return {
        name: (_not_none(kind[0]),) if name in required else kind
        for name, kind in kinds.items()
    }


def _not_none(kind: Any) -> Any:
    """The type without None."""
    left = [one for one in getattr(kind, "__args__", ()) if one is not type(None)]
    found = left[0]
    for one in left[1:]:
        found = found | one
    return found


def _struct(name: str, kinds: Mapping[str, tuple[Any, ...]]) -> type[msgspec.Struct]:
    fields: list[Any] = [(field, *kind) for field, kind in kinds.items()]
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _filter_in(kinds: Kinds) -> type[msgspec.Struct] | None:
    """Take the filter out, if there is one."""
    kind = kinds.pop(FILTER, None)
    if kind is None:
        return None
    assert issubclass(kind[0], msgspec.Struct), "a filter is one"
    found: type[msgspec.Struct] = kind[0]
    return found


def _answer_of(function: Callable[..., object]) -> Any:
    kind = get_type_hints(function, include_extras=True)["return"]
    return LetterJson if kind is LetterView else kind


def _said(struct: msgspec.Struct) -> dict[str, object]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
