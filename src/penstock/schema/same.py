"""Whether two schemas of two documents say the same, references followed.

What only describes (titles, defaults, examples) does not count.
"""

from __future__ import annotations

from typing import Any

from penstock.schema.document import Schema, resolved
from penstock.schema.effort import Effort
from penstock.schema.shapes import MAX_DEPTH
from penstock.schema.values import equal

_ONE = {
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
}
_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_MAPS = {"dependentSchemas", "patternProperties", "properties"}
_PLAIN = {
    "const",
    "dependentRequired",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "type",
    "uniqueItems",
}
_COUNTS = _ONE | _LISTS | _MAPS | _PLAIN | {"$ref"}
# Not followed, so never the same.
_NEVER = {"$dynamicRef", "$recursiveRef", "dependencies"}


class Twins:
    """Compares schemas of one document with schemas of another."""

    def __init__(
        self, one: Schema, other: Schema, effort: Effort | None = None
    ) -> None:
        self._roots = (one, other)
        self._effort = effort or Effort()

    def same(self, one: Schema, other: Schema) -> bool:
        """Whether two schemas say the same."""
        return self._same(one, other, set(), 0)

    def agree(self, keyword: str, one: dict[str, Any], other: dict[str, Any]) -> bool:
        """Whether two schemas say the same with one keyword, or both nothing."""
        return self._agree(keyword, one, other, set(), 0)

    def alike(self, one: dict[str, Any], other: dict[str, Any], type_: str) -> bool:
        """Whether two schemas say the same themselves, unions and references aside."""
        beside = {"$ref", "allOf", "anyOf", "oneOf", "type"}
        keys = ((one.keys() | other.keys()) & _COUNTS) - beside
        return all(self.agree(key, one, other) for key in keys)

    def _same(
        self, one: Schema, other: Schema, seen: set[tuple[int, int]], depth: int
    ) -> bool:
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        pair = (id(one), id(other))
        if pair in seen:
            return True  # what is below is being compared already
        if depth > MAX_DEPTH:
            return False
        seen.add(pair)
        self._effort.spend(len(one))
        keys = one.keys() | other.keys()
        if "$id" in keys and one is not self._roots[0]:
            return False  # references below mean something else
        return not keys & _NEVER and all(
            self._agree(key, one, other, seen, depth) for key in keys & _COUNTS
        )

    def _agree(
        self,
        keyword: str,
        one: dict[str, Any],
        other: dict[str, Any],
        seen: set[tuple[int, int]],
        depth: int,
    ) -> bool:
        if keyword not in one or keyword not in other:
            return keyword not in one and keyword not in other
        mine, theirs = one[keyword], other[keyword]
        self._effort.spend(len(mine) if isinstance(mine, list | dict) else 1)
        if keyword == "$ref":
            target = resolved(self._roots[0], mine)
            others = resolved(self._roots[1], theirs)
            if target is None or others is None:
                return False
            return self._same(target, others, seen, depth + 1)
        if keyword in _PLAIN:
            if keyword in ("required", "type") and isinstance(mine, list):
                return isinstance(theirs, list) and set(mine) == set(theirs)
            return equal(mine, theirs)
        if keyword in _ONE:
            return self._same(mine, theirs, seen, depth + 1)
        if keyword in _LISTS:
            return len(mine) == len(theirs) and all(
                self._same(a, b, seen, depth + 1)
                for a, b in zip(mine, theirs, strict=True)
            )
        return mine.keys() == theirs.keys() and all(
            self._same(mine[name], theirs[name], seen, depth + 1) for name in mine
        )
