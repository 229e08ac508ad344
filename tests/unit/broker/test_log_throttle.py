from __future__ import annotations

import logging

import pytest

from penstock.broker import log_throttle as module
from penstock.broker.log_throttle import LogThrottle

logger = logging.getLogger("penstock.test_log_throttle")


def refuse(throttle: LogThrottle, number: int, about: str = "") -> None:
    throttle.log(
        logger,
        logging.WARNING,
        "refused: %s of %s",
        number,
        about,
        about=about,
        extra={"action": "refused", "number": number},
    )


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_the_first_is_said_at_once_and_the_others_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    throttle = LogThrottle()
    for number in range(1000):
        refuse(throttle, number)
        throttle.tick(number / 100)
    assert lines(caplog) == ["refused: 0 of "]

    throttle.tick(60.0)
    throttle.tick(119.0)
    throttle.tick(121.0)

    (line,) = lines(caplog)[1:]
    assert line == "refused: 999 of  (the last of 999 more within a minute)"
    first, then = (vars(record) for record in caplog.records)
    assert (first["count"], first["number"]) == (1, 0)
    assert (then["count"], then["number"], then["action"]) == (999, 999, "refused")


def test_what_was_quiet_for_a_minute_begins_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    throttle = LogThrottle()
    refuse(throttle, 1)
    throttle.tick(0.0)
    throttle.tick(60.0)
    refuse(throttle, 2)

    assert lines(caplog) == ["refused: 1 of ", "refused: 2 of "]


def test_different_things_are_told_apart_up_to_a_number(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_THINGS", 3)
    throttle = LogThrottle()
    for number in range(500):
        refuse(throttle, number, f"192.0.2.{number}")
    refuse(throttle, 500, "192.0.2.1")
    throttle.tick(0.0)
    throttle.tick(60.0)

    said = lines(caplog)
    assert len(said) == 6
    assert said[4].startswith("refused: 500 of 192.0.2.1 (the last of 1 more")
    assert said[5].startswith("refused: 499 of 192.0.2.499 (the last of 496 more")


def test_what_is_left_is_said_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    throttle = LogThrottle()
    refuse(throttle, 1)
    refuse(throttle, 2)
    throttle.close()
    throttle.close()

    assert len(lines(caplog)) == 2


def test_what_nobody_wants_to_read_is_not_kept() -> None:
    throttle = LogThrottle()
    throttle.log(logger, logging.DEBUG, "no", extra={"action": "no"})

    assert not vars(throttle)["_actions"]


def test_a_clock_that_is_set_back_silences_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    throttle = LogThrottle()
    refuse(throttle, 1)
    throttle.tick(1000.0)
    refuse(throttle, 2)
    throttle.tick(0.0)

    assert len(lines(caplog)) == 2
