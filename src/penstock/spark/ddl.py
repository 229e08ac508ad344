"""A schema as text: ``user STRING, at TIMESTAMP, tags ARRAY<STRING>``.

Spark has its own parser, in Java, which the processes that plan and read cannot reach.
This one knows the types that JSON can be decoded into.
"""

from __future__ import annotations

import json
import re

from pyspark.sql import types as spark

from penstock.errors import InvalidOption

OPTION = "valueSchema"
SIMPLE: dict[str, spark.DataType] = {
    "string": spark.StringType(),
    "boolean": spark.BooleanType(),
    "tinyint": spark.ByteType(),
    "byte": spark.ByteType(),
    "smallint": spark.ShortType(),
    "short": spark.ShortType(),
    "int": spark.IntegerType(),
    "integer": spark.IntegerType(),
    "bigint": spark.LongType(),
    "long": spark.LongType(),
    "float": spark.FloatType(),
    "real": spark.FloatType(),
    "double": spark.DoubleType(),
    "timestamp": spark.TimestampType(),
    "timestamp_ltz": spark.TimestampType(),
    "date": spark.DateType(),
}
DECIMALS = frozenset({"decimal", "dec", "numeric"})
KNOWN = (
    "STRING, BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL(p,s), TIMESTAMP, DATE, ARRAY<…>, "
    "STRUCT<…>, MAP<STRING, …>"
)
# Digits of a decimal, as Spark has it: at most, and where none are given.
MAX_DIGITS = 38
DIGITS = (10, 0)
# Deeper than any payload, and far from what would exhaust the stack.
MAX_NESTING = 50

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|('(?:[^']|'')*')|([<>,:()]))")


def parse(text: str) -> spark.StructType:
    """The fields of a text, or of Spark's own JSON; raises InvalidOption."""
    from_spark = text.lstrip().startswith("{")
    schema = _of_json(text) if from_spark else _Parser(text).schema()
    _check_names(schema, text)
    return spark.StructType(
        [spark.StructField(one.name, relaxed(one.dataType)) for one in schema.fields]
    )


def relaxed(kind: spark.DataType) -> spark.DataType:
    """The type without NOT NULL, at any depth: nothing promises what payloads hold."""
    if isinstance(kind, spark.StructType):
        fields = [(one.name, relaxed(one.dataType)) for one in kind.fields]
        return spark.StructType([spark.StructField(*field) for field in fields])
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(relaxed(kind.elementType))
    if isinstance(kind, spark.MapType):
        return spark.MapType(kind.keyType, relaxed(kind.valueType))
    return kind


def check(field: spark.StructField, text: str) -> None:
    """Raises InvalidOption for a type that JSON cannot be decoded into."""
    pending: list[spark.DataType] = [field.dataType]
    while pending:
        kind = pending.pop()
        if isinstance(kind, spark.StructType):
            pending += [one.dataType for one in kind.fields]
        elif isinstance(kind, spark.ArrayType):
            pending.append(kind.elementType)
        elif isinstance(kind, spark.MapType) and _is_text(kind.keyType):
            pending.append(kind.valueType)
        elif isinstance(kind, spark.DecimalType):
            continue
        elif not any(type(kind) is type(known) for known in SIMPLE.values()):
            limit = f"of types {KNOWN}; {field.name} is {kind.simpleString()}"
            raise InvalidOption(OPTION, text, limit)


def _check_names(kind: spark.DataType, text: str) -> None:
    """Raises InvalidOption for names that Spark cannot tell from each other."""
    if isinstance(kind, spark.ArrayType):
        _check_names(kind.elementType, text)
    elif isinstance(kind, spark.MapType):
        _check_names(kind.valueType, text)
    elif isinstance(kind, spark.StructType):
        seen: dict[str, str] = {}
        for field in kind.fields:
            low = field.name.lower()
            if low in seen:
                limit = f"fields of different names: {seen[low]} and {field.name}"
                raise InvalidOption(OPTION, text, f"{limit} are one to Spark")
            seen[low] = field.name
            _check_names(field.dataType, text)


def _is_text(kind: spark.DataType) -> bool:
    return type(kind) is spark.StringType


def _of_json(text: str) -> spark.StructType:
    try:
        schema = spark.StructType.fromJson(json.loads(text))
    except Exception:  # whatever Spark makes of a document that is none of its own
        limit = "fields such as user STRING, or a schema as Spark writes it"
        raise InvalidOption(OPTION, text, limit) from None
    for field in schema.fields:
        check(field, text)
    return schema


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.wrong(f"a schema: {text[at : at + 20].strip()!r} is none")
            self._tokens.append(found[0].strip())
            at = found.end()
        self._tokens.reverse()

    def wrong(self, limit: str) -> InvalidOption:
        return InvalidOption(OPTION, self._text, limit)

    def schema(self) -> spark.StructType:
        fields = self.fields(0, closing="")
        if not fields:
            raise self.wrong("fields such as user STRING, at TIMESTAMP")
        return spark.StructType(fields)

    def fields(self, depth: int, *, closing: str) -> list[spark.StructField]:
        fields: list[spark.StructField] = []
        while self._tokens and self._tokens[-1] != closing:
            if fields:
                self._expect(",")
            fields.append(self._field(depth))
        if closing:
            self._expect(closing)
        return fields

    def _field(self, depth: int) -> spark.StructField:
        name = self._next("a name")
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        elif not re.fullmatch(r"\w+", name):
            raise self.wrong(f"a schema: {name!r} is no name")
        if self._tokens and self._tokens[-1] == ":":
            self._tokens.pop()
        kind = self._type(name, depth)
        nullable = not self._words("not", "null")
        if self._words("comment"):
            self._next("a comment")
        return spark.StructField(name, kind, nullable)

    def _type(self, name: str, depth: int) -> spark.DataType:
        if depth > MAX_NESTING:
            raise self.wrong(f"nested no deeper than {MAX_NESTING} levels")
        word = self._next(f"a type for {name}").lower()
        if word == "array":
            self._expect("<")
            element = self._type(name, depth + 1)
            self._expect(">")
            return spark.ArrayType(element)
        if word == "struct":
            self._expect("<")
            return spark.StructType(self.fields(depth + 1, closing=">"))
        if word == "map":
            return self._map(name, depth)
        if word in DECIMALS:
            return self._decimal(name)
        if word not in SIMPLE:
            raise self.wrong(f"of types {KNOWN}; {name} is {word.upper()}")
        return SIMPLE[word]

    def _map(self, name: str, depth: int) -> spark.DataType:
        self._expect("<")
        if not _is_text(self._type(name, depth + 1)):
            raise self.wrong(f"of types {KNOWN}; the keys of {name} are no STRING")
        self._expect(",")
        value = self._type(name, depth + 1)
        self._expect(">")
        return spark.MapType(spark.StringType(), value)

    def _decimal(self, name: str) -> spark.DataType:
        digits, behind = DIGITS
        if self._tokens and self._tokens[-1] == "(":
            self._tokens.pop()
            digits = self._number(name)
            if self._tokens and self._tokens[-1] == ",":
                self._tokens.pop()
                behind = self._number(name)
            self._expect(")")
        if not (1 <= digits <= MAX_DIGITS and behind <= digits):
            limit = f"at most DECIMAL({MAX_DIGITS}, {MAX_DIGITS}), and no more digits"
            raise self.wrong(f"of types {limit} behind the point than in all: {name}")
        return spark.DecimalType(digits, behind)

    def _number(self, name: str) -> int:
        word = self._next(f"how many digits {name} has")
        if not word.isdecimal():
            raise self.wrong(f"a schema: {word!r} is no number of digits of {name}")
        return int(word)

    def _words(self, *words: str) -> bool:
        """Whether these words come next; then they are taken."""
        count = len(words)
        found = tuple(token.lower() for token in self._tokens[-count:][::-1])
        if found != words:
            return False
        del self._tokens[-count:]
        return True

    def _expect(self, sign: str) -> None:
        found = self._next(repr(sign))
        if found != sign:
            raise self.wrong(f"a schema: {sign!r} is missing in front of {found!r}")

    def _next(self, what: str) -> str:
        if not self._tokens:
            raise self.wrong(f"a schema: it ends where {what} is missing")
        return self._tokens.pop()
