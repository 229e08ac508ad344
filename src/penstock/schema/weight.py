"""How often a schema has one place of a document checked, at worst.

References are followed, so that a few lines that double each other are counted as what
they stand for. A schema that comes back to itself counts once: the validator remembers
what it found at a place. Properties of different names are different places.

References are found as the validator finds them: by pointer, by ``$anchor``, and by the
``$id`` of a part. One that cannot be found is refused, because it cannot be counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any
from urllib.parse import urldefrag, urljoin

from penstock.errors import InvalidSchema
from penstock.schema.document import Schema, resolved
from penstock.schema.formats import FREER

# Levels of a schema, references followed; far from what would exhaust the stack.
MAX_LEVELS = 1000
# Higher than any limit; numbers do not grow beyond it.
_MOST = 10**12
# The schema of schemas, which the validator knows.
_STANDARD = "https://json-schema.org/"
_STANDARD_PART: Schema = {"enum": [[]] * 100}

# Reading a string takes as long as so many plain checks: by a pattern, in Python, and
# by the slower formats of the validator.
_PATTERN = 5
_FREER = 20
# And so does comparing a number with one, which is done exactly.
_NUMBER = 20
_SLOW = {"email": 5, "idn-email": 5, "idn-hostname": 5}

_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_CONDITIONS = ("not", "if", "then", "else")
_OTHERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS = ("items", "contains", "unevaluatedItems")
_MAPS = ("$defs", "definitions", "properties", "patternProperties", "dependentSchemas")
_REFERENCES = ("$ref", "$dynamicRef")


def weight_of(document: Schema) -> int:
    """How often one place is checked at worst; raises InvalidSchema."""
    return _Weights(document).of(document)


class _Weights:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._bases: dict[int, str] = {}
        self._named: dict[str, Schema] = {"": root}
        self._known: dict[int, int] = {}
        self._name(root, "")

    def of(self, node: Schema) -> int:
        """Without recursion: references may lead deep."""
        if not isinstance(node, dict):
            return 1
        way = [self._entered(node)]
        while way:
            one, below = way[-1]
            found = next((part for part in below if self._is_new(part)), None)
            if found is None:
                self._known[id(one)] = min(self._own(one), _MOST)
                way.pop()
            elif len(way) >= MAX_LEVELS:
                limit = f"{MAX_LEVELS} levels, references followed"
                raise InvalidSchema("$", f"is nested deeper than {limit}")
            else:
                way.append(self._entered(found))
        return self._known[id(node)]

    def _is_new(self, part: Any) -> bool:
        return isinstance(part, dict) and id(part) not in self._known

    def _entered(self, node: dict[str, Any]) -> tuple[dict[str, Any], Iterator[Any]]:
        self._known[id(node)] = 1  # if it comes back to itself
        return node, chain(self._targets(node), _parts(node))

    def _own(self, node: dict[str, Any]) -> int:
        at_once = chain(self._targets(node), _beside(node))
        found = 1 + _compared(node) + _read(node) + sum(map(self._weight, at_once))
        return found + max(self._properties(node), self._items(node))

    def _properties(self, node: dict[str, Any]) -> int:
        patterns = _values(node, "patternProperties")
        named = map(self._weight, _values(node, "properties"))
        others = [*patterns, *(node[key] for key in _OTHERS if key in node)]
        found = len(patterns) + max(named, default=0)
        return found + sum(map(self._weight, others))

    def _items(self, node: dict[str, Any]) -> int:
        first = map(self._weight, _list(node, "prefixItems"))
        rest = (node[key] for key in _ITEMS if key in node)
        return max(first, default=0) + sum(map(self._weight, rest))

    def _weight(self, node: Any) -> int:
        return self._known.get(id(node), 1)

    # References

    def _targets(self, node: dict[str, Any]) -> Iterator[Schema]:
        for key in _REFERENCES:
            said = node.get(key)
            if isinstance(said, str):
                yield self._target(node, said)

    def _target(self, node: dict[str, Any], said: str) -> Schema:
        whole = urljoin(self._bases.get(id(node), ""), said) if said[:1] != "#" else ""
        base = whole or self._bases.get(id(node), "") + said
        uri, fragment = urldefrag(base)
        if uri.startswith(_STANDARD):
            return _STANDARD_PART
        if base in self._named:
            return self._named[base]
        part = self._named.get(uri)
        found = None if part is None else resolved(part, "#" + fragment)
        if found is None:
            raise InvalidSchema("$", f"$ref {said[:200]} leads out of the document")
        return found

    def _name(self, node: Any, base: str) -> None:
        """Note what references can name: ids, anchors, and what they count from."""
        if not isinstance(node, dict):
            return
        if isinstance(own := node.get("$id"), str) and node is not self._root:
            base = urldefrag(urljoin(base, own))[0]
            self._put(base, node)
        elif isinstance(own, str):
            base = urldefrag(own)[0]
            self._named[base] = node
        self._bases[id(node)] = base
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(key), str):
                self._put(f"{base}#{node[key]}", node)
        for one in _parts(node):
            self._name(one, base)

    def _put(self, name: str, node: Schema) -> None:
        if self._named.get(name, node) is not node:
            raise InvalidSchema("$", f"{name[:200]} names two parts of it")
        self._named[name] = node


def _beside(node: dict[str, Any]) -> Iterator[Schema]:
    """The schemas that hold at the same place."""
    for key in _ALTERNATIVES:
        yield from _list(node, key)
    for key in _CONDITIONS:
        if key in node:
            yield node[key]
    yield from _values(node, "dependentSchemas")


def _parts(node: dict[str, Any]) -> Iterator[Schema]:
    yield from _beside(node)
    yield from _list(node, "prefixItems")
    for key in _MAPS:
        yield from _values(node, key)
    for key in (*_OTHERS, *_ITEMS):
        if key in node:
            yield node[key]


def _compared(node: dict[str, Any]) -> int:
    """Values that are compared one by one; plain ones of a list are looked up."""
    const = _NUMBER if isinstance(node.get("const"), int | float) else 0
    return const + sum(isinstance(one, dict | list) for one in _list(node, "enum"))


def _read(node: dict[str, Any]) -> int:
    """What reading a string adds."""
    found = _PATTERN if "pattern" in node else 0
    said = node.get("format")
    if not isinstance(said, str):
        return found
    return found + (_FREER if said in FREER else _SLOW.get(said, 0))


def _list(node: dict[str, Any], key: str) -> list[Any]:
    found = node.get(key, [])
    return found if isinstance(found, list) else []


def _values(node: dict[str, Any], key: str) -> list[Any]:
    found = node.get(key, {})
    return list(found.values()) if isinstance(found, dict) else []
