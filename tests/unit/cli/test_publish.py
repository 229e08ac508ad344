from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import publish as publishing
from penstock.cli.publish import headers_of
from penstock.cli.refusal import Refusal
from penstock.model.event import Event
from tests.unit.cli.desk_run import DeskRun


def stored(run: DeskRun, count: int) -> list[Event]:
    with run.client.subscribe("t", start="earliest") as subscription:
        found = []
        for delivery in subscription:
            found.append(delivery.event)
            if len(found) == count:
                return found
    return []


def test_an_argument_is_an_event_with_all_that_is_said(run: DeskRun) -> None:
    lines = run.lines(
        *("publish", "t", '{"a": 1}', "--priority", "7", "--id", "mine"),
        *("--key", "k", "--header", "x=1", "--header", "y=a=b"),
    )

    (event,) = stored(run, 1)
    assert lines == ["published 1 event to t, last offset 0"]
    assert (event.payload, event.priority, event.id) == (b'{"a": 1}', 7, "mine")
    assert (event.key, event.headers) == (b"k", {"x": "1", "y": "a=b"})
    assert event.producer == "penstock"


def test_each_line_of_standard_input_is_an_event(run: DeskRun) -> None:
    result = run("publish", "t", "--priority", "2", input=b"one\r\n\n\xff\nlast")

    assert result.stdout == "published 4 events to t, last offset 3\n"
    events = stored(run, 4)
    assert [one.payload for one in events] == [b"one\r", b"", b"\xff", b"last"]
    assert {one.priority for one in events} == {2}


@pytest.mark.parametrize("terminal", [True, False])
def test_each_line_of_a_file_is_an_event(
    run: DeskRun, tmp_path: Path, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_is_terminal", lambda: terminal)
    monkeypatch.setattr(publishing, "READ_BYTES", 7)
    file = tmp_path / "lines"
    file.write_bytes(b"one\ntwo\nthree hundred\nfour\n")

    lines = run.lines("publish", "t", "--file", str(file), "--json")

    told = [json.loads(line) for line in lines]
    events = stored(run, 4)
    assert [(one["topic"], one["offset"]) for one in told] == [
        ("t", 0),
        ("t", 1),
        ("t", 2),
        ("t", 3),
    ]
    assert [one["id"] for one in told] == [event.id for event in events]
    assert [one.payload for one in events][2] == b"three hundred"


def test_nothing_to_publish_is_no_event(run: DeskRun) -> None:
    result = run("publish", "t", "--file", "-", input=b"")

    assert result.stdout == "published 0 events to t\n"


def test_a_dedup_id_stores_once(run: DeskRun) -> None:
    first = run.lines("publish", "t", "x", "--dedup-id", "d")
    again = run.lines("publish", "t", "x", "--dedup-id", "d")

    assert first == again == ["published 1 event to t, last offset 0"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["p", "--file", "f"], "PAYLOAD and --file exclude each other"),
        (["--file", "f", "--id", "x"], "are for a single PAYLOAD"),
        (["--dedup-id", "x"], "are for a single PAYLOAD"),
        (["p", "--header", "x"], "header 'x' is not NAME=VALUE"),
        (["p", "--id", ""], "id is one that is empty"),
        (["--file", "no-such-file"], "no-such-file: No such file"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: DeskRun, options: list[str], text: str
) -> None:
    assert text in run.refused("publish", "t", *options)
    assert run.ask("topics")["topics"] == []


def test_a_line_too_long_is_refused(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "MAX_LINE_BYTES", 5)

    result = run("publish", "t", input=b"short\nlonger\n")

    assert result.exit_code == 2
    assert "a line exceeds 5 bytes" in result.stderr


@pytest.mark.parametrize("text", ["", "x", "=v"])
def test_a_header_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(Refusal):
        headers_of([text])
    assert headers_of(["a=", "b=c"]) == {"a": "", "b": "c"}
