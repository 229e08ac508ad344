"""Whether everything that one schema allows is allowed by another.

``problems(reader, writer)``: every document of the writer has to fit the reader. What
is reported as compatible is so; what cannot be judged is reported as a problem, so
two schemas may be called incompatible that are not.

One assumption is made, or adding a field would never be compatible: an object that
names its properties and says nothing of others is written with those it names only.
(An array with ``prefixItems`` that says nothing of further items, likewise.)

Recursive schemas are compared as usual with recursive types: two schemas are taken to
agree while they are being compared. If they turn out not to, all that was concluded
from it is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from penstock.schema.check import compiled
from penstock.schema.document import Mode, Schema, step
from penstock.schema.effort import Effort
from penstock.schema.ranges import number_problems, string_problems
from penstock.schema.same import Twins
from penstock.schema.shapes import MAX_DEPTH, OPAQUE, CannotJudge, Shape, Shapes
from penstock.schema.values import key_of, shown, size_of

MAX_PROBLEMS = 100

# Steps that it takes about as long as to compile a plain schema.
_COMPILING = 20

_ARTICLES = {"array": "an array", "object": "an object", "null": "null"}
_SCALARS = ("null", "boolean", "number", "string")
_SCALAR_KEYWORDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format"),
)
_WHOLE = ("properties", "patternProperties", "additionalProperties")


class Incompatibility(NamedTuple):
    """Where a document of the writer would not fit the reader, and why."""

    path: str
    text: str


def judged(
    mode: Mode, new: Schema, old: Schema, effort: Effort | None = None
) -> list[Incompatibility]:
    """What keeps a new schema from following an old one in this mode.

    Raises TooMuchWork.
    """
    found = []
    if mode in ("backward", "full"):
        found += _said("old events: ", problems(new, old, effort))
    if mode in ("forward", "full"):
        found += _said("new events: ", problems(old, new, effort))
    return found


def problems(
    reader: Schema, writer: Schema, effort: Effort | None = None
) -> list[Incompatibility]:
    """Where documents of the writer would not fit the reader; empty if all do.

    Raises TooMuchWork.
    """
    found = _Comparison(reader, writer, effort or Effort()).compare(reader, writer, 0)
    unique = dict.fromkeys(Incompatibility("$" + path, text) for path, text in found)
    return list(unique)[:MAX_PROBLEMS]


def _said(whose: str, found: Iterable[Incompatibility]) -> list[Incompatibility]:
    return [Incompatibility(path, whose + text) for path, text in found]


class _Comparison:
    def __init__(self, reader: Schema, writer: Schema, effort: Effort) -> None:
        self._effort = effort
        self._reader = Shapes(reader, effort)
        self._writer = Shapes(writer, effort)
        self._twins = Twins(reader, writer, effort)
        self._agreed: set[tuple[int, int]] = set()
        self._trail: list[tuple[int, int]] = []
        self._failed: dict[tuple[int, int], list[Incompatibility]] = {}
        # Kept, because pairs are known by the ids of their schemas.
        self._made: list[Schema] = []

    def compare(
        self, reader: Schema, writer: Schema, depth: int
    ) -> list[Incompatibility]:
        if reader is True or writer is False:
            return []
        pair = (id(reader), id(writer))
        if pair in self._agreed:
            return []
        if pair in self._failed:
            return self._failed[pair]
        self._effort.spend()
        if depth > MAX_DEPTH:
            return [Incompatibility("", "cannot be judged: the schemas are too large")]
        mark = len(self._trail)
        self._agreed.add(pair)
        self._trail.append(pair)
        found = self._compared(reader, writer, depth)
        if found and not self._twins.same(reader, writer):
            self._agreed.difference_update(self._trail[mark:])
            del self._trail[mark:]
            self._failed[pair] = found[:MAX_PROBLEMS]
            return self._failed[pair]
        return []

    def _compared(
        self, reader: Schema, writer: Schema, depth: int
    ) -> list[Incompatibility]:
        try:
            taken = self._reader.of(reader, distinct=True)
            written = self._writer.of(writer)
        except CannotJudge as error:
            return [Incompatibility("", f"cannot be judged: {error}")]
        found: list[Incompatibility] = []
        strange: list[str] = []
        for shape in written:
            self._effort.spend(len(taken))
            mine = [one for one in taken if one.type == shape.type]
            if mine:
                found += self._fits_one(mine, shape, depth)
            else:
                strange.append(_kind(shape))
        if strange:
            allowed = " or ".join(dict.fromkeys(map(_kind, taken))) or "left out"
            text = f"may be {', '.join(dict.fromkeys(strange))}, has to be {allowed}"
            found.append(Incompatibility("", text))
        return found

    def _fits_one(
        self, taken: list[Shape], shape: Shape, depth: int
    ) -> list[Incompatibility]:
        """Whether what has this shape has one of those; else what the nearest lacks."""
        values = shape.values(self._effort)
        if values is not None:
            takers = [_Taker(one, self._effort) for one in taken]
            return [
                Incompatibility("", f"may be {shown(value)}, which is not taken")
                for value in values
                if not any(one.takes(value) for one in takers)
            ]
        nearest: list[Incompatibility] | None = None
        for one in taken:
            found = [
                problem
                for part in one.parts
                for problem in self._implied(one.type, part, shape, depth)
            ]
            if not found:
                return []
            if nearest is None or _distance(found) < _distance(nearest):
                nearest = found
        return nearest or []

    def _implied(
        self, type_: str, part: dict[str, Any], shape: Shape, depth: int
    ) -> list[Incompatibility]:
        """Whether what has this shape satisfies a part of the reader."""
        self._effort.spend(1 + len(part) + len(shape.parts))
        for keyword in OPAQUE[type_]:
            if keyword in part and not self._has_twin(keyword, part, shape):
                return [
                    Incompatibility("", f"cannot be judged: {keyword} is not the same")
                ]
        if "enum" in part or "const" in part:
            listed = [part["const"]] if "const" in part else part["enum"]
            shortened = ", ".join(map(shown, listed[:5]))
            return [
                Incompatibility("", f"may be {_kind(shape)}, has to be {shortened}")
            ]
        if type_ == "number":
            return [Incompatibility("", text) for text in number_problems(part, shape)]
        if type_ == "string":
            return [Incompatibility("", text) for text in string_problems(part, shape)]
        if len(shape.parts) > 1:
            if any(self._twins.alike(part, one, type_) for one in shape.parts):
                return []
            return [
                Incompatibility("", "cannot be judged: several schemas at once (allOf)")
            ]
        other = shape.parts[0] if shape.parts else {}
        if type_ == "array":
            return self._array(part, other, depth)
        return self._object(part, other, depth)

    def _has_twin(self, keyword: str, part: dict[str, Any], shape: Shape) -> bool:
        keywords = _WHOLE if keyword == "patternProperties" else (keyword,)
        return any(
            keyword in one
            and all(self._twins.agree(key, part, one) for key in keywords)
            for one in shape.parts
        )

    # Arrays

    def _array(
        self, part: dict[str, Any], other: dict[str, Any], depth: int
    ) -> list[Incompatibility]:
        first, firsts = other.get("prefixItems", []), part.get("prefixItems", [])
        declared = first and other.get("minItems", 0) <= len(first)
        rest = other.get("items", not declared)
        most = other.get("maxItems")
        if rest is False:
            most = len(first) if most is None else min(most, len(first))
        found = _length_problems(
            part, other.get("minItems", 0), most, ("minItems", "maxItems"), "items"
        )
        unique = other.get("uniqueItems", False) or (most is not None and most < 2)
        if part.get("uniqueItems", False) and not unique:
            found.append(Incompatibility("", "items may repeat, have to be unique"))
        known = max(len(first), len(firsts))
        self._effort.spend(known)
        for index in range(known if most is None else min(known, most)):
            wanted = firsts[index] if index < len(firsts) else part.get("items", True)
            given = first[index] if index < len(first) else rest
            found += self._below(step(index), wanted, given, depth)
        if most is None or most > known:
            found += self._below("[*]", part.get("items", True), rest, depth)
        return found

    # Objects

    def _object(
        self, part: dict[str, Any], other: dict[str, Any], depth: int
    ) -> list[Incompatibility]:
        if "patternProperties" in other and "patternProperties" not in part:
            return [
                Incompatibility(
                    "", "cannot be judged: patternProperties is not the same"
                )
            ]
        mine, theirs = part.get("properties", {}), other.get("properties", {})
        required = other.get("required", [])
        anything = other.get("additionalProperties", True)
        named = other.get("minProperties", 0) <= len(theirs)
        rest = other.get("additionalProperties", not ("properties" in other and named))
        given_always = set(required)
        found = [
            Incompatibility(step(name), "may be missing, is required")
            for name in part.get("required", [])
            if name not in given_always
        ]
        self._effort.spend(len(theirs) + len(mine) + len(required))
        for name in dict.fromkeys([*theirs, *mine, *required]):
            wanted = mine.get(name, part.get("additionalProperties", True))
            given = theirs.get(name, anything if name in given_always else rest)
            found += self._below(step(name), wanted, given, depth)
        found += self._below(".*", part.get("additionalProperties", True), rest, depth)
        least = max(other.get("minProperties", 0), len(given_always))
        most = other.get("maxProperties")
        if rest is False:
            most = len(theirs) if most is None else min(most, len(theirs))
        words = ("minProperties", "maxProperties")
        found += _length_problems(part, least, most, words, "properties")
        return found + self._names(part, other, depth)

    def _names(
        self, part: dict[str, Any], other: dict[str, Any], depth: int
    ) -> list[Incompatibility]:
        wanted = part.get("propertyNames", True)
        given = other.get("propertyNames")
        if wanted is True:
            return []
        if given is None:
            return [
                Incompatibility("", "cannot be judged: propertyNames is not the same")
            ]
        narrowed = {"type": "string", "allOf": [given]}
        self._made.append(narrowed)
        return self._below(" (name)", wanted, narrowed, depth)

    def _below(
        self, where: str, wanted: Schema, given: Schema, depth: int
    ) -> list[Incompatibility]:
        if wanted is False and given is not False:
            return [Incompatibility(where, "may be there, is not allowed")]
        found = self.compare(wanted, given, depth + 1)
        self._effort.spend(len(found))
        return [Incompatibility(where + path, text) for path, text in found]


def _length_problems(
    part: dict[str, Any],
    least: int,
    most: int | None,
    words: tuple[str, str],
    noun: str,
) -> list[Incompatibility]:
    low, high = part.get(words[0], 0), part.get(words[1])
    found = []
    if low > least:
        found.append(
            Incompatibility("", f"may have {least} {noun}, {words[0]} is {low}")
        )
    if high is not None and (most is None or most > high):
        many = "any number of" if most is None else str(most)
        found.append(
            Incompatibility("", f"may have {many} {noun}, {words[1]} is {high}")
        )
    return found


class _Taker:
    """Which values that are listed have a shape."""

    def __init__(self, shape: Shape, effort: Effort) -> None:
        self._effort = effort
        listed = shape.values(effort)
        self._listed = None if listed is None else set(map(key_of, listed))
        parts = [one for one in shape.parts if one.keys() - {"const", "enum", "type"}]
        self._unclear = bool(shape.opaque or (parts and shape.type not in _SCALARS))
        effort.spend(_COMPILING * len(parts))
        scalars = [] if self._unclear else list(map(_of_scalars, parts))
        self._validators = [compiled(one) for one in scalars]

    def takes(self, value: Any) -> bool:
        self._effort.spend(size_of(value) + len(self._validators))
        if self._listed is not None and key_of(value) not in self._listed:
            return False
        return not self._unclear and all(
            one.is_valid(value) for one in self._validators
        )


def _of_scalars(part: dict[str, Any]) -> dict[str, Any]:
    return {key: part[key] for key in _SCALAR_KEYWORDS if key in part}


def _distance(found: list[Incompatibility]) -> tuple[bool, int]:
    """How far an alternative is from what was meant: a tag that differs is farthest."""
    return any("which is not taken" in one.text for one in found), len(found)


def _kind(shape: Shape) -> str:
    if shape.is_integer:
        return "an integer"
    return _ARTICLES.get(shape.type, f"a {shape.type}")
