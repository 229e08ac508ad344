"""A schema as its alternatives: one type each, and the constraints that apply to it.

``anyOf`` and ``oneOf`` add alternatives, ``allOf``, references and keywords beside
each other narrow them down. An integer is a number that is a multiple of 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.schema.document import Schema, resolved
from penstock.schema.effort import Effort
from penstock.schema.values import among, key_of, size_of, type_of

# What a schema of any sensible type stays far below.
MAX_ALTERNATIVES = 500
MAX_DEPTH = 40

# Values that are listed take a step together, so many of them.
_LISTED = 8
# Steps of telling two alternatives apart.
_PAIR = 3

INTEGER: dict[str, Any] = {"multipleOf": 1}
TYPES = ("null", "boolean", "number", "string", "array", "object")

# Keywords that cannot be compared or made up; if equal, they do not matter.
_ALL = ("not", "if", "then", "else", "$dynamicRef")
OPAQUE: dict[str, tuple[str, ...]] = {
    "null": _ALL,
    "boolean": _ALL,
    "number": _ALL,
    "string": _ALL,
    "array": (*_ALL, "contains", "minContains", "maxContains", "unevaluatedItems"),
    "object": (
        *_ALL,
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
        "unevaluatedProperties",
    ),
}
_CONSTRAINTS: dict[str, tuple[str, ...]] = {
    "null": (),
    "boolean": (),
    "number": (
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maximum",
        "minimum",
        "multipleOf",
    ),
    "string": ("format", "maxLength", "minLength", "pattern"),
    "array": ("items", "maxItems", "minItems", "prefixItems", "uniqueItems"),
    "object": (
        "additionalProperties",
        "maxProperties",
        "minProperties",
        "properties",
        "propertyNames",
        "required",
    ),
}
_RELEVANT = {
    type_: {*OPAQUE[type_], *_CONSTRAINTS[type_], "const", "enum"} for type_ in TYPES
}
_RELEVANT["string"].add("contentEncoding")  # for what is made up; it is not checked


class Shape(NamedTuple):
    """Values of one type that satisfy all parts, which are schemas without unions."""

    type: str
    parts: tuple[dict[str, Any], ...]

    def given(self, keyword: str) -> list[Any]:
        """What the parts say with a keyword, as far as they do."""
        return [part[keyword] for part in self.parts if keyword in part]

    @property
    def opaque(self) -> list[str]:
        """The keywords that cannot be understood here."""
        opaque = OPAQUE[self.type]
        return [key for part in self.parts for key in part if key in opaque]

    @property
    def is_integer(self) -> bool:
        return INTEGER in self.parts

    def values(self, effort: Effort | None = None) -> list[Any] | None:
        """All values there are, if they are listed; None if there is no list."""
        listed = [_listed(part) for part in self.parts]
        if self.type == "null":
            listed.append([None])
        elif self.type == "boolean":
            listed.append([False, True])
        lists = [one for one in listed if one is not None]
        if not lists:
            return None
        if effort is not None:
            deep = len(lists) > 1  # then they are compared
            found = sum(map(size_of if deep else len, lists))
            effort.spend(1 + found // _LISTED)
        others = [set(map(key_of, one)) for one in lists[1:]]
        return [
            value
            for value in lists[0]
            if type_of(value) == self.type
            and all(key_of(value) in other for other in others)
        ]


class CannotJudge(Exception):
    """A schema that is too odd to be taken apart; the text says why."""


class Shapes:
    """Takes the schemas of one document apart, each once."""

    def __init__(self, root: Schema, effort: Effort | None = None) -> None:
        self.root = root
        self._effort = effort or Effort()
        # The node is kept as well: the id of one that is gone may come again.
        self._known: dict[tuple[int, bool], tuple[Schema, list[Shape]]] = {}
        self._tagged: dict[int, tuple[Shape, dict[str, set[Any]]]] = {}

    def of(self, node: Schema, *, distinct: bool = False) -> list[Shape]:
        """The alternatives of a schema; raises CannotJudge, TooMuchWork.

        ``distinct``: the branches of ``oneOf`` have to exclude each other.
        """
        return self._of(node, distinct, 0)

    def _of(self, node: Schema, distinct: bool, depth: int) -> list[Shape]:
        known = self._known.get((id(node), distinct))
        if known is None:
            found = self._taken_apart(node, distinct, depth)
            known = self._known[id(node), distinct] = (node, found)
        return known[1]

    def _taken_apart(self, node: Schema, distinct: bool, depth: int) -> list[Shape]:
        if isinstance(node, bool):
            return [Shape(type_, ()) for type_ in TYPES] if node else []
        if depth > MAX_DEPTH:
            raise CannotJudge("it refers to itself, or is nested too deep")
        if "$id" in node and node is not self.root:
            raise CannotJudge("it holds a document of its own ($id)")
        self._effort.spend(len(node))
        found = self._own(node)
        for reference in _references(node):
            target = resolved(self.root, reference)
            if target is None:
                raise CannotJudge(f"$ref {reference} leads out of the document")
            found = self._both(found, self._of(target, distinct, depth + 1))
        for part in node.get("allOf", ()):
            found = self._both(found, self._of(part, distinct, depth + 1))
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                branches = [
                    self._of(branch, distinct, depth + 1) for branch in node[keyword]
                ]
                if keyword == "oneOf" and distinct:
                    self._require_distinct(branches)
                shapes = [shape for one in branches for shape in one]
                found = self._both(found, shapes)
        return found

    def _require_distinct(self, branches: list[list[Shape]]) -> None:
        for index, branch in enumerate(branches):
            for other in branches[index + 1 :]:
                if not all(self._exclusive(a, b) for a in branch for b in other):
                    raise CannotJudge("branches of oneOf may fit at the same time")

    def _exclusive(self, one: Shape, other: Shape) -> bool:
        """Whether no value can have both shapes, as far as is easily seen."""
        self._effort.spend(_PAIR)
        if one.type != other.type:
            return True
        mine, theirs = one.values(self._effort), other.values(self._effort)
        if mine is not None and theirs is not None:
            return set(map(key_of, mine)).isdisjoint(map(key_of, theirs))
        return one.type == "object" and self._tagged_apart(one, other)

    def _tagged_apart(self, one: Shape, other: Shape) -> bool:
        mine, theirs = self._tags(one), self._tags(other)
        return any(
            values.isdisjoint(theirs[name])
            for name, values in mine.items()
            if name in theirs
        )

    def _tags(self, shape: Shape) -> dict[str, set[Any]]:
        """Required properties whose values are listed."""
        if id(shape) not in self._tagged:
            self._tagged[id(shape)] = (shape, self._found_tags(shape))
        return self._tagged[id(shape)][1]

    def _found_tags(self, shape: Shape) -> dict[str, set[Any]]:
        required = {name for names in shape.given("required") for name in names}
        self._effort.spend(len(required))
        found: dict[str, set[Any]] = {}
        for properties in shape.given("properties"):
            for name in required & properties.keys():
                self._effort.spend()
                shapes = self.of(properties[name])
                lists = [one.values(self._effort) for one in shapes]
                if None not in lists:
                    found[name] = {
                        key_of(value) for one in lists for value in one or ()
                    }
        return found

    def _own(self, node: dict[str, Any]) -> list[Shape]:
        """What its own keywords allow, without the schemas it is combined of."""
        named = node.get("type")
        names = [named] if isinstance(named, str) else named
        found = []
        for type_ in TYPES:
            is_integer = False
            if names is not None and type_ not in names:
                is_integer = type_ == "number" and "integer" in names
                if not is_integer:
                    continue
            parts = (node,) if node.keys() & _RELEVANT[type_] else ()
            shape = Shape(type_, (INTEGER, *parts) if is_integer else parts)
            if shape.values(self._effort) != []:
                found.append(shape)
        return found

    def _both(self, ones: list[Shape], others: list[Shape]) -> list[Shape]:
        """What is in one list and in the other."""
        self._effort.spend(len(ones) * len(others))
        if len(ones) * len(others) > MAX_ALTERNATIVES * len(TYPES):
            raise CannotJudge("it has too many alternatives")
        found = []
        for one in ones:
            for other in others:
                if one.type == other.type:
                    self._effort.spend(len(one.parts) + len(other.parts))
                    known = {id(part) for part in one.parts}
                    new = [part for part in other.parts if id(part) not in known]
                    shape = Shape(one.type, (*one.parts, *new))
                    if shape.values(self._effort) != []:
                        found.append(shape)
        if len(found) > MAX_ALTERNATIVES:
            raise CannotJudge("it has too many alternatives")
        return found


def _references(node: dict[str, Any]) -> list[str]:
    return [node["$ref"]] if "$ref" in node else []


def _listed(part: dict[str, Any]) -> list[Any] | None:
    listed: list[Any] | None = part.get("enum")
    if "const" in part:
        value = part["const"]
        return [value] if listed is None or among(value, listed) else []
    return listed
