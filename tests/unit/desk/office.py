"""A broker with a desk: topics, subscribers that fail on demand, and a disk."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from penstock.broker.broker import Broker
from penstock.clock import ManualClock
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.desk.desk import Desk
from penstock.errors import WriteFailed
from penstock.log import Columns, Log
from penstock.model.failure import refused
from penstock.model.policy import Policy
from tests.unit.log.faults import FaultyFiles


class Outlet:
    """A connection that remembers why its subscription ended."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        raise AssertionError("nobody speaks QoS 2 here")

    def moved(self, consumer: Consumer) -> None: ...

    def ended(self, consumer: Consumer, reason: str) -> None:
        self.reasons.append(reason)


class Office:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.files = FaultyFiles()
        self._folder = folder
        self._open()

    def _open(self) -> None:
        open_log = partial(
            Log.open, self._folder, files=self.files, clock=self.clock, entropy=bytes
        )
        self.broker = Broker(open_log)
        self.desk = Desk(self.broker)

    def restart(self) -> None:
        """A crash: only what was committed is left."""
        self.broker.log.abandon()
        self._open()

    def commit(self) -> None:
        self.broker.log.commit()

    def fail_commit(self) -> None:
        self.files.fail("write", "journal")
        with suppress(WriteFailed):
            self.commit()

    def publish(
        self, topic: str, *payloads: bytes, priorities: list[int] | None = None
    ) -> None:
        columns = Columns(payloads, int(self.now_s * 1000), priorities=priorities)
        self.broker.publish(topic, columns)
        self.commit()

    def subscribe(
        self, name: str, topic: str, start: str | int = "earliest", **policy: Any
    ) -> Consumer:
        rules = Policy(**{"window": 10, **policy})
        one = self.broker.subscribe(name, topic, rules, start)
        return self.broker.attach(one, Outlet())

    def take(self, consumer: Consumer) -> list[tuple[int, int]]:
        """What a consumer gets now: offset and try of each event."""
        return [
            (portion.page.batch.offset_of(index), portion.tries)
            for portion in self.broker.take(consumer, self.now_s, 100)
            for index in range(portion.lo, portion.hi)
        ]

    def bury(self, consumer: Consumer, error: str = "broken") -> None:
        """Everything a consumer may take now becomes a dead letter."""
        for offset, _ in self.take(consumer):
            self.broker.refuse(consumer, offset, refused(error), self.now_s)
        self.commit()

    def raw_letter(self, raw: bytes = b"junk", reason: str = "no JSON") -> None:
        self.broker.dead_letter(gateway="json", reason=reason, raw=raw)
        self.commit()

    @property
    def now_s(self) -> float:
        return self.clock.now_s()
