from __future__ import annotations

import pytest

from penstock.errors import Backlogged
from penstock.gateway.maze import letters as module
from penstock.gateway.maze.letters import MazeLetters
from tests.unit.gateway.maze.scene import FakeBroker


def test_a_letter_is_stored_at_once():
    broker = FakeBroker()
    letters = MazeLetters(broker)

    letters.keep("why", b"line\n")

    assert broker.letters == [("why", b"line\n")]
    assert len(letters) == 0


def test_letters_wait_and_keep_their_order():
    broker = FakeBroker()
    letters = MazeLetters(broker)
    broker.behind = True
    letters.keep("one", b"1")
    letters.keep("two", b"2")
    assert len(letters) == 2

    broker.behind = False
    letters.keep("three", b"3")

    assert broker.letters == [("one", b"1"), ("two", b"2"), ("three", b"3")]


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 10)
    broker = FakeBroker()
    letters = MazeLetters(broker)
    broker.behind = True
    letters.keep("fits", b"x" * 10)

    with pytest.raises(Backlogged):
        letters.keep("does not", b"x")
