"""What a program asks of a broker, whether it is in the process or a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from penstock.clock import Clock
from penstock.embedded.job import Job
from penstock.embedded.outgoing import Intent, Stored
from penstock.embedded.topic import Topic
from penstock.model.failure import Failure

if TYPE_CHECKING:
    from penstock.embedded.runner import Runner


class Link(Protocol):
    clock: Clock

    async def publish(self, intent: Intent) -> Stored:
        """Publish one event; it is on disk when this returns."""

    async def publish_many(self, intents: list[Intent]) -> list[Stored]:
        """Publish events; all are on disk when this returns."""

    async def subscribe(self, runner: Runner) -> Channel:
        """Have the events of a handler's topic handed to its runner."""

    async def ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        """Ask the desk; what it changed is on disk when this returns."""

    def drop(self, runner: Runner) -> None:
        """Have nothing more to do with a handler that was closed."""

    def mark(self, topic: str) -> object:
        """Another one when the topic is deleted or made anew, as far as is known."""

    async def settled(self, runners: list[Runner]) -> bool:
        """Whether nothing is left to do for these handlers."""

    async def turn(self) -> None:
        """Return when something may have changed."""

    async def close(self) -> None:
        """Store what was begun, and let go."""


class Channel(Protocol):
    """The subscription of a handler, as the handler's side sees it."""

    def finish(self, jobs: list[Job], intents: list[Intent]) -> None:
        """Settle events, and publish with it what their handler wants to."""

    def refuse(self, job: Job, failure: Failure, *, final: bool) -> bool:
        """This try has failed; ``final``: there shall be no other.

        True: the runner is told by ``passed`` when an event is given up for good.
        """

    def put_back(self, jobs: list[Job]) -> None:
        """These were never begun: another consumer, or later, without a try counted."""

    def wake(self) -> None:
        """There is room for more events."""

    def owes(self, offset: int) -> bool:
        """Whether an event may still come again."""

    async def close(self) -> None:
        """Leave the subscription, its position kept."""


class KnownTypes(Protocol):
    """The topics whose types the broker knows."""

    def knows(self, topic: Topic[Any]) -> bool: ...

    async def add(self, topic: Topic[Any]) -> None: ...
