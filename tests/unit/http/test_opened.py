from __future__ import annotations

import pytest

from penstock.errors import LimitReached
from penstock.http.opened import Opened


def test_streams_are_counted_while_they_are_open() -> None:
    opened = Opened(2)

    with opened.one(), opened.one():
        assert opened.count == 2
        with pytest.raises(LimitReached, match=r"2 open streams.*http\.max_streams"):
            opened.one().__enter__()
        assert opened.count == 2

    assert opened.count == 0


def test_a_stream_that_fails_is_counted_out() -> None:
    opened = Opened(1)

    with pytest.raises(RuntimeError), opened.one():
        raise RuntimeError

    assert opened.count == 0


def test_all_streams_end_at_once() -> None:
    opened = Opened(1)
    assert not opened.ending

    opened.ended.set()

    assert opened.ending
