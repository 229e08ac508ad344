"""From a request to a verb of the desk and back: arguments in, an answer out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import msgspec
from starlette.responses import Response

from penstock.broker.desk_letter_views import LetterView
from penstock.broker.desk_verbs import BY, Promise, Verb
from penstock.broker.desk_verbs import call as call_verb
from penstock.errors import InvalidArgument
from penstock.http.access import Access
from penstock.http.answers import json_answer
from penstock.http.bodies import is_said
from penstock.http.call import Call
from penstock.http.letter_json import LetterJson, letter_json
from penstock.http.reading import MAX_QUESTION_BYTES, json_body, query_of, typed
from penstock.http.routes import Route

# The argument whose fields stand in a query by themselves.
FILTER = "filter"

Kinds = dict[str, tuple[Any, ...]]
"""A name, its type, and its default if it has one."""


class Asking:
    """One route: its verb, and the types of what comes in.

    ``outside`` are the arguments from path and query, ``inside`` those in the body.
    """

    def __init__(self, route: Route, verb: Verb) -> None:
        self.route = route
        self.verb = verb
        kinds = _kinds(verb)
        left_out = {BY, *route.without}
        self.path = {
            name: route.names.get(name, name) for name in parameters(route.path)
        }
        in_path = set(self.path.values())
        self.filter = _filter_of(verb) if not route.has_body else None
        rest = {
            name: kind
            for name, kind in kinds.items()
            if name not in left_out and name not in in_path
        }
        query = {} if route.has_body else dict(rest)
        query.pop(FILTER, None)
        filtered = {} if self.filter is None else _fields(self.filter)
        self.query = {**query, **filtered}
        outside = {name: (kinds[name][0],) for name in in_path}
        self.outside = _struct("Outside", {**outside, **self.query})
        self.inside: type[Any] | None = None
        if route.has_body:
            self.inside = route.body or _struct(
                body_name(verb.name), _with_required(rest, route.required)
            )
        self.answer = _answer_of(verb)

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
        given = {self.path[name]: value for name, value in call.path.items()}
        query = query_of(call.request.scope["query_string"])
        for name in query.keys() & given.keys():
            reason = f"the path says it: argument `{name}`"
            raise InvalidArgument(self.verb.name, reason)
        said = typed({**query, **given}, self.outside, self.verb.name)
        outside = _said(said)
        if self.filter is not None:
            names = self.filter.__struct_fields__
            chosen = {name: outside.pop(name) for name in names if name in outside}
            outside[FILTER] = self.filter(**chosen)
        if self.inside is None:
            return outside
        most = MAX_QUESTION_BYTES if self.route.body is None else self.route.body.most
        body = await json_body(call, self.inside, self.verb.name, most)
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


def _kinds(verb: Verb) -> Kinds:
    return _fields(verb.arguments)


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


def _filter_of(verb: Verb) -> type[msgspec.Struct] | None:
    kind = _kinds(verb).get(FILTER)
    if kind is None:
        return None
    assert issubclass(kind[0], msgspec.Struct), "a filter is one"
    found: type[msgspec.Struct] = kind[0]
    return found


def _answer_of(verb: Verb) -> Any:
    kind = get_type_hints(verb.method, include_extras=True)["return"]
    return LetterJson if kind is LetterView else kind


def _said(struct: msgspec.Struct) -> dict[str, object]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
