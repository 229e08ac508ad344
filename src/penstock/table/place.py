"""Where events come from: the files of a data directory, or a broker that is asked.

Both are places: what topics there are, where a time is, and the frames of a range. A
broker that is away is waited for, as long as the option ``retrySeconds`` says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from penstock.client import Client, connect
from penstock.client.address import remote
from penstock.errors import (
    Backlogged,
    ConnectionLost,
    DataLost,
    LimitReached,
    LogClosed,
    NotRunning,
    OffsetOutOfRange,
    QuotaReached,
    ServerRefused,
    UnknownTopic,
    Unreachable,
)
from penstock.log import Batch, Damage, Reader
from penstock.table.connection import BrokerAccess
from penstock.table.extent import Extent

T = TypeVar("T")

logger = logging.getLogger(__name__)

# Of a file at a time: it is looked at again before it has left the processor's caches.
READ_BYTES = 1 << 20
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0


class Place(Protocol):
    def extents(self, names: Sequence[str] | None = None) -> dict[str, Extent]:
        """The topics of these names that there are, or all but Penstock's own."""

    def offset_at(self, topic: str, timestamp_ms: int) -> int:
        """The first offset of that time or later; the end if none is."""

    def batches(
        self, topic: str, start: int, end: int, *, whole: bool = True
    ) -> Iterator[Batch]:
        """All there is of a range. Raises DataLost where there is not all of it.

        Not ``whole``: what cannot be read for damage is left out.
        """

    def ask(self, verb: str, **arguments: object) -> Any:
        """What the broker answers; raises Unreachable where there is none."""

    def close(self) -> None: ...


def open_place(connection: BrokerAccess) -> Place:
    """The files where a path is given, else the broker."""
    if connection.path is not None:
        return DataDirectory(connection)
    return RunningBroker(connection)


def all_that_is_left(place: Place, topic: str, start: int, end: int) -> Iterator[Batch]:
    """What is still there of a range, for queries that go on without the rest.

    Raises DataLost where looking again does not help.
    """
    asked: tuple[int, int] | None = None
    while start < end:
        extent = place.extents([topic]).get(topic)
        if extent is None:
            return
        start, end = max(start, extent.start), min(end, extent.end)
        if start >= end:
            return
        again, asked = asked == (start, end), (start, end)
        try:
            for batch in place.batches(topic, start, end, whole=False):
                start = batch.end_offset
                yield batch
            return
        except DataLost:
            if again and start == asked[0]:
                raise
            # Retention came in between: look again at what there is.


class DataDirectory:
    """A data directory, read without its broker; ``ask`` finds that if it runs."""

    def __init__(self, connection: BrokerAccess) -> None:
        assert connection.path is not None, "what makes it this kind of place"
        self._reader = Reader.open(connection.path)
        self._connection = connection
        self._broker: RunningBroker | None = None
        self._warned: list[Damage] = []

    def close(self) -> None:
        self._reader.close()
        if self._broker is not None:
            self._broker.close()

    def extents(self, names: Sequence[str] | None = None) -> dict[str, Extent]:
        self._reader.refresh()
        there = self._reader.topics()
        wanted = there if names is None else [name for name in names if name in there]
        return {
            name: self._extent(name)
            for name in wanted
            if names is not None or not name.startswith("$")
        }

    def offset_at(self, topic: str, timestamp_ms: int) -> int:
        return self._reader.offset_at(topic, timestamp_ms)

    def batches(
        self, topic: str, start: int, end: int, *, whole: bool = True
    ) -> Iterator[Batch]:
        while start < end:
            try:
                found = self._reader.read(topic, start, READ_BYTES)
            except UnknownTopic:
                raise DataLost(topic, "it was deleted") from None
            except OffsetOutOfRange as error:
                if error.offset > error.end:
                    raise DataLost(topic, _ends(start, error.end)) from None
                raise DataLost(topic, _begins(start, error.start)) from None
            for damage in self._damages(topic, start, end):
                if whole:
                    raise DataLost(topic, f"damaged: {damage}")
                self._warn(topic, damage)
            if not found:
                if self._reader.topic(topic).end_offset >= end:
                    return  # compaction took the last ones
                raise DataLost(
                    topic, _ends(start, self._reader.topic(topic).end_offset)
                )
            start = found[-1].end_offset
            found.reverse()
            while found:
                part = found.pop().before(end)
                if len(part):
                    yield part
                # What was used goes before more is read: memory that has just been
                # used is in the processor's caches.
                del part

    def ask(self, verb: str, **arguments: object) -> Any:
        if self._broker is None:
            # Files can do without: no caller waits for it.
            self._broker = RunningBroker(replace(self._connection, retry_s=0))
        return self._broker.ask(verb, **arguments)

    def _extent(self, name: str) -> Extent:
        topic = self._reader.topic(name)
        waiting = topic.unwritten_bytes
        return Extent(
            start=topic.start_offset,
            end=topic.end_offset,
            bytes=topic.bytes + waiting,
            number=topic.id,
        )

    def _damages(self, topic: str, start: int, end: int) -> Iterator[Damage]:
        for damage in self._reader.damages:
            first, behind = damage.first_offset or 0, damage.end_offset
            if damage.topic == topic and first < end and (behind or end) > start:
                yield damage

    def _warn(self, topic: str, damage: Damage) -> None:
        if damage in self._warned:
            return
        self._warned.append(damage)
        logger.warning(
            "topic %s: damaged: %s, going on without",
            topic,
            damage,
            extra={"action": "data_lost", "topic": topic},
        )


class RunningBroker:
    """A broker that runs; asked again, and connected to again, when it goes away."""

    def __init__(self, connection: BrokerAccess) -> None:
        self._connection = connection
        self._client: Client | None = None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def extents(self, names: Sequence[str] | None = None) -> dict[str, Extent]:
        if names is None:
            return self._all_extents()
        found = {}
        for name in names:
            try:
                row = self.ask("topics.show", name=name)
            except UnknownTopic:
                continue
            found[name] = _extent(row)
        return found

    def offset_at(self, topic: str, timestamp_ms: int) -> int:
        found = self.ask("topics.offset_at", name=topic, timestamp=timestamp_ms)
        return int(found["offset"])

    def batches(
        self, topic: str, start: int, end: int, *, whole: bool = True
    ) -> Iterator[Batch]:
        waiting = _Patience(self._connection)
        while start < end:
            try:
                for part in self._connected().fetch_all(topic, start, end):
                    yield from part.batches
                    start = part.next_offset
                    waiting.over()
                if start < end:
                    raise DataLost(topic, _ends(start, part.end_offset))
            except ServerRefused as error:
                if _passes(error):
                    waiting.wait(error)
                    continue
                raise _lost(topic, start, error) from None
            except (ConnectionLost, NotRunning) as error:
                self.close()
                waiting.wait(error)

    def ask(self, verb: str, **arguments: object) -> Any:
        return self._again(lambda: self._connected().ask(verb, **arguments))

    def _all_extents(self) -> dict[str, Extent]:
        found: dict[str, Extent] = {}
        after, more = "", True
        while more:
            page = self.ask("topics", after=after)
            found |= {row["name"]: _extent(row) for row in page["topics"]}
            more = page["more"]
            after = page["topics"][-1]["name"] if more else ""
        return found

    def _again(self, call: Callable[[], T]) -> T:
        waiting = _Patience(self._connection)
        while True:
            try:
                return call()
            except ServerRefused as error:
                if not _passes(error):
                    raise
                waiting.wait(error)
            except (ConnectionLost, NotRunning) as error:
                self.close()
                waiting.wait(error)

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _connect(self) -> Client:
        """The first server that answers; raises NotRunning of the last that did not."""
        known = self._connection
        assert known.servers or known.path is not None, "one of them is given"
        problem: NotRunning | None = None
        for server in known.servers:
            try:
                return connect(
                    remote(server, known.tls),
                    user=known.user,
                    password=known.secret(),
                    token=known.token,
                    name=known.name,
                )
            except NotRunning as error:
                problem = error
        if problem is not None:
            raise problem
        assert known.path is not None, "there are no servers"
        return connect(
            known.path, user=known.user, password=known.secret(), name=known.name
        )


class _Patience:
    """Pauses that grow, and an end of them."""

    def __init__(self, connection: BrokerAccess) -> None:
        self._where = ",".join(connection.servers) or str(connection.path)
        self._retry_s = connection.retry_s
        self._since_s: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def over(self) -> None:
        """It went well again."""
        self._since_s = None
        self._pause_s = FIRST_PAUSE_S

    def wait(self, error: Exception) -> None:
        """Pause; raises Unreachable after too long."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s >= self._retry_s:
            raise Unreachable(self._where, self._retry_s, str(error)) from error
        time.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)


def _extent(row: dict[str, Any]) -> Extent:
    return Extent(
        start=row["start_offset"],
        end=row["end_offset"],
        bytes=row["bytes"],
        number=row.get("number", 0),
    )


def _passes(error: ServerRefused) -> bool:
    """Whether a server that is asked again later may answer something else."""
    passing = isinstance(error, Backlogged | LimitReached | LogClosed)
    return passing and not isinstance(error, QuotaReached)


def _lost(topic: str, offset: int, error: ServerRefused) -> Exception:
    if isinstance(error, UnknownTopic):
        return DataLost(topic, "it was deleted")
    if isinstance(error, OffsetOutOfRange):
        return DataLost(topic, f"offset {offset} is not there any more: {error}")
    return error


def _begins(wanted: int, start: int) -> str:
    return f"offset {wanted} is not there any more, it begins at {start}"


def _ends(wanted: int, end: int) -> str:
    return f"offset {wanted} is not there any more, it ends at {end}"
