"""The OpenAPI document, made from the table of routes and the types of the desk.

Nothing is described twice: arguments and answers are the verbs' own, with their limits,
and what the docstrings say is what the document says.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, get_args

import msgspec

from penstock import __version__
from penstock.http.access import Access
from penstock.http.answers import JSON
from penstock.http.asking import Asking, parameters
from penstock.http.call import Json, Special, SpecialSocket
from penstock.http.problem import MEDIA_TYPE, Problem

_REF = "#/components/schemas/{name}"
_ABOUT = (
    "Everything that a Penstock broker does, over HTTP. Names in paths are one segment "
    "each, percent-encoded: the topic `a/b` is `a%2Fb`. Errors are problem+json."
)
_TAGS = {
    "topics": "Topics",
    "schemas": "Schemas",
    "subscriptions": "Subscriptions",
    "mqtt": "MQTT",
    "dead-letters": "Dead letters",
    "errors": "Errors",
    "events": "Events",
    "sql": "SQL",
    "session": "Logging in",
    "tokens": "Logging in",
}


def document(
    asking: Iterable[Asking], special: Iterable[Special | SpecialSocket]
) -> bytes:
    """The whole document as JSON."""
    types = _Types()
    paths: dict[str, Json] = {}
    for one in asking:
        operation = _asked(one, types)
        paths.setdefault(one.route.path, {})[one.route.method.lower()] = operation
    for other in special:
        method = "get" if isinstance(other, SpecialSocket) else other.method.lower()
        paths.setdefault(other.path, {})[method] = _described(other, types)
    paths["/openapi.json"] = {"get": _itself()}
    types.of(Problem)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Penstock",
                "version": __version__,
                "description": _ABOUT,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "security": [{"token": []}, {"user": []}, {"session": []}],
            "tags": [{"name": name} for name in dict.fromkeys(_TAGS.values())]
            + [{"name": "The broker"}],
            "paths": types.filled(paths),
            "components": {
                "schemas": types.components(),
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "user": {"type": "http", "scheme": "basic"},
                    "session": {
                        "type": "apiKey",
                        "in": "cookie",
                        "name": "penstock_session",
                    },
                },
            },
        }
    )


class _Types:
    """Types that the document speaks of: collected first, described together."""

    def __init__(self) -> None:
        self._kinds: list[Any] = []
        self._schemas: tuple[Json, ...] = ()

    def of(self, kind: Any) -> Json:
        """A place where the schema of that type will stand."""
        several = get_args(kind) if isinstance(kind, UnionType) else ()
        if several:  # of several structs, which the library refuses
            return {"anyOf": [self.of(one) for one in several]}
        self._kinds.append(kind)
        return {"$type": len(self._kinds) - 1}

    def components(self) -> Json:
        self._describe()
        return self._components

    def filled(self, value: Any) -> Any:
        """The same with all schemas in their places."""
        self._describe()
        return self._filled(value)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._filled(one) for one in value]
        if not isinstance(value, Mapping):
            return value
        if "$type" in value:
            schema = self._schemas[value["$type"]]
            more = {key: one for key, one in value.items() if key != "$type"}
            return {**schema, **more}
        return {key: self._filled(one) for key, one in value.items()}

    def _describe(self) -> None:
        if not self._schemas:
            schemas, self._components = msgspec.json.schema_components(
                self._kinds, schema_hook=_any_json, ref_template=_REF
            )
            self._schemas = tuple(schemas)
            for kind in _structs(msgspec.Struct):
                if kind.__name__ in self._components:
                    _leave_out(self._components[kind.__name__], kind)


def _structs(root: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for kind in root.__subclasses__():
        yield kind
        yield from _structs(kind)


def _leave_out(schema: Json, kind: type[msgspec.Struct]) -> None:
    """Fields that may be left out are not required, also if they have no default."""
    said = inspect.get_annotations(kind)
    schema["required"] = [
        name
        for name in schema.get("required", ())
        if "UnsetType" not in str(said.get(name))
    ]


def _any_json(kind: type) -> Json:
    """The schema of a type that the library does not know."""
    if kind is object:
        return {"description": "Any JSON value."}
    raise NotImplementedError


def _asked(one: Asking, types: _Types) -> Json:
    route, verb = one.route, one.verb
    text = inspect.getdoc(verb.method) or ""
    name = f"{route.method.lower()}-{verb.name.replace('.', '-')}"
    operation: Json = {
        "operationId": name,
        "tags": [_tag(route.path)],
        "summary": text.partition("\n")[0],
        "description": f"{text}\n\nNeeds {route.access.value}.",
        "parameters": [
            {
                "name": given,
                "in": "path",
                "required": True,
                "schema": _in_path(one.types.outside, argument, types),
            }
            for given, argument in one.types.path.items()
        ]
        + [_in_query(name, kind, types) for name, kind in one.types.query.items()],
        "responses": {
            str(route.status): {
                "description": "Done.",
                "content": {JSON: {"schema": types.of(one.types.answer)}},
            },
            **_problems(),
        },
    }
    if one.types.inside is not None:
        content = {JSON: {"schema": types.of(one.types.inside)}}
        needed = any(
            field.required for field in msgspec.structs.fields(one.types.inside)
        )
        operation["requestBody"] = {"required": needed, "content": content}
    return operation


def _described(other: Special | SpecialSocket, types: _Types) -> Json:
    described = {key: value for key, value in other.describe.items() if key != "body"}
    names = parameters(other.path)
    operation: Json = {
        "operationId": _id(other),
        "tags": [_tag(other.path)],
        **described,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _SEGMENT}
            for name in names
        ]
        + [one for one in described.get("parameters", []) if one["name"] not in names],
        "responses": {
            status: _response(response, types)
            for status, response in described.get("responses", {}).items()
        }
        | _problems(),
    }
    if other.access is Access.NONE:
        operation["security"] = []
    else:
        text = described.get("description", described.get("summary", ""))
        operation["description"] = f"{text}\n\nNeeds {other.access.value}."
    body = described.get("requestBody")
    if "body" in other.describe:
        body = {"required": True, "content": {JSON: {"body": other.describe["body"]}}}
    if body is not None:
        operation["requestBody"] = {
            **body,
            "content": _contents(body["content"], types),
        }
    return operation


def _contents(contents: Mapping[str, Any], types: _Types) -> Json:
    """Media types with schemas, some of which are given as types."""
    return {
        media_type: {"schema": types.of(one["body"])} if "body" in one else one
        for media_type, one in contents.items()
    }


_SEGMENT = {"type": "string", "minLength": 1}


def _id(other: Special | SpecialSocket) -> str:
    method = "socket" if isinstance(other, SpecialSocket) else other.method.lower()
    words = [part.strip("{}") for part in other.path.split("/") if part != "v1"]
    return "-".join([method, *filter(None, words)]).replace(".", "-")


def _response(response: Mapping[str, Any], types: _Types) -> Json:
    if "answer" not in response:
        return dict(response)
    answer = response["answer"]
    kinds = answer if isinstance(answer, tuple) else (answer,)  # one of several
    schemas = [types.of(kind) for kind in kinds]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    rest = {key: value for key, value in response.items() if key != "answer"}
    content = {**rest.get("content", {}), JSON: {"schema": schema}}
    return {**rest, "content": content}


def _problems() -> Json:
    schema = {"$ref": _REF.format(name=Problem.__name__)}
    content = {MEDIA_TYPE: {"schema": schema}}
    return {
        "4XX": {"description": "Refused; the problem says why.", "content": content},
        "5XX": {"description": "Failed; perhaps not later.", "content": content},
    }


def _in_path(outside: type[msgspec.Struct], argument: str, types: _Types) -> Json:
    for one in msgspec.structs.fields(outside):
        if one.name == argument and one.type is not str:
            kind = _without_none(_plain(one.type))
            if kind is not str:
                return types.of(_without_none(one.type))
    return _SEGMENT


def _in_query(name: str, kind: tuple[Any, ...], types: _Types) -> Json:
    schema = types.of(_without_none(kind[0]))
    if len(kind) == 1:
        return {"name": name, "in": "query", "required": True, "schema": schema}
    if kind[1] is not None:
        schema["default"] = kind[1]
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _without_none(kind: Any) -> Any:
    """The type as it is in a query, where nothing is said by leaving it out."""
    arguments = getattr(kind, "__args__", ())
    if type(None) not in arguments:
        return kind
    left = [one for one in arguments if one is not type(None)]
    found = left[0]
    for one in left[1:]:
        found = found | one
    return found


def _plain(kind: Any) -> Any:
    """The type without its limits."""
    return getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind


def _tag(path: str) -> str:
    parts = path.split("/")
    return _TAGS.get(parts[2], "The broker") if len(parts) > 2 else "The broker"


def _itself() -> Json:
    return {
        "operationId": "get-openapi",
        "tags": ["The broker"],
        "summary": "This document.",
        "security": [],
        "responses": {
            "200": {
                "description": "OpenAPI 3.1.",
                "content": {JSON: {"schema": {"type": "object"}}},
            }
        },
    }
