"""Large arguments of a verb, in MessagePack: looked at before they are taken apart.

A verb says how long its lists may be and what is in them, so what fits it is bearable;
but for what may be anything, such as a schema, which has a limit in bytes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

import msgspec
from msgspec import Raw

from penstock.desk.verbs import Verb, in_our_words
from penstock.errors import InvalidArgument, TooLarge

# Of an argument that may be anything: each byte may be a value, of many times its size.
MAX_FREE_BYTES = 1 << 18

_decode = msgspec.msgpack.Decoder(dict[str, object]).decode


def unpacked(found: Verb, packed: Raw) -> dict[str, object]:
    """The arguments that a verb is asked with; raises InvalidArgument, TooLarge."""
    try:
        shape = msgspec.msgpack.decode(packed, type=_shape_of(found.arguments))
        for name in shape.__struct_fields__:
            _check_free(name, getattr(shape, name))
        del shape
        return _decode(packed)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(found.name, in_our_words(str(error))) from None


def _check_free(name: str, value: object) -> None:
    if not isinstance(value, Raw):
        return
    if (size := len(memoryview(value))) > MAX_FREE_BYTES:
        raise TooLarge(f"argument {name}", size, MAX_FREE_BYTES, "the limit")


@cache
def _shape_of(arguments: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The same fields, but what may be anything stays in one piece."""
    hints = get_type_hints(arguments, include_extras=True)
    fields: list[Any] = []
    for one in msgspec.structs.fields(arguments):
        kind = Raw if hints[one.name] is object else hints[one.name]
        # Nobody looks at a default here.
        fields.append((one.name, kind) if one.required else (one.name, kind, None))
    return msgspec.defstruct("Shape", fields, kw_only=True, forbid_unknown_fields=True)
