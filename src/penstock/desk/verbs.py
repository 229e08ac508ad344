"""What can be asked by name: a table of verbs, made from the methods of the desk.

A verb's arguments are the keyword arguments of its method. They come from a peer, so
they are checked against the annotations before the method sees them.

Large ones come in MessagePack, and are looked at before they are taken apart. A verb
says how long its lists may be and what is in them, so what fits it is bearable; but for
what may be anything, such as a schema, which has a limit in bytes.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec
from msgspec import Raw

from penstock.errors import InvalidArgument, TooLarge, UnknownVerb

Method = TypeVar("Method", bound=Callable[..., object])

_MARK = "_penstock_verb"
# The argument that says which user asks, and the verbs of all desks that have it.
BY = "by"
SIGNED: set[str] = set()

# Of an argument that may be anything: each byte may be a value, of many times its size.
MAX_FREE_BYTES = 1 << 18

_decode = msgspec.msgpack.Decoder(dict[str, object]).decode


class Promise(Enum):
    """What an answer promises, and so what it has to wait for."""

    NOTHING = 0
    STORED = 1
    """That it is stored; if the write fails it was not done."""
    KEPT = 2
    """That it is stored; if the write fails it is written again."""


class Verb(NamedTuple):
    name: str
    promise: Promise
    method: Callable[..., object]

    @property
    def arguments(self) -> type[msgspec.Struct]:
        """A field for each argument, of the type it has to be."""
        return arguments_of(self.function)

    @property
    def function(self) -> Callable[..., object]:
        """The method, whosever it is."""
        function: Callable[..., object] = getattr(self.method, "__func__", self.method)
        return function


def verb(name: str, promise: Promise = Promise.NOTHING) -> Callable[[Method], Method]:
    """Have a method asked for by that name."""

    def marked(method: Method) -> Method:
        setattr(method, _MARK, (name, promise))
        if BY in inspect.signature(method).parameters:
            SIGNED.add(name)
        return method

    return marked


def verbs_of(desk: object) -> dict[str, Verb]:
    """All verbs of an object, by name."""
    # mypy takes no class for hashable.
    marked = _marked(type(desk))  # type: ignore[arg-type]
    return {
        name: Verb(name, promise, getattr(desk, attribute))
        for attribute, name, promise in marked
    }


@cache
def _marked(kind: type) -> list[tuple[str, str, Promise]]:
    """The methods that are verbs: their names in the class, and those of the verbs."""
    return [
        (attribute, *getattr(method, _MARK))
        for attribute, method in inspect.getmembers(kind, inspect.isfunction)
        if hasattr(method, _MARK)
    ]


def find(verbs: Mapping[str, Verb], name: str) -> Verb:
    """The verb of that name; raises UnknownVerb."""
    if name not in verbs:
        near = difflib.get_close_matches(name, verbs, 1, 0.5)
        raise UnknownVerb(name, near[0] if near else "")
    return verbs[name]


def call(found: Verb, arguments: Mapping[str, object]) -> object:
    """Carry a verb out; raises InvalidArgument for what it does not take."""
    try:
        checked = msgspec.convert(dict(arguments), found.arguments)
    except msgspec.ValidationError as error:
        raise InvalidArgument(found.name, in_our_words(str(error))) from None
    given = {name: getattr(checked, name) for name in checked.__struct_fields__}
    return found.method(**given)


# Made when a verb is first asked for, and once for all desks: it takes a while, and a
# program that embeds a broker, or a test, wants it to be there at once.
@cache
def arguments_of(method: Callable[..., object]) -> type[msgspec.Struct]:
    """A struct with a field for each keyword argument of the function."""
    hints = get_type_hints(method, include_extras=True)
    fields: list[Any] = [
        (name, hints[name])
        if parameter.default is inspect.Parameter.empty
        else (name, hints[name], parameter.default)
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    return msgspec.defstruct(
        "Arguments", fields, kw_only=True, forbid_unknown_fields=True
    )


def in_our_words(text: str) -> str:
    """What the decoder says of an argument."""
    for theirs, ours in (
        ("Object contains unknown field", "there is no argument"),
        ("Object missing required field", "there has to be an argument"),
        (" - at `$.", " (argument `"),
    ):
        if theirs in text:
            text = text.replace(theirs, ours)
            text += ")" if ours.endswith("(argument `") else ""
    return text[:1].lower() + text[1:]


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
        # No caller looks at a default here.
        fields.append((one.name, kind) if one.required else (one.name, kind, None))
    return msgspec.defstruct("Shape", fields, kw_only=True, forbid_unknown_fields=True)
