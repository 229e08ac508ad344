"""Payloads: values of a type <-> bytes.

Bytes are themselves. Everything else is JSON: msgspec Structs, dataclasses, TypedDicts
and plain values through msgspec, pydantic models through their own methods (they are
recognised by having them: pydantic is never imported here), with the aliases of their
fields. JSON has no NaN and no infinity: they are refused.

Text is a JSON string where the type says ``str``. It is read more freely, as a client
may have published plain text by the name of the topic: whatever is no JSON string is
the text it is.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import is_dataclass
from math import isfinite
from typing import Any, Generic, TypeVar, cast

import msgspec

from penstock.errors import UnfitPayload

T = TypeVar("T")

_NO_NUMBER = "JSON has neither NaN nor infinity"

_encoded = msgspec.json.Encoder().encode
_decode_text = msgspec.json.Decoder(str).decode


class Codec(Generic[T]):
    """How payloads of one type are written and read."""

    __slots__ = ("_class", "_decode", "_encode", "type")

    def __init__(self, type_: type[T]) -> None:
        self.type = type_
        # Any: whichever of the libraries below knows the type.
        self._encode: Callable[[Any], bytes]
        self._decode: Callable[[bytes], Any]
        self._class = type_ if _is_class(type_) else None
        """What payloads have to be instances of, where that says it all."""
        if type_ is bytes:
            self._encode, self._decode = bytes, _same
        elif is_pydantic(type_):
            model = cast(Any, type_)
            self._encode = _encode_model
            self._decode = model.model_validate_json
        elif type_ is str:
            self._encode, self._decode = encode_json, _text_of
        else:
            self._encode = encode_json
            self._decode = msgspec.json.Decoder(type_).decode

    @property
    def raw(self) -> bool:
        """Whether payloads stay the bytes they are."""
        return self._decode is _same

    def encode(self, topic: str, value: T) -> bytes:
        """The bytes of a value; raises UnfitPayload if it is not of the type."""
        if self._class is not None and not isinstance(value, self._class):
            found = type(value).__name__
            raise UnfitPayload(topic, type_name(self.type), f"it is of {found}")
        try:
            data = self._encode(value)
            if self._class is None:
                self._decode(data)  # the only way to find out
        except Exception as error:  # a type may have code of its own
            raise UnfitPayload(topic, type_name(self.type), _text(error)) from error
        return data

    def decode(self, topic: str, data: bytes) -> T:
        """The value of bytes; raises UnfitPayload, which says where they do not fit."""
        try:
            return cast(T, self._decode(data))
        except Exception as error:  # a type may have code of its own
            raise UnfitPayload(topic, type_name(self.type), _text(error)) from error


def plain(topic: str, value: object) -> bytes:
    """The bytes of what is published to a topic of no type: JSON unless it is bytes.

    Raises UnfitPayload if there is no JSON of it.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    try:
        if isinstance(value, str):
            return value.encode()
        if is_pydantic(type(value)):
            return _encode_model(value)
        return encode_json(value)
    except Exception as error:  # a type may have code of its own
        raise UnfitPayload(topic, "JSON", _text(error)) from error


def is_pydantic(type_: object) -> bool:
    return hasattr(type_, "model_validate_json") and hasattr(type_, "model_json_schema")


def type_name(type_: object) -> str:
    return getattr(type_, "__qualname__", None) or str(type_)


def _is_class(type_: object) -> bool:
    if type_ in (bytes, str) or is_pydantic(type_) or is_dataclass(type_):
        return True
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)


def encode_json(value: Any) -> bytes:  # whatever msgspec knows
    """JSON; raises ValueError for numbers that it does not have."""
    data = _encoded(value)
    if b"null" in data and not _finite(msgspec.to_builtins(value)):
        raise ValueError(_NO_NUMBER)
    return data


def _encode_model(value: Any) -> bytes:  # an instance of a pydantic model
    text: str = value.model_dump_json(by_alias=True)
    if "null" in text and not _finite(value.model_dump()):
        raise ValueError(_NO_NUMBER)
    return text.encode()


def _finite(value: Any) -> bool:  # a tree of plain values
    """Whether there is neither NaN nor infinity in it; as JSON they become null."""
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_finite, value))
    return True


def _text_of(data: bytes) -> str:
    try:
        return _decode_text(data)
    except msgspec.MsgspecError:
        return data.decode()


def _text(error: Exception) -> str:
    if isinstance(error, ValueError | TypeError | AttributeError):
        return str(error)
    return traceback.format_exception_only(error)[-1].strip()  # however it behaves


def _same(value: bytes) -> bytes:
    return value
