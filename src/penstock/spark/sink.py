"""Writing rows to topics, each row once: staged by the tasks, stored by one commit.

A **write** is named by a query and an epoch. Every task stages what it has under the
number of its partition and a number that no other try of any task has; what it returns
says which. The commit names the tries that count, and the broker stores their events
and the number of the epoch in one step. So:

- a task that is tried again stages under another number, and only one of them counts;
- an epoch that is written again, because Spark did not note that it was done, is known
  to the broker, and nothing of it is stored;
- a broker that was started again has forgotten what was staged, not what was committed:
  committing then fails, and the epoch has to be written again.

``atomic=false`` publishes at once, for writes that are larger than what a broker may
hold staged: a row that is published again, by another try of its task, is recognised by
its number. That holds if the task has the same rows in the same order then.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.client import Client, connect, lasting
from penstock.client.address import remote
from penstock.errors import (
    BadRow,
    InvalidOption,
    InvalidPayload,
    NotRunning,
    PenstockError,
)
from penstock.spark.options import (
    CONNECTION,
    check_names,
    connection_of,
    whole,
)
from penstock.spark.rows import RowBatch, RowLayout
from penstock.table.connection import BrokerAccess

# Who published it, unless a user logs in.
NAME = "spark"


class SparkConnection(lasting.LastingConnection):
    """Opened when it is first needed; close it, or use it as a context manager."""

    def __init__(self, connection: BrokerAccess) -> None:
        super().__init__(lambda: _opened(connection), connection.retry_s)


def _opened(where: BrokerAccess) -> Client:
    away: NotRunning | None = None
    places = [remote(one, where.tls) for one in where.servers]
    for address in places or (where.path or "",):
        try:
            return connect(address, user=where.user, password=where.secret(), name=NAME)
        except NotRunning as error:
            away = error
    assert away is not None, "there is one address at least"
    raise away


WRITING = ("topic", "atomic", "txnAppId", "txnVersion")
# What is shown of a payload that was refused.
PREVIEW_BYTES = 200
_WORDS = {"true": True, "false": False}
_EVENT = re.compile(r" \(event (\d+) of the batch\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    connection: BrokerAccess
    topic: str | None
    atomic: bool
    app: str | None
    """Name of a write that may be repeated, and its number."""
    version: int | None


@dataclass(frozen=True, slots=True)
class Write:
    """All tasks of one write have this in common."""

    query: str
    epoch: int
    last: bool = False
    """Whether the query has no other: the broker need not remember it for long."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one try of a task has staged, or published."""

    partition: int
    attempt: int
    events: int


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Raises UnknownOption, MissingOption, InvalidOption."""
    check_names(options, CONNECTION + WRITING)
    given = {name.lower(): value for name, value in options.items()}
    atomic = given.get("atomic", "true")
    if atomic.lower() not in _WORDS:
        raise InvalidOption("atomic", atomic, "true or false")
    version = given.get("txnversion")
    if (version is None) != ("txnappid" not in given):
        raise InvalidOption("txnVersion", version, "given together with txnAppId")
    if version is not None and not _WORDS[atomic.lower()]:
        limit = "true where txnVersion is given: that would not be recorded"
        raise InvalidOption("atomic", atomic, limit)
    return SinkOptions(
        connection=connection_of(options),
        topic=given.get("topic"),
        atomic=_WORDS[atomic.lower()],
        app=given.get("txnappid"),
        version=None if version is None else whole("txnVersion", version, at_least=0),
    )


class Sink:
    """How rows of one frame get to topics; travels to the tasks."""

    def __init__(self, options: SinkOptions, frame: RowLayout) -> None:
        self._options = options
        self._frame = frame

    def stage(
        self, write: Write, partition: int, batches: Iterable[pa.RecordBatch]
    ) -> TaskResult:
        """Leave the rows of a task with the broker. Raises BadRow, ServerRefused."""
        attempt, events, number = secrets.randbits(62), 0, 0
        with SparkConnection(self._options.connection) as line:
            for piece in self._pieces(partition, batches):

                def send(
                    client: Client, piece: RowBatch = piece, at: int = number
                ) -> int:
                    place = (write.query, write.epoch, partition, attempt)
                    return client.stage(
                        *place, piece.topic, piece.payloads, piece=at, **piece.columns
                    )

                with _naming(piece, partition):
                    number = line.say(send)
                events += len(piece.payloads)
        return TaskResult(partition, attempt, events)

    def publish(
        self, write: Write, partition: int, batches: Iterable[pa.RecordBatch]
    ) -> TaskResult:
        """Publish the rows of a task. Raises BadRow, ServerRefused."""
        prefix, events = f"{write.query}/{write.epoch}/{partition}/", 0
        with SparkConnection(self._options.connection) as line:
            for piece in self._pieces(partition, batches):

                def send(client: Client, piece: RowBatch = piece) -> None:
                    ids = [f"{prefix}{row}" for row in piece.rows.tolist()]
                    client.publish(
                        piece.topic, piece.payloads, dedup_ids=ids, **piece.columns
                    )

                with _naming(piece, partition):
                    line.say(send)
                events += len(piece.payloads)
        return TaskResult(partition, 0, events)

    def commit(self, write: Write, parts: Iterable[TaskResult]) -> bool:
        """Store what is staged; False if it was done before. Raises ServerRefused.

        A number that the user gave is noted also if there is nothing to store.
        """
        staged = [[part.partition, part.attempt] for part in parts if part.events]
        if not staged and self._options.version is None:
            return True
        # Brokers of before do not know the word.
        ends = {"last": True} if write.last else {}
        with SparkConnection(self._options.connection) as line:
            answer = line.say(
                lambda client: client.ask(
                    "sinks.commit",
                    query=write.query,
                    epoch=write.epoch,
                    parts=staged,
                    **ends,
                )
            )
        return not (isinstance(answer, dict) and answer.get("before"))

    def abort(self, write: Write) -> None:
        """Have the broker forget what is staged; never what is stored.

        Nothing depends on it: a broker that cannot be told forgets by itself.
        """
        with (
            contextlib.suppress(PenstockError),
            SparkConnection(self._options.connection) as line,
        ):
            line.say(
                lambda client: client.ask(
                    "sinks.abort", query=write.query, epoch=write.epoch
                )
            )

    def _pieces(
        self, partition: int, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[RowBatch]:
        row = 0
        for batch in batches:
            yield from self._frame.pieces(batch, partition, row)
            row += batch.num_rows


@contextlib.contextmanager
def _naming(piece: RowBatch, partition: int) -> Iterator[None]:
    """Where the broker does not take a payload: say which row that was."""
    try:
        yield
    except InvalidPayload as error:
        # By its text, as older servers tell no fields.
        found = _EVENT.search(str(error))
        index = int(found[1]) if found else 0
        reason = _EVENT.sub("", str(error))
        value = piece.payloads[index][:PREVIEW_BYTES]
        row = int(piece.rows[index])
        raise BadRow(partition, row, "value", value, reason) from error
