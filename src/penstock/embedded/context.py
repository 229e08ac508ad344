"""What a handler knows besides the event, and what it may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from penstock.clock import Clock
from penstock.embedded.event import Event
from penstock.embedded.outgoing import ContextOptions, Intent
from penstock.embedded.topic import Topic

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing

T = TypeVar("T")


class Context:
    """The try that is under way.

    What is published through it is stored together with the success of the handler,
    in one step: all of it or nothing, and never twice, however often it is tried.
    """

    __slots__ = (
        "_clock",
        "_publish",
        "_topics",
        "_tracing",
        "deadline_s",
        "events",
        "over",
        "subscriber",
        "tries",
    )

    def __init__(
        self,
        subscriber: str,
        events: list[Event[Any]],
        tries: int,
        deadline_s: float,
        clock: Clock,
        tracing: Tracing | None = None,
    ) -> None:
        self.subscriber = subscriber
        """The domain that handles the event."""
        self.events = events
        self.tries = tries
        """1 for the first try."""
        self.deadline_s = deadline_s
        """When the time of this try is over, in seconds since the epoch."""
        self.over = False
        """Whether the try has ended, or its time has."""
        self._clock = clock
        self._tracing = tracing
        self._publish: list[Intent] | None = None
        self._topics: dict[str, Topic[Any]] | None = None

    @property
    def event(self) -> Event[Any]:
        """The event that is handled; the first, in a batch."""
        return self.events[0]

    @property
    def remaining_s(self) -> float:
        """What is left of the time of this try."""
        return self.deadline_s - self._clock.now_s()

    @overload
    def publish(
        self,
        topic: Topic[T],
        payload: T,
        **more: Unpack[ContextOptions],
    ) -> None: ...

    @overload
    def publish(
        self,
        topic: str,
        payload: object,
        **more: Unpack[ContextOptions],
    ) -> None: ...

    def publish(
        self,
        topic: Topic[Any] | str,
        payload: Any,
        **more: Unpack[ContextOptions],
    ) -> None:
        """Publish with the success of this handler; the parent is its event.

        In a batch the parent is the first event unless it is given. Raises
        UnfitPayload, InvalidName, ReservedName, InvalidBatch.
        """
        if self.over:
            raise RuntimeError("the try is over: what it publishes now would be lost")
        if self._tracing is not None:
            name = topic.name if isinstance(topic, Topic) else topic
            given = more.get("headers")
            more["headers"] = self._tracing.stamped(name, given, self.subscriber)
        if more.get("parent") is None:
            more["parent"] = self.event.id
        intent = Intent.of(topic, payload, self._clock, **more)
        if self._publish is None:
            self._publish = []
        self._publish.append(intent)
        if isinstance(topic, Topic):
            self._topics = {**(self._topics or {}), topic.name: topic}

    def topics(self) -> list[Topic[Any]]:
        """The topics it is to be published to, of those that have a type."""
        return list((self._topics or {}).values())

    def intents(self) -> list[Intent]:
        """What is to be published."""
        return self._publish or []
