from __future__ import annotations

import pytest

from penstock.wire.jsonq.login import Login, parse_login


@pytest.mark.parametrize(
    ("line", "login"),
    [
        (b"log bob", Login("bob", None)),
        (b"LOG Bob\r", Login("bob", None)),
        (b" log \t bob ", Login("bob", None)),
        ("log ÉVA".encode(), Login("éva", None)),
        (b"log Bob SeCret", Login("bob", "SeCret")),
        (b"log " + b"x" * 256, Login("x" * 256, None)),
    ],
)
def test_login_line_is_user_and_password(line: bytes, login: Login) -> None:
    assert parse_login(line) == login


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"log",
        b"log a b c",
        b"login bob",
        b"bob",
        b"log b\xff",
        b"log b\0b",
        b"log " + b"x" * 257,
        b'{"type":"SUB","topic":"t"}',
    ],
)
def test_any_other_line_is_no_login(line: bytes) -> None:
    assert parse_login(line) is None
