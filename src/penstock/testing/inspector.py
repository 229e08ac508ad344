"""What a test sees of a broker: events, dead letters, failed tries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.broker.broker import Broker
from penstock.delivery import error_log, letters
from penstock.delivery.error_log import FailedTry, decode_failed_try
from penstock.desk.audit_trail import AuditDesk
from penstock.desk.letters import LetterDesk
from penstock.desk.views.letters import LetterView
from penstock.embedded import Event
from penstock.embedded.payload import Codec
from penstock.log import Batch
from penstock.model.event import Event as RawEvent

__all__ = ["FailedTry", "Inspector", "LetterView", "typed"]


class Inspector:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._desk = LetterDesk(broker, AuditDesk(broker))

    def events(self, topic: str, codec: Codec[Any] | None) -> list[Event[Any]]:
        """Every event of a topic; raises UnfitPayload for one that is not its type."""
        return [typed(event, codec) for event in self._stored(topic)]

    def dead_letters(self) -> list[LetterView]:
        """The open ones, the oldest first."""
        return [
            self._desk.show(number=event.offset)
            for event in self._stored(letters.TOPIC)
            if self._broker.letters.verdict(event.offset) is None
        ]

    def errors(self) -> list[FailedTry]:
        """Every failed try, the oldest first."""
        return [
            decode_failed_try(event.payload) for event in self._stored(error_log.TOPIC)
        ]

    def _stored(self, topic: str) -> Iterator[RawEvent]:
        log = self._broker.log
        if not log.has_topic(topic):
            return
        offset = log.topic(topic).start_offset
        batches: list[Batch] = log.read(topic, offset)
        while batches:
            for batch in batches:
                yield from batch.events()
            batches = log.read(topic, batches[-1].end_offset)


def typed(event: RawEvent | Event[Any], codec: Codec[Any] | None) -> Event[Any]:
    """An event as handlers get it; raises UnfitPayload."""
    payload = event.payload
    if codec is not None and isinstance(payload, bytes):
        payload = codec.decode(event.topic, payload)
    values = {name: getattr(event, name) for name in Event.__struct_fields__}
    return Event(**values | {"payload": payload, "headers": dict(event.headers)})
