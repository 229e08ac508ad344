"""Telling the broker what the payloads of a topic look like."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.embedded.link import Link
from penstock.embedded.topic import Topic
from penstock.errors import TopicExists
from penstock.schema import name_of, schema_of


class TopicBook:
    """The topics whose types the broker has been told of, by this program."""

    def __init__(self, link: Link, by: str) -> None:
        self._link = link
        self._by = by
        self._known: dict[str, tuple[object, object]] = {}

    def knows(self, topic: Topic[Any]) -> bool:
        """Whether it does, and the topic is the one that it was told of."""
        type_, mark = self._known.get(topic.name, (self, None))
        return type_ is topic.codec.type and mark == self._link.mark(topic.name)

    def forget(self, name: object) -> None:
        """A topic is deleted: what was said of it is gone."""
        self._known.pop(str(name), None)

    async def add(self, topic: Topic[Any]) -> None:
        """Tell the broker of a topic, unless it knows; raises IncompatibleSchema."""
        if not self.knows(topic):
            await register(self._link, topic, self._by)
            self._known[topic.name] = topic.codec.type, self._link.mark(topic.name)


async def register(link: Link, topic: Topic[Any], by: str) -> None:
    """Have the schema and the documentation of a topic stored, if they are new.

    Raises IncompatibleSchema if the type was changed in a way it must not be.
    """
    schema = schema_of(topic.codec.type)
    if schema is not None and topic.registers:
        arguments: dict[str, object] = {
            "topic": topic.name,
            "schema": schema.decode(),
            "type": name_of(topic.codec.type),
            "by": by,
        }
        if topic.compatibility is not None:
            arguments["mode"] = topic.compatibility
        await link.ask("schemas.register", arguments)
    if topic.doc:
        await _describe(link, topic, by)


async def ensure_topic(link: Link, name: str) -> None:
    """Have a topic, made now if need be."""
    try:
        await link.ask("topics.create", {"name": name})
    except TopicExists:
        return


async def _describe(link: Link, topic: Topic[Any], by: str) -> None:
    await ensure_topic(link, topic.name)
    known = await link.ask("topics.describe", {"name": topic.name})
    if msgspec.to_builtins(known)["text"] != topic.doc:
        arguments = {"name": topic.name, "text": topic.doc, "by": by}
        await link.ask("topics.describe", arguments)
