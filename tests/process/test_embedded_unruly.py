"""Whatever a handler does, the broker lives, and every event is settled or kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import penstock
from penstock import desk
from tests.process.embedded_process import program
from tests.process.embedded_unruly import EVENTS, RAISED, RIGHT, WRONG

pytestmark = pytest.mark.slow


def test_handlers_that_leak_block_and_raise_cost_nobody_an_event(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"

    with program("embedded_unruly", data) as unruly:
        assert unruly.lines() == ["settled", "alive"]
        assert unruly.wait() == 0

    with penstock.open(data) as broker:
        letters = broker.ask(desk.list_all())
        kinds = {kind for letter in letters if (kind := letter.kind) is not None}
        standing = broker.ask(desk.subscriptions())
    wrong = {handler.topic: EVENTS for handler in WRONG}
    assert Counter(letter.topic for letter in letters) == wrong
    assert {one.subscriber for one in letters} == {"wrong"}
    # What does not fit will not fit the next time.
    assert {one.tries for one in letters if one.kind != "UnfitPayload"} == {2}
    assert kinds >= {one.__name__ for one in RAISED} | {"Timeout", "TypeError"}
    assert len(standing) == len([*WRONG, *RIGHT])
    assert [one.lag for one in standing if one.lag] == []
