"""Whether it can be told at a bearable price where a document does not fit.

The validator is quick to say no. Why not, it tells of every branch of every union that
was tried, which may be without end where unions hold each other. So the branches are
counted first, and what takes too long is refused without a reason.
"""

from __future__ import annotations

from typing import Any

from penstock.errors import TooMuchWork
from penstock.schema.document import Schema, resolved
from penstock.schema.effort import Effort

# Schemas in branches of unions, each of which may have a reason of its own.
MAX_BRANCHED = 500
# Schemas that are looked at to find them.
_MAX_LOOKED = 5_000
_MAX_DEPTH = 100

_UNIONS = ("anyOf", "oneOf")
_BESIDE = ("not", "if", "then", "else", "propertyNames")


def can_tell(schema: Schema, value: Any) -> bool:
    """Whether the reasons are few enough."""
    try:
        _Count(schema).see(schema, value, 0, 0)
    except TooMuchWork:
        return False
    return True


class _Count:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._looked = Effort(_MAX_LOOKED)
        self._branched = Effort(MAX_BRANCHED)

    def see(self, node: Any, value: Any, depth: int, branch: int) -> None:
        """``branch``: 1 inside of a union, else 0."""
        if not isinstance(node, dict):
            return
        self._looked.spend(1 if depth < _MAX_DEPTH else _MAX_LOOKED + 1)
        self._branched.spend(branch)
        for key in _UNIONS:
            for one in node.get(key, ()):
                self.see(one, value, depth + 1, 1)
        for one in self._beside(node):
            self.see(one, value, depth + 1, branch)
        if isinstance(value, dict):
            self._members(node, value, depth + 1, branch)
        elif isinstance(value, list):
            self._items(node, value, depth + 1, branch)

    def _beside(self, node: dict[str, Any]) -> list[Any]:
        found = [node[key] for key in _BESIDE if key in node]
        if isinstance(said := node.get("$ref"), str):
            # What is named in another way is not looked at, and so not told.
            target = resolved(self._root, said)
            if target is None:
                self._looked.spend(_MAX_LOOKED + 1)
            found.append(target)
        if "$dynamicRef" in node:
            self._looked.spend(_MAX_LOOKED + 1)
        return [*found, *node.get("allOf", ()), *_of_map(node, "dependentSchemas")]

    def _members(
        self, node: dict[str, Any], value: dict[str, Any], depth: int, branch: int
    ) -> None:
        named = node.get("properties", {})
        others = [*_of_map(node, "patternProperties"), node.get("additionalProperties")]
        others.append(node.get("unevaluatedProperties"))
        for name, one in value.items():
            for part in (named.get(name), *others):
                self.see(part, one, depth, branch)

    def _items(
        self, node: dict[str, Any], value: list[Any], depth: int, branch: int
    ) -> None:
        first = node.get("prefixItems", [])
        rest = [node.get(key) for key in ("items", "contains", "unevaluatedItems")]
        for index, one in enumerate(value):
            for part in (*first[index : index + 1], *rest):
                self.see(part, one, depth, branch)


def _of_map(node: dict[str, Any], key: str) -> list[Any]:
    return list(node.get(key, {}).values())
