from __future__ import annotations

from penstock.clock import ManualClock
from penstock.http.access import Who
from penstock.http.key_file import Key
from penstock.http.options import HttpOptions
from penstock.http.sessions import WebSessions

WHO = Who(name="anna", scope="admin")
KEY = Key(name="anna", scope="admin", salt=b"", hash=b"", made_ms=0)


def test_a_session_is_found_by_its_cookie_and_lasts_anew() -> None:
    clock = ManualClock()
    sessions = WebSessions(HttpOptions(session_s=60), clock)
    begun = sessions.begin(WHO, KEY)
    first_ms = begun.expires_ms

    clock.advance(59)
    found = sessions.find(begun.id)

    assert found is begun
    assert found.expires_ms == first_ms + 59_000
    assert found.who == WHO


def test_a_session_of_a_user_ends_however_often_it_is_used() -> None:
    clock = ManualClock()
    sessions = WebSessions(HttpOptions(session_s=60), clock)
    begun = sessions.begin(WHO, None)

    clock.advance(59)
    assert sessions.find(begun.id) is begun
    clock.advance(1)

    assert sessions.find(begun.id) is None


def test_a_session_that_was_not_used_is_over() -> None:
    clock = ManualClock()
    sessions = WebSessions(HttpOptions(session_s=60), clock)
    begun = sessions.begin(WHO, None)

    clock.advance(60)

    assert sessions.find(begun.id) is None
    assert len(sessions) == 0


def test_of_too_many_the_one_unused_for_longest_goes() -> None:
    sessions = WebSessions(HttpOptions(max_sessions=2), ManualClock())
    first, second = sessions.begin(WHO, None), sessions.begin(WHO, None)
    sessions.find(first.id)

    third = sessions.begin(WHO, None)

    assert sessions.find(second.id) is None
    assert sessions.find(first.id) is first
    assert sessions.find(third.id) is third


def test_who_logs_out_is_out() -> None:
    sessions = WebSessions(HttpOptions(), ManualClock())
    begun = sessions.begin(WHO, None)

    sessions.end(begun.id)
    sessions.end("never was")

    assert sessions.find(begun.id) is None


def test_cookies_of_others_are_no_sessions() -> None:
    sessions = WebSessions(HttpOptions(), ManualClock())

    assert sessions.find("") is None
    assert sessions.find("x" * 10_000) is None


def test_only_the_word_of_the_session_is_no_forgery() -> None:
    sessions = WebSessions(HttpOptions(), ManualClock())
    one, other = sessions.begin(WHO, None), sessions.begin(WHO, None)

    assert not one.forged(one.csrf)
    for said in (None, "", other.csrf, one.csrf + "x", "\udcff"):
        assert one.forged(said)
    assert one.id not in (other.id, one.csrf)
