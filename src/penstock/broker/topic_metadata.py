"""The metadata of a topic: versions of its schema, its documentation, comments on it.

Metadata never changes: every step makes another one, so that a step can be taken back.
Steps are what the journal holds.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec.structs import replace

from penstock.schema.document import Mode


class Version(msgspec.Struct, array_like=True, frozen=True):
    """One version of a schema, as canonical JSON."""

    number: int
    schema: bytes
    type: str
    """What the publisher calls it."""
    at_ms: int
    by: str


class Documentation(msgspec.Struct, array_like=True, frozen=True):
    """Markdown."""

    text: str
    at_ms: int
    by: str


class Comment(msgspec.Struct, array_like=True, frozen=True):
    number: int
    at_ms: int
    by: str
    text: str


class TopicMetadata(msgspec.Struct, array_like=True, frozen=True):
    mode: Mode = "backward"
    versions: list[Version] = []
    documentation: Documentation | None = None
    comments: list[Comment] = []
    last_comment: int = 0
    """Numbers of comments are never given out again."""
    made_by: str = ""
    """The user who made the topic; empty if that was without a login."""

    @property
    def latest(self) -> Version | None:
        return self.versions[-1] if self.versions else None

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        described = self.documentation
        return (
            sum(len(version.schema) + 64 for version in self.versions)
            + sum(len(comment.text.encode()) + 64 for comment in self.comments)
            + (0 if described is None else len(described.text.encode()))
        )


EMPTY = TopicMetadata()


class Registered(msgspec.Struct, array_like=True, frozen=True, tag=1):
    topic: str
    version: Version


class ModeSet(msgspec.Struct, array_like=True, frozen=True, tag=2):
    topic: str
    mode: Mode


class Described(msgspec.Struct, array_like=True, frozen=True, tag=3):
    topic: str
    documentation: Documentation | None


class Commented(msgspec.Struct, array_like=True, frozen=True, tag=4):
    topic: str
    comment: Comment


class Uncommented(msgspec.Struct, array_like=True, frozen=True, tag=5):
    topic: str
    number: int


class Forgotten(msgspec.Struct, array_like=True, frozen=True, tag=6):
    """The topic is gone; another of its name has another metadata."""

    topic: str


class Made(msgspec.Struct, array_like=True, frozen=True, tag=7):
    """A user has made the topic."""

    topic: str
    by: str


MetadataStep = (
    Registered | ModeSet | Described | Commented | Uncommented | Forgotten | Made
)


def after(metadata: TopicMetadata, step: MetadataStep) -> TopicMetadata:
    """The metadata that a step makes of another."""
    match step:
        case Registered(_, version):
            return replace(metadata, versions=[*metadata.versions, version])
        case ModeSet(_, mode):
            return replace(metadata, mode=mode)
        case Described(_, documentation):
            return replace(metadata, documentation=documentation)
        case Commented(_, comment):
            comments = [*metadata.comments, comment]
            return replace(metadata, comments=comments, last_comment=comment.number)
        case Uncommented(_, number):
            left = [one for one in metadata.comments if one.number != number]
            return replace(metadata, comments=left)
        case Forgotten():
            return EMPTY
        case Made(_, by):
            return replace(metadata, made_by=by)
        case _:
            assert_never(step)
