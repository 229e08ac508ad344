"""Where commands take a schema from: a file, standard input, or a Python type."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import NamedTuple

from penstock.cli.refusal import Refusal
from penstock.schema import canonical, name_of, parsed, schema_of

# Far more than any server takes.
MAX_BYTES = 16 << 20


class Given(NamedTuple):
    """A schema, and what its type is called."""

    schema: bytes
    type: str


def given_schema(text: str) -> Given:
    """The schema that an argument names; raises Refusal, InvalidSchema."""
    if text == "-":
        return Given(canonical(parsed(sys.stdin.buffer.read(MAX_BYTES))), "")
    path = Path(text)
    if path.is_file() or ":" not in text:
        with path.open("rb") as file:
            return Given(canonical(parsed(file.read(MAX_BYTES))), "")
    return _of_type(text)


def _of_type(text: str) -> Given:
    module, _, name = text.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as "python -m" has it
    try:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        hint = "say it as FILE, - or MODULE:TYPE, like shop.events:Order"
        raise Refusal(f"{text}: {error}", hint) from error
    schema = schema_of(found)
    if schema is None:
        raise Refusal(f"{text} is raw bytes: it has no schema")
    return Given(schema, name_of(found))
