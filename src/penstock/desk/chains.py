"""The desk's view of chains: what caused an event, and what it caused."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.chains import ChainQuestion, Walk
from penstock.chains.walk import ChainStep
from penstock.desk.arguments import Offset
from penstock.desk.verbs import verb
from penstock.desk.views.chains import ChainEvent, ChainPage
from penstock.errors import InvalidArgument

VERB = "chains.show"
# Generations each way, and events of one answer.
DEPTH = 100
MAX_DEPTH = 10_000
EVENTS = 1000
MAX_EVENTS = 10_000
# Of a payload or a key.
PREVIEW_BYTES = 200

Depth = Annotated[int, Meta(ge=0, le=MAX_DEPTH)]
ChainLimit = Annotated[int, Meta(ge=1, le=MAX_EVENTS)]


class ChainDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb(VERB)
    def show(
        self,
        *,
        id: str | None = None,
        topic: str | None = None,
        offset: Offset | None = None,
        depth: Depth = DEPTH,
        limit: ChainLimit = EVENTS,
        direction: Literal["both", "up", "down"] = "both",
        whole: bool = False,
        next: int | None = None,
    ) -> ChainPage:
        """Ancestors and descendants of the events with an id, or of one event.

        Answers come in parts: ask again with ``next``, alone, while there is one.
        Raises UnknownEvent, UnknownTopic, InvalidArgument, WriteFailed.
        """
        chains = self._broker.chains
        if next is not None:
            walk = chains.go_on(next)
            if walk is None:
                raise InvalidArgument(VERB, f"question {next} is over: ask it anew")
            return self._page(next, walk)
        if (id is None) == (topic is None) or (topic is None) != (offset is None):
            raise InvalidArgument(VERB, "say either id, or topic and offset")
        question = ChainQuestion(
            id=id,
            topic=topic or "",
            offset=offset or 0,
            depth=depth,
            limit=limit,
            direction=direction,
            whole=whole,
        )
        return self._page(*chains.ask(question))

    def _page(self, number: int, walk: Walk) -> ChainPage:
        return ChainPage(
            events=[_event(found) for found in walk.take()],
            cut=walk.cut,
            behind=self._broker.chains.behind,
            next=None if walk.done else number,
        )


def _event(found: ChainStep) -> ChainEvent:
    hit = found.hit
    (key,), (payload,) = hit.event.keys(), hit.event.payloads()
    return ChainEvent(
        topic=hit.topic.name,
        offset=hit.event.base_offset,
        id=hit.id,
        timestamp=hit.event.timestamps()[0],
        parent=hit.parent,
        producer=hit.event.producers()[0],
        key=None if key is None else key[:PREVIEW_BYTES],
        payload=payload[:PREVIEW_BYTES],
        payload_bytes=len(payload),
        level=found.level,
        asked=found.asked,
    )
