"""The desk's schemas: what payloads of a topic look like, version by version."""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.broker.names import accepted_topic
from penstock.broker.topic_metadata import Version
from penstock.desk.arguments import By, Limit
from penstock.desk.verbs import Promise, verb
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.schemas import (
    CheckView,
    MisfitRow,
    MockPage,
    ModeView,
    ProblemRow,
    SchemaDone,
    SchemaPage,
    SchemaRow,
    SchemaView,
    VersionRow,
)
from penstock.errors import InvalidArgument, TooLarge, TooMuchWork
from penstock.schema import Checker, Mode, canonical, mock, parsed

# Made up while all clients wait; one that wants more takes the schema and makes them.
MAX_MOCKS = 100
MAX_MOCK_BYTES = 1 << 20
# Payloads that are checked, and those that do not fit, in one answer.
MAX_PAYLOADS = 1000
MAX_PAYLOAD_BYTES = 1 << 20
MAX_MISFITS = 100

Mocks = Annotated[int, Meta(ge=1, le=MAX_MOCKS)]
Payloads = Annotated[list[bytes], Meta(max_length=MAX_PAYLOADS)]
VersionNumber = Annotated[int, Meta(ge=1)]
TypeName = Annotated[str, Meta(max_length=200)]


class SchemaDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_topic = broker.registry

    @verb("schemas")
    def schemas(self, *, after: str = "", limit: Limit = MAX_ROWS) -> SchemaPage:
        """Topics that have a schema by name, behind ``after``."""
        found = [topic for topic in self._by_topic.gates if topic > after]
        rows = [self._row(topic) for topic in nsmallest(limit, found)]
        return SchemaPage(schemas=rows, more=len(found) > limit)

    @verb("schemas.show")
    def schema(self, *, topic: str, version: VersionNumber | None = None) -> SchemaView:
        """A version of a schema, or the latest one; raises UnknownSchema."""
        found = self._by_topic.version(topic, version)
        return SchemaView(
            **msgspec.structs.asdict(_version(found)),
            topic=topic,
            mode=self._by_topic[topic].mode,
            schema=found.schema.decode(),
            versions=[_version(one) for one in self._by_topic[topic].versions],
        )

    @verb("schemas.register", Promise.STORED)
    def register(
        self,
        *,
        topic: str,
        schema: object,
        type: TypeName = "",
        mode: Mode | None = None,
        by: By = "",
    ) -> SchemaDone:
        """Have a schema be the latest version; the topic is made if need be.

        ``mode`` holds for this version and those that follow. Raises InvalidSchema,
        IncompatibleSchema, TooLarge, LimitReached, InvalidName, ReservedName.
        """
        self._broker.check_topic(topic)
        text = self._by_topic.accepted(topic, schema, mode)  # make no topic in vain
        if not self._broker.log.has_topic(topic):
            self._broker.create_topic(topic)
        if mode is not None:
            self._by_topic.set_mode(topic, mode)
        before = self._by_topic[topic].latest
        version = self._by_topic.register(
            topic, text, type_=type, at_ms=self._broker.log.now_ms(), by=by
        )
        return SchemaDone(
            topic=topic,
            version=version.number,
            mode=self._by_topic[topic].mode,
            fresh=version is not before,
        )

    @verb("schemas.check")
    def check(
        self,
        *,
        topic: str,
        schema: object = None,
        mode: Mode | None = None,
        payloads: Payloads | None = None,
    ) -> CheckView:
        """Whether a schema could follow, and whether payloads fit it.

        Without a schema: whether they fit the registered one. Raises UnknownSchema,
        InvalidSchema, TooLarge, TooMuchWork.
        """
        if schema is None and not payloads:
            raise InvalidArgument("schemas.check", "there is nothing to check")
        _check_payloads(payloads or [])
        metadata = self._by_topic[topic]
        if schema is None:
            text, problems = self._by_topic.version(topic).schema, []
        else:
            problems = self._by_topic.problems(topic, schema, mode)
            text = canonical(parsed(schema))
        misfits = Checker(text).misfits(payloads or ())
        return CheckView(
            topic=topic,
            version=None if metadata.latest is None else metadata.latest.number,
            mode=mode or metadata.mode,
            problems=[ProblemRow(path=path, reason=text) for path, text in problems],
            misfits=[
                MisfitRow(index=index, path=found.path, reason=found.reason)
                for index, found in islice(misfits, MAX_MISFITS)
            ],
        )

    @verb("schemas.mock")
    def mock(
        self,
        *,
        topic: str,
        version: VersionNumber | None = None,
        count: Mocks = 1,
        seed: int | str = 0,
    ) -> MockPage:
        """Made-up documents that fit, fewer if they take too long.

        Raises UnknownSchema, UnsupportedSchema, TooMuchWork.
        """
        schema = parsed(self._by_topic.version(topic, version).schema)
        documents: list[str] = []
        room = MAX_MOCK_BYTES
        try:
            for document in mock(schema, seed, count, self._by_topic.effort()):
                documents.append(msgspec.json.encode(document).decode())
                room -= len(documents[-1])
                if room <= 0:
                    break
        except TooMuchWork:
            if not documents:
                raise
        return MockPage(documents=documents)

    @verb("schemas.mode", Promise.STORED)
    def mode(self, *, topic: str, mode: Mode | None = None, by: By = "") -> ModeView:
        """Say how versions have to agree, or ask for it; raises UnknownTopic."""
        self._broker.log.topic(accepted_topic(topic))
        if mode is not None:
            self._by_topic.set_mode(topic, mode)
        return ModeView(topic=topic, mode=self._by_topic[topic].mode)

    def _row(self, topic: str) -> SchemaRow:
        metadata = self._by_topic[topic]
        version = _version(metadata.versions[-1])
        return SchemaRow(
            **msgspec.structs.asdict(version), topic=topic, mode=metadata.mode
        )


def _check_payloads(payloads: list[bytes]) -> None:
    """Of several payloads at once; one alone is as large as may be published."""
    size = sum(map(len, payloads))
    if len(payloads) > 1 and size > MAX_PAYLOAD_BYTES:
        raise TooLarge("the payloads", size, MAX_PAYLOAD_BYTES, "the limit here")


def _version(one: Version) -> VersionRow:
    return VersionRow(
        version=one.number,
        type=one.type,
        at_ms=one.at_ms,
        by=one.by,
        bytes=len(one.schema),
    )
