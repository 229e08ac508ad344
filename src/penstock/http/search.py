"""Searching payloads: words, and values at places of a JSON document.

    paid                 the word, anywhere in the payload, large or small letters
    "not paid"           several words as one
    customer.city=Graz   the value at a dotted place; in a list, that of any element
    items.0.price>10     also >=, <, <= and !=; numbers as numbers, others as text

All of them have to be there. A payload that is not JSON has words only, and so has one
that is large: each of its bytes could be a value, and no other task has a turn
meanwhile.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from penstock.errors import InvalidArgument
from penstock.wire.json_text import NOT_JSON

# A person types it; what is longer is no search.
MAX_CHARACTERS = 1000
MAX_TERMS = 16
# A payload that is larger has nothing at any place.
MAX_DOCUMENT_BYTES = 1 << 18
# Values of one document that all conditions together look at; what is behind them is
# not found.
MAX_LOOKED = 100_000

_TERM = re.compile(r'"((?:[^"\\]|\\.)*)"(?=\s|$)|(\S*?"[^"]*"(?=\s|$)|\S+)')
_CONDITION = re.compile(r"([\w$-]+(?:\.[\w$-]+)*)(!=|>=|<=|=|>|<)(.*)", re.DOTALL)

# Any: numbers are compared with numbers, texts with texts, as the callers see to.
Compare = Callable[[Any, Any], bool]
_COMPARE: dict[str, Compare] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison with what is at a place."""

    path: tuple[str, ...]
    sign: str
    text: str
    number: float | None

    def holds(self, document: object, most: int = MAX_LOOKED) -> bool:
        """Whether it does, as far as the first ``most`` values say."""
        found = _at(document, self.path, most)
        if self.sign == "!=":
            return not any(self._equals(one) for one in found)
        return any(self._compares(one) for one in found)

    def _equals(self, value: object) -> bool:
        if self.number is not None and _is_number(value):
            return value == self.number
        return _text_of(value) == self.text

    def _compares(self, value: object) -> bool:
        if self.sign == "=":
            return self._equals(value)
        compare = _COMPARE[self.sign]
        if _is_number(value):
            return self.number is not None and compare(value, self.number)
        return isinstance(value, str) and compare(value, self.text)


@dataclass(frozen=True, slots=True)
class Search:
    """What a payload has to have."""

    words: tuple[bytes, ...]
    conditions: tuple[Condition, ...]
    values: tuple[bytes, ...] = ()
    """What has to be in a payload without escapes, so that most need no decoding."""

    def takes(self, payload: bytes) -> bool:
        """Whether all of it is in the payload."""
        if self.words:
            text = payload.lower()
            if not all(word in text for word in self.words):
                return False
        if not self.conditions:
            return True
        if len(payload) > MAX_DOCUMENT_BYTES:
            return False
        plain = self.values and b"\\" not in payload
        if plain and not all(value in payload for value in self.values):
            return False
        try:
            document = _decode(payload)
            most = MAX_LOOKED // len(self.conditions)
            return all(one.holds(document, most) for one in self.conditions)
        except NOT_JSON:
            return False


def parsed(text: str) -> Search:
    """A search as a person types it; raises InvalidArgument."""
    if len(text) > MAX_CHARACTERS:
        limit = f"it has {len(text)} characters, limit {MAX_CHARACTERS}"
        raise InvalidArgument("search", limit)
    words: list[bytes] = []
    conditions: list[Condition] = []
    for count, found in enumerate(_TERM.finditer(text), 1):
        if count > MAX_TERMS:
            raise InvalidArgument("search", f"it has more than {MAX_TERMS} terms")
        quoted, bare = found.groups()
        condition = None if bare is None else _CONDITION.fullmatch(bare)
        if condition is not None:
            conditions.append(_condition(*condition.groups()))
        else:
            word = re.sub(r"\\(.)", r"\1", quoted) if bare is None else bare
            words.append(word.encode(errors="replace").lower())
    values = [
        one.text.encode()
        for one in conditions
        if one.sign == "=" and one.number is None and one.text.isascii()
    ]
    return Search(
        tuple(word for word in words if word), tuple(conditions), tuple(values)
    )


def _condition(path: str, sign: str, value: str) -> Condition:
    text = value
    if len(value) > 1 and value[0] == value[-1] == '"':
        text = value[1:-1]
    number = None
    if text == value:
        try:
            number = float(value)
        except ValueError:
            number = None
    return Condition(tuple(path.split(".")), sign, text, number)


def _at(document: object, path: tuple[str, ...], most: int) -> Iterator[object]:
    """All values at a place: lists may be meant as a whole, or by index.

    Without recursion: a document that is a thousand lists deep takes no longer than
    one that is flat.
    """
    waiting: list[Iterator[tuple[object, int]]] = [iter([(document, 0)])]
    looked = 0
    while waiting and looked < most:
        one, at = next(waiting[-1], (None, -1))
        looked += 1
        if at < 0:
            waiting.pop()
        elif at == len(path):
            yield one
            if isinstance(one, list):
                yield from islice(one, most - looked)
                looked += len(one)
        else:
            waiting.append(_below(one, path[at], at))


def _below(one: object, name: str, at: int) -> Iterator[tuple[object, int]]:
    """Where a name leads, and how far along the path that is."""
    if isinstance(one, dict):
        return iter([(one[name], at + 1)] if name in one else [])
    if not isinstance(one, list):
        return iter([])
    if not (name.isascii() and name.isdigit()):
        return ((item, at) for item in one)
    index = int(name)
    return iter([(one[index], at + 1)] if index < len(one) else [])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text_of(value: object) -> str | None:
    """A value as one types it; None for what cannot be typed."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return None
