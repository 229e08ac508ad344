"""The desk's notes on topics: documentation in Markdown, and comments."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.broker.names import accepted_topic
from penstock.broker.topic_metadata import Comment
from penstock.desk.arguments import By, Limit, Number
from penstock.desk.verbs import Promise, verb
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.schemas import CommentPage, CommentRow, DocumentationView

Text = Annotated[str, Meta(min_length=1)]


class NoteDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_topic = broker.registry

    @verb("topics.describe", Promise.STORED)
    def describe(
        self, *, name: str, text: str | None = None, by: By = ""
    ) -> DocumentationView:
        """Document a topic, or ask for its documentation; no text removes it.

        Raises UnknownTopic, ReservedName, TooLarge, LimitReached.
        """
        self._known(name)
        if text is not None:
            at_ms = self._broker.log.now_ms()
            self._by_topic.describe(name, text, at_ms=at_ms, by=by)
        found = self._by_topic[name].documentation
        return DocumentationView(
            topic=name,
            text="" if found is None else found.text,
            at_ms=None if found is None else found.at_ms,
            by="" if found is None else found.by,
        )

    @verb("topics.comment", Promise.STORED)
    def comment(self, *, name: str, text: Text, by: By = "") -> CommentRow:
        """Add a comment; raises UnknownTopic, ReservedName, TooLarge, LimitReached."""
        self._known(name)
        at_ms = self._broker.log.now_ms()
        return _row(self._by_topic.comment(name, text, at_ms=at_ms, by=by))

    @verb("topics.comments")
    def comments(
        self, *, name: str, after: Number = 0, limit: Limit = MAX_ROWS
    ) -> CommentPage:
        """Comments on a topic by number, behind ``after``; raises UnknownTopic."""
        self._known(name)
        found = [one for one in self._by_topic[name].comments if one.number > after]
        return CommentPage(
            comments=[_row(one) for one in found[:limit]], more=len(found) > limit
        )

    @verb("topics.uncomment", Promise.STORED)
    def uncomment(self, *, name: str, number: Number, by: By = "") -> CommentRow:
        """Remove a comment; raises UnknownTopic, UnknownComment."""
        self._known(name)
        return _row(self._by_topic.uncomment(name, number))

    def _known(self, name: str) -> None:
        self._broker.log.topic(accepted_topic(name))


def _row(one: Comment) -> CommentRow:
    return CommentRow(number=one.number, at_ms=one.at_ms, by=one.by, text=one.text)
