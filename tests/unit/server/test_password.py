from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.server import password
from penstock.server.password import Password

CHEAP = Password(n=2, r=1, p=1, salt=b"s" * 8, hash=b"h" * 16)
SALT = base64.b64encode(b"s" * 16).decode()
HASH = base64.b64encode(b"h" * 32).decode()


@pytest.mark.slow
def test_the_password_matches_and_no_other_does() -> None:
    stored = password.stored("geheim")

    assert stored.matches("geheim")
    assert not stored.matches("Geheim")
    assert not stored.matches("")


def test_one_password_is_stored_in_another_way_each_time() -> None:
    assert password.stored("a").hash != password.stored("a").hash


def test_the_text_does_not_hold_the_password() -> None:
    assert "geheim" not in str(password.stored("geheim"))


def test_known_answer_of_rfc_7914() -> None:
    hash_ = bytes.fromhex(
        "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
        "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
    )
    stored = Password(n=16384, r=8, p=1, salt=b"SodiumChloride", hash=hash_)

    assert stored.matches("pleaseletmein")


def test_text_that_utf8_cannot_carry_matches_nothing() -> None:
    assert not CHEAP.matches("\ud800")


@given(
    st.builds(
        Password,
        n=st.integers(1, 17).map(lambda power: 1 << power),
        r=st.integers(1, 16),
        p=st.integers(1, 16),
        salt=st.binary(min_size=8, max_size=64),
        hash=st.binary(min_size=16, max_size=64),
    )
)
def test_text_of_a_password_is_read_back(stored: Password) -> None:
    assert password.parse(str(stored)) == stored


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the password must be scrypt$n$r$p$salt$hash"),
        ("geheim", "the password must be scrypt$n$r$p$salt$hash"),
        (f"argon$2$1$1${SALT}${HASH}", "the password must be scrypt$n$r$p$salt$hash"),
        (f"scrypt$2$1${SALT}${HASH}", "the password must be scrypt$n$r$p$salt$hash"),
        (f"scrypt$x$1$1${SALT}${HASH}", "the cost of scrypt must be three numbers"),
        (f"scrypt$-2$1$1${SALT}${HASH}", "the cost of scrypt must be three numbers"),
        (f"scrypt$²$1$1${SALT}${HASH}", "the cost of scrypt must be three numbers"),
        (f"scrypt${'9' * 99}$1$1${SALT}${HASH}", "must be three numbers"),
        (f"scrypt$3$1$1${SALT}${HASH}", "n of scrypt is 3: must be a power of two"),
        (f"scrypt$1$1$1${SALT}${HASH}", "n of scrypt is 1: must be a power of two"),
        (f"scrypt$2$0$1${SALT}${HASH}", "n times r of scrypt is 0: must be 1 to"),
        (f"scrypt$16777216$8$1${SALT}${HASH}", "is 134217728: must be 1 to 2097152"),
        (f"scrypt$2$1$0${SALT}${HASH}", "p of scrypt is 0: must be 1 to 16"),
        (f"scrypt$2$1$17${SALT}${HASH}", "p of scrypt is 17: must be 1 to 16"),
        (f"scrypt$2$1$1$!${HASH}", "salt and hash must be base64"),
        (f"scrypt$2$1$1${SALT}$é", "salt and hash must be base64"),
        (f"scrypt$2$1$1$AA==${HASH}", "the salt must have 8 to 64 bytes"),
        (f"scrypt$2$1$1${SALT}$AA==", "the hash must have 16 to 64 bytes"),
    ],
)
def test_other_text_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        password.parse(text)

    assert reason in str(caught.value)


@given(st.text())
def test_any_text_is_a_password_or_refused(text: str) -> None:
    try:
        found = password.parse(text)
    except ValueError:
        return
    assert password.parse(str(found)) == found
