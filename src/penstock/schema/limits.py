"""What a schema has to stay below before it is worked with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.errors import InvalidSchema, TooMuchWork
from penstock.schema.check import MAX_PATTERN_BYTES, compiled
from penstock.schema.document import Schema
from penstock.schema.weight import weight_of

# Each may take milliseconds to compile.
MAX_PATTERNS = 100


def check_limits(document: Schema, max_weight: int) -> None:
    """Whether a schema is one, and not too heavy; raises InvalidSchema, TooMuchWork."""
    weight = weight_of(document)
    if weight > max_weight:
        limit = f"{max_weight} checks of one place"
        raise TooMuchWork(limit, "broker.max_schema_weight")
    patterns = len(set(_patterns(document)))
    if patterns > MAX_PATTERNS:
        raise InvalidSchema("$", f"has {patterns} patterns, limit {MAX_PATTERNS}")
    compiled(document, MAX_PATTERN_BYTES)


def _patterns(value: Any) -> Iterator[str]:
    """Whatever may be a pattern; examples that look like one do no harm."""
    if isinstance(value, list):
        for one in value:
            yield from _patterns(one)
    elif isinstance(value, dict):
        if isinstance(own := value.get("pattern"), str):
            yield own
        if isinstance(names := value.get("patternProperties"), dict):
            yield from names
        for one in value.values():
            yield from _patterns(one)
