from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StringType, StructField, StructType

from penstock.client import connect
from penstock.errors import InvalidOption, ServerRefused, UnfitFrame
from penstock.spark import writer
from penstock.spark.writer import BatchWriter, StreamWriter, Written
from tests.local_server import LocalServer, local_server

SCHEMA = StructType([StructField(name, StringType()) for name in ("value", "id")])


class Task:
    """What Spark tells a task."""

    def __init__(self, partition: int, query: str = "", epoch: str = "") -> None:
        self._partition = partition
        self._properties = {"sql.streaming.queryId": query}
        self._properties["streaming.sql.batchId"] = epoch

    def partitionId(self) -> int:
        return self._partition

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture
def options(server: LocalServer) -> dict[str, str]:
    return {"path": str(server.data), "topic": "t", "retrySeconds": "5"}


@pytest.fixture
def in_task(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Task]]:
    """The task that runs is the last of this list."""
    tasks: list[Task] = []
    monkeypatch.setattr(TaskContext, "get", lambda: tasks[-1])
    yield tasks


def rows(*ids: str) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"value": [f"v {id_}" for id_ in ids], "id": list(ids)})


def stored(server: LocalServer) -> list[str]:
    with connect(server.data) as client:
        batches = client.fetch("t", 0, 1000).batches
        return [id_ for batch in batches for id_ in batch.ids()]


def batch(options: dict[str, str]) -> BatchWriter:
    return writer.batch_writer(options, SCHEMA, overwrite=False)


def stream(options: dict[str, str]) -> StreamWriter:
    return writer.stream_writer(options, SCHEMA)


def copied(message: Written) -> Written:
    found = pickle.loads(pickle.dumps(message))
    assert isinstance(found, Written)
    return found


def test_a_frame_is_stored_by_its_commit(
    server: LocalServer, options: dict[str, str], in_task: list[Task]
) -> None:
    made = batch(options)
    messages = []
    for partition, id_ in enumerate("ab"):
        in_task.append(Task(partition))
        messages.append(copied(pickle.loads(pickle.dumps(made)).write(rows(id_))))

    pickle.loads(pickle.dumps(made)).commit(messages)

    assert stored(server) == ["a", "b"]


def test_a_frame_that_is_given_up_is_not_stored(
    server: LocalServer, options: dict[str, str], in_task: list[Task]
) -> None:
    made = batch(options)
    in_task.append(Task(0))
    message = made.write(rows("a"))

    made.abort([message, None])

    with pytest.raises(ServerRefused, match="is not staged"):
        made.commit([message])


def test_two_writes_are_two(
    server: LocalServer, options: dict[str, str], in_task: list[Task]
) -> None:
    in_task.append(Task(0))
    for _ in range(2):
        made = batch(options)
        made.commit([made.write(rows("a"))])

    assert stored(server) == ["a", "a"]


def test_a_write_with_a_name_is_stored_once(
    server: LocalServer, options: dict[str, str], in_task: list[Task]
) -> None:
    in_task.append(Task(0))
    for version in ("1", "1", "2", "1"):
        made = batch({**options, "txnAppId": "job", "txnVersion": version})
        made.commit([made.write(rows(version))])

    assert stored(server) == ["1", "2"]


def test_what_is_not_atomic_is_there_at_once(
    server: LocalServer, options: dict[str, str], in_task: list[Task]
) -> None:
    made = batch({**options, "atomic": "false"})
    in_task.append(Task(0))
    message = made.write(rows("a"))
    made.write(rows("a", "b"))

    made.abort([message])
    made.commit([message])

    assert stored(server) == ["a", "b"]


def test_topics_are_not_overwritten(options: dict[str, str]) -> None:
    with pytest.raises(UnfitFrame, match="use mode append"):
        writer.batch_writer(options, SCHEMA, overwrite=True)


def test_an_epoch_that_comes_again_is_not_stored_again(
    server: LocalServer, options: dict[str, str], in_task: list[Task]
) -> None:
    for epoch in ("0", "0", "1"):
        in_task.append(Task(0, "q", epoch))
        messages = [copied(stream(options).write(rows(epoch)))]
        stream(options).commit(messages, int(epoch))
        stream(options).abort(messages, int(epoch))

    assert stored(server) == ["0", "1"]


def test_an_epoch_that_comes_again_is_said_to(
    server: LocalServer,
    options: dict[str, str],
    in_task: list[Task],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Under another topic, too: who gave it another one should hear of it."""
    for topic in ("t", "other"):
        in_task.append(Task(0, "q", "7"))
        one = stream({**options, "topic": topic})
        one.commit([one.write(rows("a"))], 7)

    (record,) = caplog.records
    assert record.__dict__["action"] == "epoch_stored_before"
    assert "epoch 7 of spark:q was stored before" in record.getMessage()


def test_columns_that_are_left_out_may_have_one_name(
    server: LocalServer, options: dict[str, str], in_task: list[Task]
) -> None:
    names = ["x", "x", "value", "id"]
    schema = StructType([StructField(name, StringType()) for name in names])
    made = writer.batch_writer(options, schema, overwrite=False)
    in_task.append(Task(0))
    columns = [pa.array([text]) for text in ("1", "2", "v", "a")]

    made.commit([made.write(iter([pa.record_batch(columns, names)]))])

    assert stored(server) == ["a"]


def test_an_epoch_without_messages_is_nothing(
    server: LocalServer, options: dict[str, str]
) -> None:
    stream(options).commit([], 0)
    stream(options).abort([None, None], 0)


@pytest.mark.parametrize(
    "wrong", [{"atomic": "false"}, {"txnAppId": "a", "txnVersion": "1"}]
)
def test_a_stream_is_atomic_and_has_its_own_name(
    options: dict[str, str], wrong: dict[str, str]
) -> None:
    with pytest.raises(InvalidOption):
        stream({**options, **wrong})
