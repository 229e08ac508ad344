from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.sse_server import NO_CONTENT, answer, sse_server
from tests.unit.cli.desk_run import DeskRun

EVENTS = answer(b'id: 1\ndata: {"a": {"b": "k"}}\n\nid: 2\ndata: [1]\n\n')


@pytest.mark.slow
def test_a_stream_is_published_until_its_end(run: DeskRun, tmp_path: Path) -> None:
    status = tmp_path / "status.json"
    with sse_server(EVENTS, NO_CONTENT) as source:
        run.lines(
            *("ingest", "sse", source.url, "--topic", "t", "--key", "a.b"),
            *("--until-end", "--status-file", str(status)),
        )

    (batch,) = run.client.fetch("t", 0, 10).batches
    (event,) = batch.events()
    assert (event.key, event.payload) == (b"k", b'{"a": {"b": "k"}}')
    assert event.headers == {"source": source.url, "sse-id": "1"}
    (letter,) = run.ask("dead-letters")["letters"]
    assert letter["reason"] == "JSON, but no object"
    told = json.loads(status.read_bytes())
    assert (told["events"], told["malformed"]) == (2, 1)


@pytest.mark.slow
def test_a_raw_stream_is_published_whole(run: DeskRun) -> None:
    with sse_server(EVENTS, NO_CONTENT) as source:
        run.lines(
            *("ingest", "sse", source.url, "--topic", "t", "--raw", "--name", "mine"),
            *("--until-end", "--key", ""),
        )

    (batch,) = run.client.fetch("t", 0, 10).batches
    assert batch.payloads() == [b'{"a": {"b": "k"}}', b"[1]"]
    (sink,) = run.ask("sinks")["sinks"]
    assert sink["query"] == "ingest:mine"


@pytest.mark.slow
@pytest.mark.parametrize(("linger", "epoch"), [("10m", 0), ("1ms", 1)])
def test_what_comes_within_the_linger_is_one_batch(
    run: DeskRun, linger: str, epoch: int
) -> None:
    first, second = (answer(b"retry: 100\ndata: %d\n\n" % one) for one in (1, 2))
    with sse_server(first, second, NO_CONTENT) as source:
        run.lines(
            *("ingest", "sse", source.url, "--topic", "t", "--raw", "--name", "mine"),
            *("--until-end", "--linger", linger),
        )

    (sink,) = run.ask("sinks")["sinks"]
    assert sink["epoch"] == epoch


@pytest.mark.slow
def test_panics_are_samples(run: DeskRun) -> None:
    with sse_server(answer(b"data: help\n\n" * 3), NO_CONTENT) as source:
        run.lines(
            *("ingest", "sse", source.url, "--topic", "t", "--panic", "help"),
            *("--samples", "s", "--until-end"),
        )

    (batch,) = run.client.fetch("s", 0, 10).batches
    assert sum(json.loads(one)["count"] for one in batch.payloads()) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answered", "text"),
    [
        (answer(status="404 Not Found"), "the server says 404 Not Found"),
        (answer(content_type="text/html"), "content is text/html"),
    ],
)
def test_what_is_no_stream_is_an_error(
    run: DeskRun, answered: bytes, text: str
) -> None:
    with sse_server(answered) as source:
        said = run.refused("ingest", "sse", source.url, "--topic", "t")

    assert said.startswith(f"error: {source.url}: {text}")
    assert "hint: give the address of a stream of server-sent events" in said


def test_what_is_no_address_is_an_error(run: DeskRun) -> None:
    said = run.refused("ingest", "sse", "localhost:4000", "--topic", "t")

    assert "option URL is 'localhost:4000': must be http://… or https://…" in said


@pytest.mark.slow
def test_a_topic_that_cannot_be_is_an_error(run: DeskRun) -> None:
    with sse_server(EVENTS, NO_CONTENT) as source:
        said = run.refused("ingest", "sse", source.url, "--topic", "$t")

    assert "reserved" in said


def test_what_is_not_installed_is_named(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "penstock.ingest.run", raising=False)
    monkeypatch.delitem(sys.modules, "penstock.ingest.source", raising=False)
    monkeypatch.setitem(sys.modules, "aiohttp", None)

    said = run.refused("ingest", "sse", "http://127.0.0.1:1/", "--topic", "t")

    assert "Ingest needs aiohttp, which is not installed" in said
