"""Metadata of topics: schemas, documentation, comments, and who made them.

Metadata belongs to its topic: it goes when the topic goes, also if that is because its
creation failed. Publishing is checked against the latest version of the schema from the
moment it is registered.

Crash promise: precious. Replayed from the journal, carried by every checkpoint. What a
failed group held is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Sequence, Set
from time import monotonic

import msgspec

from penstock.broker.options import BrokerOptions
from penstock.broker.topic_metadata import (
    EMPTY,
    Comment,
    Commented,
    Described,
    Documentation,
    Forgotten,
    Made,
    MetadataStep,
    ModeSet,
    Registered,
    TopicMetadata,
    Uncommented,
    Version,
    after,
)
from penstock.delivery.kept import Kept
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.errors import (
    IncompatibleSchema,
    InvalidPayload,
    LimitReached,
    TooLarge,
    UnknownComment,
    UnknownSchema,
)
from penstock.log import Record
from penstock.schema import (
    Checker,
    Effort,
    Incompatibility,
    Mode,
    canonical,
    check_limits,
    judged,
    parsed,
    weight_of,
)

# A schema that people have written may be so much larger by its spaces.
_SPACED = 4

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[MetadataStep]).decode
_decode_metadata = msgspec.msgpack.Decoder(dict[str, TopicMetadata]).decode


class Gate:
    """Lets payloads into a topic that fit the latest version of its schema."""

    __slots__ = ("_checker", "_topic", "version")

    def __init__(self, topic: str, version: Version) -> None:
        self.version = version
        self._topic = topic
        self._checker = Checker(version.schema)

    def check(self, payloads: Sequence[bytes]) -> None:
        """Raises InvalidPayload for the first that does not fit."""
        for index, found in self._checker.misfits(payloads):
            raise self._refusal(index, *found)

    def refused(self, payloads: Sequence[bytes]) -> dict[int, InvalidPayload]:
        """All that do not fit, by index."""
        return {
            index: self._refusal(index, *found)
            for index, found in self._checker.misfits(payloads)
        }

    def _refusal(self, index: int, path: str, reason: str) -> InvalidPayload:
        return InvalidPayload(self._topic, index, path, reason, self.version.number)


class TopicRegistry(Kept):
    """Owner of the metadata' records."""

    kind = 262

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        self._by_topic: dict[str, TopicMetadata] = {}
        self._bytes = 0
        self._steps: Unconfirmed[tuple[MetadataStep, TopicMetadata]] = Unconfirmed()
        self._makers: dict[str, set[str]] = {}
        """The topics that each user has made."""
        self.gates: dict[str, Gate] = {}
        """Of the topics that have a schema."""

    @property
    def urgent(self) -> bool:
        return bool(self._steps)

    def __getitem__(self, topic: str) -> TopicMetadata:
        """The metadata of a topic; an empty one if there is none."""
        return self._by_topic.get(topic, EMPTY)

    def version(self, topic: str, number: int | None = None) -> Version:
        """A version of a schema, or the latest one; raises UnknownSchema."""
        for version in reversed(self[topic].versions):
            if number in (None, version.number):
                return version
        raise UnknownSchema(topic, number)

    def refused(
        self, topic: str, payloads: Sequence[bytes]
    ) -> dict[int, InvalidPayload]:
        """Payloads that do not fit the topic's schema, by index."""
        gate = self.gates.get(topic)
        return {} if gate is None else gate.refused(payloads)

    def made_by(self, user: str) -> Set[str]:
        """The topics that this user has made, of those that there are."""
        return self._makers.get(user, frozenset())

    def makers(self) -> KeysView[str]:
        """Users who have made a topic that is there."""
        return self._makers.keys()

    # Steps

    def make(self, topic: str, by: str) -> None:
        """A user has made the topic, in the group that is open now."""
        self._step(Made(topic, by))

    def problems(
        self, topic: str, schema: object, mode: Mode | None = None
    ) -> list[Incompatibility]:
        """What keeps a schema from being the next version.

        Raises InvalidSchema, TooLarge, TooMuchWork.
        """
        metadata = self[topic]
        document = parsed(self._text(schema))
        check_limits(document, self._options.max_schema_weight)
        if metadata.latest is None or metadata.latest.schema == canonical(document):
            return []
        latest = parsed(metadata.latest.schema)
        return judged(mode or metadata.mode, document, latest, self.effort())

    def weight(self, schema: object) -> int:
        """What a schema weighs; raises InvalidSchema, TooLarge."""
        return weight_of(parsed(self._text(schema)))

    def effort(self) -> Effort:
        """What one question about a schema may take."""
        options = self._options
        return Effort(options.max_schema_steps, options.max_schema_s, monotonic)

    def accepted(self, topic: str, schema: object, mode: Mode | None = None) -> bytes:
        """A schema that may be the next version, as canonical JSON.

        Raises InvalidSchema, IncompatibleSchema, TooLarge, TooMuchWork.
        """
        text = self._text(schema)
        latest = self[topic].latest
        found = self.problems(topic, text, mode)
        if found and latest is not None:
            pairs = [(path, reason) for path, reason in found]
            wanted = mode or self[topic].mode
            raise IncompatibleSchema(topic, latest.number, wanted, pairs)
        return text

    def _text(self, schema: object) -> bytes:
        """As canonical JSON; what is too large is not even read."""
        limit = self._options.max_schema_bytes
        if isinstance(schema, bytes | str) and len(schema) > _SPACED * limit:
            raise TooLarge("the schema", len(schema), limit, "max_schema_bytes")
        text = canonical(parsed(schema))
        _limit("the schema", text, limit, "max_schema_bytes")
        return text

    def register(
        self, topic: str, schema: object, *, type_: str, at_ms: int, by: str
    ) -> Version:
        """Have a schema be the latest version; if it is already, that one."""
        text = self.accepted(topic, schema)
        metadata = self[topic]
        if metadata.latest is not None and metadata.latest.schema == text:
            return metadata.latest
        most = self._options.max_schema_versions
        if len(metadata.versions) >= most:
            what = f"versions of the schema of {topic}"
            raise LimitReached(what, most, "max_schema_versions")
        self._make_room(len(text))
        number = len(metadata.versions) + 1
        version = Version(number, text, type_, at_ms, by)
        self._step(Registered(topic, version))
        return version

    def set_mode(self, topic: str, mode: Mode) -> None:
        """Say how the next versions have to agree with the latest one."""
        if self[topic].mode != mode:
            self._step(ModeSet(topic, mode))

    def describe(self, topic: str, text: str, *, at_ms: int, by: str) -> None:
        """Document a topic in Markdown; no text removes what there is."""
        known = self[topic].documentation
        said = known.text if known is not None else ""
        if text == said:
            return
        data, limit = text.encode(), self._options.max_documentation_bytes
        _limit("the documentation", data, limit, "max_documentation_bytes")
        self._make_room(len(data) - len(said.encode()))
        new = Documentation(text, at_ms, by) if text else None
        self._step(Described(topic, new))

    def comment(self, topic: str, text: str, *, at_ms: int, by: str) -> Comment:
        """Add a comment; raises TooLarge, LimitReached."""
        options, data = self._options, text.encode()
        _limit("the comment", data, options.max_comment_bytes, "max_comment_bytes")
        if len(self[topic].comments) >= options.max_comments:
            what = f"comments on {topic}"
            raise LimitReached(what, options.max_comments, "max_comments")
        self._make_room(len(data))
        comment = Comment(self[topic].last_comment + 1, at_ms, by, text)
        self._step(Commented(topic, comment))
        return comment

    def uncomment(self, topic: str, number: int) -> Comment:
        """Remove a comment; raises UnknownComment."""
        for comment in self[topic].comments:
            if comment.number == number:
                self._step(Uncommented(topic, number))
                return comment
        raise UnknownComment(topic, number)

    def forget(self, topic: str) -> None:
        """Drop the metadata of a deleted topic, before another one gets its name."""
        if topic in self._by_topic:
            self._step(Forgotten(topic))

    def drop_orphans(self, topics: Iterable[str]) -> None:
        """Drop the metadata of all topics but these."""
        for topic in self._by_topic.keys() - set(topics):
            self.forget(topic)

    def confirmed(self) -> None:
        """What the committed group changed stays so."""
        self._steps.confirm()

    def _make_room(self, size: int) -> None:
        limit = self._options.max_metadata_bytes
        if self._bytes + size > limit:
            raise LimitReached(
                "bytes of metadata of topics", limit, "max_metadata_bytes"
            )

    def _step(self, step: MetadataStep) -> None:
        before = self[step.topic]
        self._steps.add((step, before))
        self._put(step.topic, after(before, step))

    def _put(self, topic: str, metadata: TopicMetadata) -> None:
        before = self[topic]
        self._bytes += metadata.size - before.size
        if metadata.made_by != before.made_by:
            self._note_maker(topic, before.made_by, metadata.made_by)
        if metadata == EMPTY:
            self._by_topic.pop(topic, None)
        else:
            self._by_topic[topic] = metadata
        gate = self.gates.get(topic)
        if metadata.latest is None:
            self.gates.pop(topic, None)
        elif gate is None or gate.version != metadata.latest:
            self.gates[topic] = Gate(topic, metadata.latest)

    def _note_maker(self, topic: str, before: str, now: str) -> None:
        if before:
            self._makers[before].discard(topic)
            if not self._makers[before]:
                del self._makers[before]
        if now:
            self._makers.setdefault(now, set()).add(topic)

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        closed = self._steps.close()
        return [(_encode([step for step, _ in closed]), True)] if closed else []

    def taken_back(self) -> None:
        lost = self._steps.take_back()
        for step, before in lost:
            self._put(step.topic, before)
        for step, _ in lost[::-1]:
            if isinstance(step, Forgotten):  # the topic is gone all the same
                self.forget(step.topic)

    def snapshot(self) -> bytes:
        return _encode(self._by_topic)

    def restore(self, snapshot: bytes) -> None:
        for topic, metadata in _decode_metadata(snapshot).items():
            self._put(topic, metadata)

    def replay(self, record: Record) -> None:
        for step in _decode(record.data):
            self._put(step.topic, after(self[step.topic], step))


def _limit(what: str, data: bytes, limit: int, setting: str) -> None:
    if len(data) > limit:
        raise TooLarge(what, len(data), limit, setting)
