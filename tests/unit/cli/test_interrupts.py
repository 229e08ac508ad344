from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from penstock.cli.interrupts import heed_sigterm, unbroken


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_what_was_begun_is_ended_first() -> None:
    done = []

    with pytest.raises(KeyboardInterrupt), unbroken():
        ctrl_c()
        done.append("all")

    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_one_comes_at_once() -> None:
    done = []

    with pytest.raises(KeyboardInterrupt), unbroken():
        ctrl_c()
        ctrl_c()
        done.append("all")

    assert done == []


def test_without_one_nothing_happens() -> None:
    with unbroken():
        pass

    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


def test_an_error_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError, match="mine"), unbroken():
        raise ValueError("mine")

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_somebody_else_stays() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with unbroken():
            ctrl_c()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_are_let_alone() -> None:
    done = []

    def work() -> None:
        with unbroken():
            done.append("all")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == ["all"]


@pytest.fixture
def sigterm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("sigterm")
def test_in_a_container_sigterm_is_a_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    done = []
    heed_sigterm()

    with pytest.raises(KeyboardInterrupt), unbroken():
        signal.raise_signal(signal.SIGTERM)
        done.append("all")

    assert done == ["all"]


@pytest.mark.usefixtures("sigterm")
def test_elsewhere_sigterm_stays_what_it_is() -> None:
    before = signal.getsignal(signal.SIGTERM)

    heed_sigterm()

    assert signal.getsignal(signal.SIGTERM) is before
