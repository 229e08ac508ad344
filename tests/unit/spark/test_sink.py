from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.client import Client, connect
from penstock.errors import BadRow, InvalidOption, ServerRefused, UnknownOption
from penstock.spark import rows
from penstock.spark.offsets import MOST
from penstock.spark.rows import RowLayout
from penstock.spark.sink import Sink, TaskResult, Write, sink_options
from tests.local_server import LocalServer, local_server

FIRST = Write("spark:q", 0)
TYPES = {"value": "string", "topic": "string", "id": "string"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture
def sink(server: LocalServer) -> Sink:
    options = sink_options({"path": str(server.data), "retrySeconds": "5"})
    return Sink(options, RowLayout.of(TYPES.items(), None))


def batch(*ids: str, topic: str = "t") -> pa.RecordBatch:
    columns: dict[str, Any] = {"value": [f"value of {id_}" for id_ in ids]}
    columns |= {"topic": [topic] * len(ids), "id": list(ids)}
    types = pa.schema([(name, pa.string()) for name in TYPES])
    return pa.RecordBatch.from_pydict(columns, types)


def stored(server: LocalServer, topic: str = "t") -> list[str]:
    with connect(server.data) as client:
        batches = client.fetch(topic, 0, 1000).batches
        return [id_ for batch in batches for id_ in batch.ids()]


def ask(server: LocalServer, verb: str, **arguments: Any) -> Any:
    with connect(server.data) as client:
        return client.ask(verb, **arguments)


def test_what_is_staged_is_stored_by_the_commit(
    server: LocalServer, sink: Sink
) -> None:
    parts = [
        sink.stage(FIRST, 0, [batch("a"), batch("b", "c"), batch("x", topic="u")]),
        sink.stage(FIRST, 1, [batch("d")]),
    ]

    assert ask(server, "topics")["topics"] == []
    assert sink.commit(FIRST, parts)
    assert [part.events for part in parts] == [4, 1]
    assert sorted(stored(server)) == ["a", "b", "c", "d"]
    assert stored(server, "u") == ["x"]


def test_only_the_try_that_is_named_counts(server: LocalServer, sink: Sink) -> None:
    sink.stage(FIRST, 0, [batch("a")])
    second = sink.stage(FIRST, 0, [batch("a")])

    sink.commit(FIRST, [second])

    assert stored(server) == ["a"]


def test_an_epoch_is_stored_once(server: LocalServer, sink: Sink) -> None:
    assert sink.commit(FIRST, [sink.stage(FIRST, 0, [batch("a")])])

    again = sink.stage(FIRST, 0, [batch("a")])

    assert not sink.commit(FIRST, [again])
    assert stored(server) == ["a"]


def test_an_abort_does_not_undo_a_commit(server: LocalServer, sink: Sink) -> None:
    sink.commit(FIRST, [sink.stage(FIRST, 0, [batch("a")])])

    sink.abort(FIRST)

    assert stored(server) == ["a"]


def test_an_abort_drops_what_is_staged(server: LocalServer, sink: Sink) -> None:
    part = sink.stage(FIRST, 0, [batch("a")])

    sink.abort(FIRST)

    with pytest.raises(ServerRefused, match="is not staged"):
        sink.commit(FIRST, [part])


def test_an_abort_that_nobody_hears_is_no_error(
    server: LocalServer, sink: Sink
) -> None:
    server.stop()
    options = sink_options({"path": str(server.data), "retrySeconds": "0"})

    Sink(options, RowLayout.of(TYPES.items(), "t")).abort(FIRST)


def test_tasks_without_rows_have_no_part(server: LocalServer, sink: Sink) -> None:
    empty = sink.stage(FIRST, 0, [])

    assert empty.events == 0
    assert sink.commit(FIRST, [empty, TaskResult(1, 2, 0)])
    assert ask(server, "sinks")["sinks"] == []


def test_a_number_that_was_given_is_noted_without_rows(
    server: LocalServer, sink: Sink
) -> None:
    given = {"path": str(server.data), "txnAppId": "q", "txnVersion": str(MOST)}
    named = Sink(sink_options(given), RowLayout.of(TYPES.items(), None))
    write = Write("spark:q", MOST)

    assert named.commit(write, [])
    again = named.commit(write, [named.stage(write, 0, [batch("a")])])

    assert not again
    assert ask(server, "topics")["topics"] == []


@pytest.mark.parametrize("last", [True, False])
def test_a_commit_says_that_it_is_the_last_only_if_it_is(
    server: LocalServer, sink: Sink, monkeypatch: pytest.MonkeyPatch, *, last: bool
) -> None:
    """A broker that does not know the word would refuse it."""
    write = Write("spark:q", 0, last=last)
    part = sink.stage(write, 0, [batch("a")])
    said: list[dict[str, object]] = []
    monkeypatch.setattr(Client, "ask", lambda _, verb, **words: said.append(words))

    sink.commit(write, [part])

    assert [words.get("last") for words in said] == [True if last else None]


def test_a_task_may_have_many_pieces(
    server: LocalServer, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "PART_EVENTS", 2)
    ids = [f"i{n}" for n in range(7)]

    sink.commit(FIRST, [sink.stage(FIRST, 0, [batch(*ids), batch("last")])])

    assert stored(server) == [*ids, "last"]


@pytest.mark.parametrize("way", ["stage", "publish"])
def test_a_payload_that_does_not_fit_its_schema_is_named(
    server: LocalServer, sink: Sink, way: str
) -> None:
    ask(server, "schemas.register", topic="t", schema={"type": "integer"})
    types = pa.schema([(name, pa.string()) for name in TYPES])
    good_and_bad = pa.RecordBatch.from_pydict(
        {"value": ["1", "two"], "topic": ["t", "t"], "id": [None, None]}, types
    )

    with pytest.raises(BadRow) as caught:
        getattr(sink, way)(FIRST, 4, [good_and_bad.slice(0, 1), good_and_bad])

    error = caught.value
    assert (error.partition, error.row, error.value) == (4, 2, b"two")
    assert "does not fit version 1" in str(error)
    assert "of the batch" not in str(error)


def test_another_refusal_stays_what_it_is(server: LocalServer, sink: Sink) -> None:
    with pytest.raises(ServerRefused) as caught:
        sink.stage(FIRST, 0, [batch("a", topic="$mine")])

    assert caught.value.error == "ReservedName"


def test_rows_that_are_published_again_are_recognised(
    server: LocalServer, sink: Sink
) -> None:
    sink.publish(FIRST, 0, [batch("a")])

    part = sink.publish(FIRST, 0, [batch("a"), batch("b")])
    sink.publish(FIRST, 1, [batch("c")])
    sink.publish(Write("spark:q", 1), 0, [batch("d")])

    assert part.events == 2
    assert stored(server) == ["a", "b", "c", "d"]


def test_options_have_defaults() -> None:
    options = sink_options({"servers": "h:1", "checkpointLocation": "x"})

    assert (options.topic, options.atomic, options.app) == (None, True, None)


def test_options_are_read() -> None:
    options = sink_options(
        {"path": "p", "TOPIC": "t", "atomic": "True", "txnAppId": "a"}
        | {"txnVersion": "7"}
    )

    assert (options.topic, options.atomic) == ("t", True)
    assert (options.app, options.version) == ("a", 7)
    assert not sink_options({"path": "p", "atomic": "False"}).atomic


@pytest.mark.parametrize(
    "wrong",
    [
        {"atomic": "maybe"},
        {"txnAppId": "a", "txnVersion": "-1"},
        {"txnAppId": "a", "txnVersion": "1" * 25},
        {"txnAppId": "a", "txnVersion": "1" * 5000},
        {"txnAppId": "a", "txnVersion": "1", "atomic": "false"},
        {"txnAppId": "a"},
        {"txnVersion": "1"},
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidOption):
        sink_options({"path": "p", **wrong})


def test_unknown_options_are_refused() -> None:
    with pytest.raises(UnknownOption, match="atomic"):
        sink_options({"path": "p", "atomc": "true"})
