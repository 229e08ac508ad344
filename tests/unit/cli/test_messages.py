from __future__ import annotations

import logging
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.cli.messages import limited_to, messages

logger = logging.getLogger("penstock.test")


def test_records_are_lines_on_standard_error(capsys: pytest.CaptureFixture) -> None:
    with messages(logging.WARNING):
        logger.warning("cut %s", "it")
        logger.info("not this")

    assert capsys.readouterr() == ("", "warning: cut it\n")


def test_an_exception_is_shown_with_its_traceback(
    capsys: pytest.CaptureFixture,
) -> None:
    with messages(logging.WARNING):
        try:
            raise KeyError("lost")
        except KeyError:
            logger.exception("connection of %s failed", "anna")

    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert first == "error: connection of anna failed"
    assert second == "Traceback (most recent call last):"
    assert last == "KeyError: 'lost'"


def test_without_an_exception_there_is_no_traceback(
    capsys: pytest.CaptureFixture,
) -> None:
    with messages(logging.WARNING):
        logger.error("odd", exc_info=True)

    assert capsys.readouterr().err == "error: odd\n"


def test_a_command_may_leave_out_more(capsys: pytest.CaptureFixture) -> None:
    with messages(logging.WARNING), limited_to(logging.ERROR):
        logger.warning("not this")
        logger.error("this")

    assert capsys.readouterr().err == "error: this\n"


def test_afterwards_all_is_as_before() -> None:
    room = logging.getLogger("penstock")
    before = room.level, list(room.handlers)

    with pytest.raises(KeyError), messages(logging.ERROR), limited_to(logging.CRITICAL):
        raise KeyError

    assert (room.level, room.handlers) == before


def test_a_record_that_cannot_be_written_harms_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with suppress(OSError), Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)

        with messages(logging.WARNING):
            logger.error("the disk is full")
        said = True

    assert said
