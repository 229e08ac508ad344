"""What the desk tells of schemas, documentation and comments.

Schemas and made-up documents are JSON text: they travel as they are written.
"""

from __future__ import annotations

from penstock.desk.views import View
from penstock.schema.document import Mode


class VersionRow(View, frozen=True, kw_only=True):
    """``type`` is what the publisher calls it."""

    version: int
    type: str
    at_ms: int
    by: str
    bytes: int


class SchemaRow(VersionRow, frozen=True, kw_only=True):
    """A topic that has a schema, and its latest version."""

    topic: str
    mode: Mode


class SchemaPage(View, frozen=True, kw_only=True):
    schemas: list[SchemaRow]
    more: bool


class SchemaView(SchemaRow, frozen=True, kw_only=True):
    """One version of a schema; ``versions`` are all there are."""

    schema: str
    versions: list[VersionRow]


class SchemaDone(View, frozen=True, kw_only=True):
    """``fresh``: the version was made now; else it was the latest one already."""

    topic: str
    version: int
    mode: Mode
    fresh: bool


class ProblemRow(View, frozen=True, kw_only=True):
    path: str
    reason: str


class MisfitRow(ProblemRow, frozen=True, kw_only=True):
    """A payload that does not fit, by its place among those that were given."""

    index: int


class CheckView(View, frozen=True, kw_only=True):
    """``version`` is the registered version; None: the topic has no schema yet."""

    topic: str
    version: int | None
    mode: Mode
    problems: list[ProblemRow]
    misfits: list[MisfitRow]


class ModeView(View, frozen=True, kw_only=True):
    topic: str
    mode: Mode


class MockPage(View, frozen=True, kw_only=True):
    documents: list[str]


class DocumentationView(View, frozen=True, kw_only=True):
    """Markdown; no text: the topic is not documented."""

    topic: str
    text: str
    at_ms: int | None
    by: str


class CommentRow(View, frozen=True, kw_only=True):
    number: int
    at_ms: int
    by: str
    text: str


class CommentPage(View, frozen=True, kw_only=True):
    comments: list[CommentRow]
    more: bool
