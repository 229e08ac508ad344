from __future__ import annotations

import pytest

from penstock.server import logins
from penstock.server.logins import LoginLog


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {vars(one)["action"] for one in caplog.records} <= {"login_failed"}
    return [record.getMessage() for record in caplog.records]


def test_the_first_is_said_at_once_and_the_others_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = LoginLog()
    for number in range(1000):
        log.failed("anna" if number % 2 else "bert", "192.0.2.1", "mqtt", number / 100)
        log.tick(number / 100)
    assert lines(caplog) == ["a login over mqtt as 'bert' from 192.0.2.1 has failed"]

    log.failed("carl", "192.0.2.1", "line", 50.0)
    log.tick(60.0)
    log.tick(119.0)

    (line,) = lines(caplog)[1:]
    assert line == (
        "1000 more logins over line, mqtt from 192.0.2.1 have failed within a minute, "
        "as 'anna', 'bert', 'carl'"
    )
    assert vars(caplog.records[1])["count"] == 1000


def test_an_address_that_was_quiet_for_a_minute_begins_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = LoginLog()
    log.failed("anna", "192.0.2.1", "http", 0.0)
    log.tick(60.0)
    log.failed("anna", "192.0.2.1", "http", 61.0)

    assert len(lines(caplog)) == 2


def test_many_addresses_and_names_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "MAX_ADDRESSES", 3)
    log = LoginLog()
    for number in range(500):
        log.failed(f"user{number}", f"192.0.2.{number}", "http", 0.0)
    log.tick(60.0)

    said = lines(caplog)
    assert len(said) == 5
    assert said[3] == "a login over http as 'user3' from other addresses has failed"
    assert said[4].startswith("496 more logins over http from other addresses")
    assert said[4].endswith("'user8' and others")


def test_names_cannot_make_lines_of_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = LoginLog()
    log.failed("a\nb\x1b[31m" + "x" * 1000, "192.0.2.1", "http", 0.0)

    (line,) = lines(caplog)
    assert line.isprintable()
    assert len(line) < 200


def test_what_is_left_is_said_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    log = LoginLog()
    log.failed("anna", "192.0.2.1", "http", 0.0)
    log.failed("anna", "192.0.2.1", "http", 1.0)
    log.close()
    log.close()

    assert len(lines(caplog)) == 2
