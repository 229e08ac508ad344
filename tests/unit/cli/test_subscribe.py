from __future__ import annotations

import json
import signal

import pytest

from penstock.client import Subscription
from tests.unit.cli.desk_run import DeskRun


def state(run: DeskRun) -> tuple[int, int]:
    view = run.ask("subscriptions.show", subscriber="me", topic="t")
    return view["position"], view["lag"]


@pytest.fixture
def three(run: DeskRun) -> DeskRun:
    run.client.publish("t", [b"zero", b"one", b"\xff"], priorities=[0, 9, 0])
    return run


def test_payloads_are_printed_as_they_are(three: DeskRun) -> None:
    result = three("subscribe", "t", "--from", "earliest", "--count", "3")

    assert result.stdout_bytes == b"zero\none\n\xff\n"


def test_a_name_goes_on_where_it_was(three: DeskRun) -> None:
    first = three.lines(
        "subscribe", "t", *["--as", "me", "--from", "earliest", "--count", "1"]
    )
    assert state(three) == (1, 2)

    second = three.lines("subscribe", "t", "--as", "me", "--count", "1")

    assert (first, second) == (["zero"], ["one"])
    assert state(three) == (2, 1)


def test_a_place_for_a_name_that_has_one_is_noted(three: DeskRun) -> None:
    begin = ["subscribe", "t", "--as", "me", "--count", "1", "--from"]
    new = three(*begin, "earliest")

    again = three(*begin, "0")
    plain = three("subscribe", "t", "--as", "me", "--count", "1")

    assert (new.stdout, new.stderr) == ("zero\n", "")
    assert again.stdout == "one\n"
    assert again.stderr == (
        "note: subscriber me goes on at offset 1; "
        "--from counts for a new subscription only\n"
    )
    assert (plain.stdout_bytes, plain.stderr) == (b"\xff\n", "")


def test_the_same_name_at_another_topic_is_new(three: DeskRun) -> None:
    three.client.publish("other", b"x")
    three.client.subscribe("other", "me").close()

    result = three("subscribe", "t", *["--as", "me", "--from", "0", "--count", "1"])

    assert (result.stdout, result.stderr) == ("zero\n", "")


@pytest.mark.parametrize(
    ("place", "name", "said"),
    [
        ("4", [], True),
        ("4", ["--as", "new"], True),
        ("3", [], False),
        ("latest", [], False),
    ],
)
def test_an_offset_beyond_the_end_is_noted(
    three: DeskRun,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    name: list[str],
    *,
    said: bool,
) -> None:
    def next_batch(self: Subscription) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Subscription, "next_batch", next_batch)

    result = three("subscribe", "t", "--from", place, *name)

    note = "note: t ends at offset 3; it begins there, not at 4\n"
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (note if said else "")


def test_without_ack_nothing_is_settled_and_a_window_is_all(three: DeskRun) -> None:
    options = ["--as", "me", "--from", "earliest", "--no-ack", "--window", "2"]

    assert three.lines("subscribe", "t", *options) == ["zero", "one"]
    assert state(three) == (0, 3)
    assert three.lines("subscribe", "t", *options, "--count", "1") == ["zero"]


def test_json_lines_are_those_of_the_export(three: DeskRun) -> None:
    lines = three.lines("subscribe", "t", *["--from", "1", "--count", "2", "--json"])

    one, two = map(json.loads, lines)
    assert (one["offset"], one["payload"], one["priority"]) == (1, "one", 9)
    assert two["payload_encoding"] == "base64"


def test_priority_goes_first_if_asked_for(three: DeskRun) -> None:
    options = ["--order", "priority", "--from", "earliest", "--count", "2"]

    assert three.lines("subscribe", "t", *options) == ["one", "zero"]


def test_ctrl_c_ends_it_and_what_was_printed_is_settled(
    three: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Subscription.next_batch, [0]

    def next_batch(self: Subscription, timeout_s: float | None = None) -> object:
        calls[0] += 1
        if calls[0] > 1:
            raise KeyboardInterrupt
        return real(self, timeout_s)

    monkeypatch.setattr(Subscription, "next_batch", next_batch)

    result = three("subscribe", "t", *["--as", "me", "--from", "earliest"])

    assert (result.exit_code, result.stdout_bytes) == (0, b"zero\none\n\xff\n")
    assert state(three) == (3, 0)


@pytest.mark.parametrize("options", [["--rates"], []])
def test_acks_may_wait(three: DeskRun, options: list[str]) -> None:
    wait = ["--ack-delay", "1ms", "--window", "1", "--count", "3"]

    lines = three.lines(
        "subscribe", "t", *["--as", "me", "--from", "earliest"], *wait, *options
    )

    assert state(three) == (3, 0)
    assert lines[0] == "zero" or options
    assert lines[-1].startswith("3 events in") or not options


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["none"], "topic none does not exist"),
        (["t", "--no-ack", "--ack-delay", "1s"], "exclude each other"),
        (["t", "--from", "soon"], "'soon' is no place in a topic"),
        (["t", "--as", "$x"], "name $x is reserved"),
    ],
)
def test_what_cannot_be_is_refused(
    three: DeskRun, arguments: list[str], text: str
) -> None:
    assert text in three.refused("subscribe", *arguments)


def test_ctrl_c_between_printing_and_settling_waits_for_that(
    three: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = Subscription.settle

    def interrupted(self: Subscription, offsets: list[int]) -> None:
        signal.raise_signal(signal.SIGINT)
        settle(self, offsets)

    monkeypatch.setattr(Subscription, "settle", interrupted)

    printed = three.lines("subscribe", "t", "--as", "me", "--from", "1", "--json")

    assert len(printed) == 2
    assert state(three) == (3, 0)
