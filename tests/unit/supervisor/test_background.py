from __future__ import annotations

import threading
import time

import pytest

from penstock.supervisor.run import BackgroundThread


def until_done(aside: BackgroundThread) -> None:
    deadline_s = time.monotonic() + 30
    while not aside.is_done:
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def test_nobody_waits_for_what_takes_long() -> None:
    go_on = threading.Event()

    aside = BackgroundThread(lambda: assert_(go_on.wait(30)))

    assert not aside.is_done
    go_on.set()
    until_done(aside)
    aside.check()


def test_what_went_wrong_is_told() -> None:
    aside = BackgroundThread(lambda: assert_(value=False))

    until_done(aside)

    with pytest.raises(AssertionError, match="as it was told"):
        aside.check()


def assert_(value: object) -> None:
    assert value, "as it was told"
