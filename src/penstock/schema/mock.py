"""Made-up documents that fit a schema: the same ones for the same seed.

Every document is checked before it is handed out. Optional properties are sometimes
left out, recursion ends after a few levels, and what cannot be made up is refused by
the name of the keyword.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, inf
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedSchema
from penstock.schema.check import compiled
from penstock.schema.document import Schema, parsed, step
from penstock.schema.effort import Effort
from penstock.schema.formats import BASE64
from penstock.schema.pattern import MAX_CHARACTERS, NotSimple, Pattern
from penstock.schema.ranges import fraction, lower, upper
from penstock.schema.shapes import CannotJudge, Shape, Shapes
from penstock.schema.values import key_of
from penstock.schema.words import base64_text, formatted, text_for, word, words

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

# A document is tried so often before it is given up.
ATTEMPTS = 50
# A string for a pattern, which mostly is as long as it should be at once.
_PATTERN_ATTEMPTS = 5
# Values in one document, and sizes that a schema may ask for.
MAX_VALUES = 20_000
MAX_ITEMS = 1000
# Levels that are filled freely; below them the shortest way out is taken.
_FREE_DEPTH = 4
_MAX_HEIGHT = 24
_RANGE = 1000
# Of plain text, in one step.
_CHARACTERS = 100

# These hold for whatever is not made up at all.
_HARMLESS = ("unevaluatedProperties", "unevaluatedItems")


def mock(
    schema: Schema | bytes | str,
    seed: int | str,
    count: int,
    effort: Effort | None = None,
) -> Iterator[Any]:
    """``count`` documents that fit.

    The schema is a document or its JSON text, as ``schema_of`` gives it. ``effort`` is
    for all of them; without it each has its own. Raises UnsupportedSchema,
    InvalidSchema, TooMuchWork.
    """
    schema = parsed(schema)
    validator = compiled(schema)
    for number in range(count):
        # Each has a seed of its own: asking for more does not change the first ones.
        random = Random(f"{seed}:{number}")
        yield _document(schema, validator, random, effort or Effort())


def _document(
    schema: Schema, validator: Draft202012Validator, random: Random, effort: Effort
) -> Any:
    end = _DeadEnd("$", "it was tried often enough")
    for _ in range(ATTEMPTS):
        try:
            made = _Maker(schema, random, effort).document()
        except _DeadEnd as found:
            end = found
            continue
        if validator.is_valid(made):
            return made
    reason = f"nothing was found that fits: {end.reason}"
    raise UnsupportedSchema(end.path, reason)


class _DeadEnd(Exception):
    """What was chosen leads nowhere; other choices may."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


class _Maker:
    def __init__(self, root: Schema, random: Random, effort: Effort) -> None:
        self._root = root
        self._random = random
        self._effort = effort
        self._shapes = Shapes(root, effort)
        self._patterns: dict[str, Pattern] = {}
        self._heights: dict[tuple[int, int], float] = {}
        self._made: list[Schema] = []
        self._values = 0

    def document(self) -> Any:
        return self._value(self._root, "$", "", 0)

    def _value(self, node: Schema, path: str, name: str, depth: int) -> Any:
        self._effort.spend()
        self._values += 1
        if self._values > MAX_VALUES:
            raise UnsupportedSchema(path, "the document grows too large")
        if depth > _FREE_DEPTH + _MAX_HEIGHT:
            raise _DeadEnd(path, "it does not come to an end")
        shape = self._choice(node, path, depth)
        for keyword in shape.opaque:
            if keyword not in _HARMLESS:
                raise UnsupportedSchema(path, keyword)
        listed = shape.values(self._effort)
        if listed is not None:
            return self._random.choice(listed)
        if shape.type == "number":
            return self._number(shape, path)
        if shape.type == "string":
            return self._string(shape, path, name)
        if shape.type == "array":
            return self._array(shape, path, name, depth)
        return self._object(shape, path, depth)

    def _choice(self, node: Schema, path: str, depth: int) -> Shape:
        try:
            found = self._shapes.of(node)
        except CannotJudge as error:
            raise UnsupportedSchema(path, str(error)) from None
        heights = [self._shape_height(one, _MAX_HEIGHT) for one in found]
        ways = [one for one, height in zip(found, heights, strict=True) if height < inf]
        if not ways:
            raise _DeadEnd(path, "nothing fits")
        if node is True or node == {}:  # anything: most things are plain
            return self._random.choice([one for one in ways if one.type != "object"])
        if depth < _FREE_DEPTH:
            return self._random.choice(ways)
        return found[heights.index(min(heights))]

    # How many levels a value needs at least

    def _height(self, node: Schema, room: int) -> float:
        if room <= 0:
            return inf
        key = (id(node), room)
        if key not in self._heights:
            try:
                found = self._shapes.of(node)
            except CannotJudge:
                found = []
            self._heights[key] = min(
                (self._shape_height(one, room) for one in found), default=inf
            )
        return self._heights[key]

    def _shape_height(self, shape: Shape, room: int) -> float:
        self._effort.spend()
        if shape.values(self._effort) is not None or shape.type in ("number", "string"):
            return 0
        below: list[Schema] = []
        if shape.type == "array":
            # All behind those that are named are alike.
            named = max(map(len, shape.given("prefixItems")), default=0)
            least = max(shape.given("minItems"), default=0)
            for index in range(min(least, named + 1)):
                below += _items(shape, index)
        else:
            for required in shape.given("required"):
                for name in required:
                    below += _properties(shape, name)
            if any(shape.given("minProperties")):
                below += shape.given("additionalProperties")
        self._effort.spend(len(below))
        heights = (self._height(one, room - 1) for one in below)
        return 1 + max(heights, default=0)

    # Scalars

    def _number(self, shape: Shape, path: str) -> float:
        whole = shape.is_integer
        low, high = lower(shape.parts, whole=whole), upper(shape.parts, whole=whole)
        units = [fraction(one) for one in shape.given("multipleOf")]
        unit = fraction(1) if whole and not units else max(units, default=None)
        least = None if low is None else low[0]
        most = None if high is None else high[0]
        if least is None:
            least = fraction(0) if most is None or most >= 0 else most - _RANGE
        if most is None:
            most = least + _RANGE
        if unit is not None:
            first, last = ceil(least / unit), floor(most / unit)
            first += bool(low and low[1] and first * unit == least)
            last -= bool(high and high[1] and last * unit == most)
            if first > last:
                raise _DeadEnd(path, "no number is within the bounds")
            chosen = self._random.randint(first, last) * unit
            return chosen.numerator if chosen.denominator == 1 else float(chosen)
        between = float(least) + self._random.random() * float(most - least)
        rounded = round(between, 2)
        return rounded if least < fraction(rounded) < most else between

    def _string(self, shape: Shape, path: str, name: str) -> str:
        least = max(shape.given("minLength"), default=0)
        most = min(shape.given("maxLength"), default=None)
        if least > MAX_CHARACTERS:
            raise UnsupportedSchema(path, f"minLength {least}")
        patterns = list(dict.fromkeys(shape.given("pattern")))
        if patterns == [BASE64] or (not patterns and _is_base64(shape)):
            if (made := base64_text(self._random, least, most)) is None:
                raise _DeadEnd(path, f"no base64 has {least} to {most} characters")
            return made
        if len(patterns) > 1:
            raise UnsupportedSchema(path, "pattern, more than one of them")
        if patterns:
            return self._matching(patterns[0], path, least, most)
        for format_ in shape.given("format"):
            made = formatted(format_, self._random)
            if made is not None:
                return made
        text = text_for(name, self._random)
        self._effort.spend(least // _CHARACTERS)
        while len(text) < least:
            text += " " + words(self._random, 3)
        return text if most is None else text[:most].strip().ljust(least, "x")

    def _matching(self, pattern: str, path: str, least: int, most: int | None) -> str:
        longest = MAX_CHARACTERS if most is None else most
        try:
            if pattern not in self._patterns:
                self._patterns[pattern] = Pattern(pattern, self._effort)
            for _ in range(_PATTERN_ATTEMPTS):
                text = self._patterns[pattern].made(self._random, least, longest)
                if least <= len(text) <= longest:
                    return text
        except NotSimple as error:
            raise UnsupportedSchema(path, f"pattern ({error})") from None
        length = f"{least} to {longest} characters"
        raise _DeadEnd(path, f"nothing of {length} was found for the pattern")

    # What holds others

    def _array(self, shape: Shape, path: str, name: str, depth: int) -> list[Any]:
        least = max(shape.given("minItems"), default=0)
        most = min(shape.given("maxItems"), default=least + 3)
        if least > MAX_ITEMS:
            raise UnsupportedSchema(path, f"minItems {least}")
        prefix = max(map(len, shape.given("prefixItems")), default=0)
        if prefix:  # as a tuple is, unless it says more
            most = min(most, max(prefix, least))
        length = least if depth >= _FREE_DEPTH else least + self._extra(least, most)
        unique = any(shape.given("uniqueItems"))
        made: dict[Any, Any] = {}
        singular = name.removesuffix("s")
        for index in range(length):
            node = self._all_of(_items(shape, index))
            if node is False or self._height(node, _MAX_HEIGHT) == inf:
                break
            for _ in range(ATTEMPTS if unique else 1):
                one = self._value(node, path + step(index), singular, depth + 1)
                key = key_of(one) if unique else index
                if key not in made:
                    made[key] = one
                    break
            else:
                break
        if len(made) < least:
            items = "different items" if unique else "items"
            reason = f"minItems is {least}, only {len(made)} {items} were found"
            raise _DeadEnd(path, reason)
        return list(made.values())

    def _object(self, shape: Shape, path: str, depth: int) -> dict[str, Any]:
        required = dict.fromkeys(
            name for names in shape.given("required") for name in names
        )
        known = dict.fromkeys(
            name for names in shape.given("properties") for name in names
        )
        made: dict[str, Any] = {}
        most = min(shape.given("maxProperties"), default=MAX_VALUES)
        for name in {**known, **required}:
            if name not in required and (
                depth >= _FREE_DEPTH
                or self._random.random() < 0.3
                or len(required.keys() | made.keys()) >= most
            ):
                continue
            node = self._all_of(_properties(shape, name))
            if self._height(node, _MAX_HEIGHT) == inf and name not in required:
                continue
            made[name] = self._value(node, path + step(name), name, depth + 1)
        self._add_others(made, shape, path, depth)
        return made

    def _add_others(
        self, made: dict[str, Any], shape: Shape, path: str, depth: int
    ) -> None:
        """Entries of a map, whose names are free."""
        others = shape.given("additionalProperties")
        least = max(shape.given("minProperties"), default=0)
        most = min(shape.given("maxProperties"), default=max(least, len(made) + 3))
        free = not shape.given("properties") if not others else False not in others
        if not free and len(made) >= least:
            return
        wanted = max(least - len(made), 0)
        if depth < _FREE_DEPTH and free:
            wanted += self._extra(len(made) + wanted, most)
        node = self._all_of(others)
        names = self._all_of(shape.given("propertyNames"))
        if wanted > MAX_ITEMS:
            raise UnsupportedSchema(path, f"minProperties {least}")
        self._effort.spend(wanted)
        for _ in range(wanted * 4):
            if wanted <= 0 or self._height(node, _MAX_HEIGHT) == inf:
                return
            name = word(self._random)
            if names is not True:
                name = self._name(names, path, depth)
            if name not in made and not _is_known(shape, name):
                made[name] = self._value(node, path + step(name), name, depth + 1)
                wanted -= 1

    def _name(self, names: Schema, path: str, depth: int) -> str:
        node: Schema = {"type": "string", "allOf": [names]}
        self._made.append(node)
        name = self._value(node, path, "", depth + 1)
        assert isinstance(name, str), "the type says so"
        return name

    def _extra(self, least: int, most: int) -> int:
        return self._random.randint(0, max(0, min(3, most - least)))

    def _all_of(self, nodes: list[Schema]) -> Schema:
        """One schema for several that hold at once."""
        if len(nodes) <= 1:
            return nodes[0] if nodes else True
        node: Schema = {"allOf": nodes}
        self._made.append(node)  # it is known by its id as long as it lives
        return node


def _items(shape: Shape, index: int) -> list[Schema]:
    """All that is said about an item."""
    found = []
    for part in shape.parts:
        first = part.get("prefixItems", ())
        if index < len(first):
            found.append(first[index])
        elif "items" in part:
            found.append(part["items"])
    return found


def _properties(shape: Shape, name: str) -> list[Schema]:
    """All that is said about a property."""
    found = []
    for part in shape.parts:
        if name in part.get("properties", ()):
            found.append(part["properties"][name])
        elif "additionalProperties" in part:
            found.append(part["additionalProperties"])
    return found


def _is_base64(shape: Shape) -> bool:
    return "base64" in shape.given("contentEncoding")


def _is_known(shape: Shape, name: str) -> bool:
    return any(name in properties for properties in shape.given("properties"))
