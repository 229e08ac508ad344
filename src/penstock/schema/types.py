"""The JSON Schema of a Python type.

Known are msgspec Structs, dataclasses, TypedDicts, everything else that msgspec has a
schema for, and pydantic models, which are asked themselves: pydantic is not imported.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.errors import InvalidSchema
from penstock.schema.document import canonical
from penstock.schema.fuller import filled

# Payloads as they are: there is nothing to say about them.
_RAW: tuple[object, ...] = (bytes, bytearray, memoryview, object, Any, None)


def schema_of(kind: Any) -> bytes | None:
    """The schema of a type as canonical JSON; None for bytes, which may be anything.

    Raises InvalidSchema for a type that has none.
    """
    if any(kind is raw for raw in _RAW):
        return None
    own = getattr(kind, "model_json_schema", None)
    try:
        made = own() if callable(own) else filled(kind, msgspec.json.schema(kind))
    except Exception as error:  # whatever a type of the user's raises
        text = f"type {name_of(kind)} has no JSON Schema: {error}"
        raise InvalidSchema("$", text.split("\n")[0]) from error
    return canonical(made)


def name_of(kind: Any) -> str:
    """What people call a type: its name, with its module where it has one."""
    name = getattr(kind, "__qualname__", None)
    if name is None or getattr(kind, "__args__", None):
        return str(kind)
    module = getattr(kind, "__module__", "builtins")
    return str(name) if module == "builtins" else f"{module}.{name}"
