"""Against a real PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from penstock.cdc.pgoutput import Begin, CommitMessage, Insert, Relation, decode, lsn_of
from penstock.cdc.replication import (
    DATA,
    HEAD_BYTES,
    KEEPALIVE,
    Replication,
    position_of,
)
from penstock.cdc.slot import end_of_log, have_publication, have_slot

NAME = "penstock_shop"


@pytest.fixture
def database(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        have_publication(connection, NAME, [("public", "t")])
        yield connection


@pytest.fixture
def stream(
    database: psycopg.Connection[Any], postgres_database: str
) -> Iterator[Replication]:
    start = have_slot(database, postgres_database, NAME, None)
    stream = Replication(postgres_database, NAME, lsn_of(start.end))
    yield stream
    stream.close()


def until(stream: Replication, kind: int) -> bytes:
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        data = stream.next()
        if data is None:
            stream.wait(0.5)
        elif data[0] == kind:
            return data
    raise AssertionError("nothing came")


def test_messages_come_in_their_order(
    stream: Replication, database: psycopg.Connection[Any]
) -> None:
    database.execute("INSERT INTO t VALUES (1)")

    found = [until(stream, DATA) for _ in range(4)]

    kinds = [type(decode(data[HEAD_BYTES:])) for data in found]
    assert kinds == [Begin, Relation, Insert, CommitMessage]


def test_whoever_tells_is_answered(
    stream: Replication, database: psycopg.Connection[Any]
) -> None:
    end = end_of_log(database)
    stream.tell(0)

    while position_of(until(stream, KEEPALIVE)) < end:
        stream.tell(0)


def test_a_slot_has_one_reader(stream: Replication, postgres_database: str) -> None:
    with pytest.raises(psycopg.errors.ObjectInUse, match="is active for PID"):
        Replication(postgres_database, NAME, 0)


def test_a_slot_that_is_not_there_is_an_error(postgres_database: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject):
        Replication(postgres_database, "penstock_nothing", 0)


def test_an_end_of_the_stream_is_an_error(
    stream: Replication, database: psycopg.Connection[Any]
) -> None:
    database.execute(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
        " WHERE database = current_database()"
    )

    with pytest.raises(psycopg.OperationalError):
        until(stream, 0)
