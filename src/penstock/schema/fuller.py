"""What msgspec leaves out of the schema of a type: times, bytes, and keys of maps.

It says no more than "a string" of a time without a zone and of bytes, and nothing of
keys that are numbers. So others could publish what the type cannot read. The type and
its schema are walked side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import inspect

from penstock.schema.document import resolved
from penstock.schema.formats import BASE64, WHOLE

_BYTES = (inspect.BytesType, inspect.ByteArrayType, inspect.MemoryViewType)
_OBJECTS = (
    inspect.StructType,
    inspect.TypedDictType,
    inspect.DataclassType,
    inspect.NamedTupleType,
)
# Keys of maps that are written as strings of a format.
_KEYS: tuple[tuple[type[inspect.Type], dict[str, str]], ...] = (
    (inspect.IntType, {"pattern": WHOLE}),
    (inspect.DateType, {"format": "date"}),
    (inspect.TimeDeltaType, {"format": "duration"}),
    (inspect.UUIDType, {"format": "uuid"}),
    (inspect.DecimalType, {"format": "decimal"}),
)


def filled(kind: Any, document: dict[str, Any]) -> dict[str, Any]:
    """The schema that msgspec made of a type, with what it left out."""
    _Walk(document).over(inspect.type_info(kind), document)
    return document


class _Walk:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._seen: set[str] = set()

    def over(self, type_: inspect.Type, node: Any) -> None:
        type_ = _bare(type_)
        if not isinstance(node, dict):
            return
        if (reference := node.get("$ref")) is not None:
            if reference in self._seen:
                return
            self._seen.add(reference)
            self.over(type_, resolved(self._root, reference))
        elif isinstance(type_, (inspect.DateTimeType, inspect.TimeType, *_BYTES)):
            node.update(_said(type_))
        elif isinstance(type_, inspect.CollectionType):
            self.over(type_.item_type, node.get("items"))
        elif isinstance(type_, inspect.TupleType):
            self._each(type_.item_types, node.get("prefixItems", ()))
        elif isinstance(type_, inspect.DictType):
            self.over(type_.value_type, node.get("additionalProperties"))
            if names := _names(_bare(type_.key_type)):
                node["propertyNames"] = names
        elif isinstance(type_, inspect.UnionType):
            self._each(_in_order(type_), _branches(node))
        elif isinstance(type_, _OBJECTS):
            self._fields(type_, node)

    def _each(self, types: Iterable[inspect.Type], nodes: Iterable[Any]) -> None:
        for type_, node in zip(types, nodes, strict=False):
            self.over(type_, node)

    def _fields(self, type_: Any, node: dict[str, Any]) -> None:
        # Any: one of _OBJECTS, which have fields all of them.
        types = [one.type for one in type_.fields]
        if "prefixItems" in node:
            self._each(types, node["prefixItems"][-len(types) :])  # a tag is in front
            return
        properties = node.get("properties", {})
        self._each(types, [properties.get(one.encode_name) for one in type_.fields])


def _bare(type_: inspect.Type) -> inspect.Type:
    while isinstance(type_, inspect.Metadata):
        type_ = type_.type
    return type_


def _said(type_: inspect.Type) -> dict[str, str]:
    """What a string has to be."""
    if isinstance(type_, inspect.DateTimeType):
        return {"format": "date-time" if type_.tz is not False else "local-date-time"}
    if isinstance(type_, inspect.TimeType):
        return {"format": "time" if type_.tz is not False else "partial-time"}
    return {"pattern": BASE64}


def _names(key: inspect.Type) -> dict[str, Any]:
    """What the keys of a map have to be; nothing if that is said already."""
    if isinstance(key, (inspect.DateTimeType, inspect.TimeType, *_BYTES)):
        return _said(key)
    if isinstance(key, inspect.EnumType):
        return {"enum": sorted(str(one.value) for one in key.cls)}
    if isinstance(key, inspect.LiteralType):
        return {"enum": sorted(map(str, key.values))}
    return next((dict(said) for kind, said in _KEYS if isinstance(key, kind)), {})


def _in_order(union: inspect.UnionType) -> list[inspect.Type]:
    """The members of a union as they stand in its schema: objects behind others."""
    bare = [_bare(one) for one in union.types]
    return sorted(bare, key=lambda one: (_is_null(one), _is_object(one)))


def _is_object(type_: inspect.Type) -> bool:
    return isinstance(type_, inspect.StructType) and not type_.array_like


def _is_null(type_: inspect.Type) -> bool:
    return isinstance(type_, inspect.NoneType)


def _branches(node: dict[str, Any]) -> Iterator[Any]:
    """The branches of a union; those of tagged objects stand one level deeper."""
    for one in node.get("anyOf", ()):
        if isinstance(one, dict) and "discriminator" in one:
            yield from one["anyOf"]
        else:
            yield one
