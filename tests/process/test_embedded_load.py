"""Many events, ten handlers that fail with one in a hundred, and little memory."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import penstock
from penstock import desk
from penstock.delivery.error_log import decode_failed_try
from penstock.delivery.letters import decode_letter
from tests.effort import effort
from tests.process.embedded_load import HANDLERS, fails
from tests.process.embedded_process import events_of, program

pytestmark = pytest.mark.slow

EVENTS = effort(6_000, 100_000)
TRIES = [1, 2, 3, 4, 5]
# Measured: 59 MiB, and 43 for nearly none; with 100 000 about 100.
LIMIT_MIB = effort(85, 200)


def test_every_event_is_settled_or_in_the_desk_with_the_errors_of_its_tries(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    failing = {
        (f"handler-{number}", offset)
        for number in range(HANDLERS)
        for offset in range(EVENTS)
        if fails(number, offset)
    }

    with program("embedded_load", data, EVENTS) as load:
        handled, peak_mib = map(int, load.line().split())
        assert load.wait() == 0

    assert handled == HANDLERS * EVENTS - len(failing)
    assert peak_mib < LIMIT_MIB
    check_positions(data)
    check_letters(data, failing)
    check_errors(data, failing)


def check_positions(data: Path) -> None:
    with penstock.open(data) as broker:
        rows = broker.ask(desk.subscriptions())
    standing = {row.subscriber: (row.position, row.owed) for row in rows}
    assert standing == {f"handler-{n}": (EVENTS, 0) for n in range(HANDLERS)}


def check_letters(data: Path, failing: set[tuple[str, int]]) -> None:
    """One for each event that failed, with what went wrong each time."""
    found = set()
    for event in events_of(data, "$dead-letters"):
        letter = decode_letter(event.payload)
        assert letter.subscriber is not None and letter.offset is not None
        assert [one.tries for one in letter.failures] == TRIES, letter
        assert all("is nothing for" in one.traceback for one in letter.failures)
        assert (letter.subscriber, letter.offset) not in found
        found.add((letter.subscriber, letter.offset))
    assert found == failing


def check_errors(data: Path, failing: set[tuple[str, int]]) -> None:
    """Every failed try stands in the error log, once."""
    tries: dict[tuple[str, int], list[int]] = defaultdict(list)
    for event in events_of(data, "$errors"):
        error = decode_failed_try(event.payload)
        tries[error.subscriber, error.offset].append(error.tries)
    assert set(tries) == failing
    assert not [key for key, value in tries.items() if sorted(value) != TRIES]
