from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.http import keys as keys_module
from penstock.http.key_file import KeyFile, TokenRequest
from penstock.http.keys import Tokens, who_has


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path)


def test_a_token_is_recognised_again_and_again(file: KeyFile) -> None:
    token = file.begin(0)
    assert token is not None
    keys = Tokens(file)

    first, second = keys.find(token, 1), keys.find(token, 1)

    assert first is not None
    assert first is second
    assert who_has(first).scope == "admin"


@pytest.mark.parametrize(
    "token", ["", "pk_", "pk_" + "x" * 43, "x" * 5000, "pk_\udcff"]
)
def test_what_is_no_token_is_nobodys(file: KeyFile, token: str) -> None:
    file.begin(0)

    assert Tokens(file).find(token, 0) is None


def test_changes_from_outside_count_at_once(file: KeyFile) -> None:
    keys = Tokens(file)
    other = KeyFile(file.directory)

    token = other.add(TokenRequest(name="x"), 0)
    found = keys.find(token, 0)
    other.remove("x")

    assert found is not None
    assert keys.find(token, 0) is None
    assert not keys.still(found, 0)


def test_a_token_of_the_same_name_is_another_one(file: KeyFile) -> None:
    keys = Tokens(file)
    old = keys.add(TokenRequest(name="x"), 0)
    found = keys.find(old, 0)
    assert found is not None

    keys.remove("x")
    keys.add(TokenRequest(name="x"), 0)

    assert keys.find(old, 0) is None
    assert not keys.still(found, 0)


def test_a_token_counts_until_it_expires(file: KeyFile) -> None:
    keys = Tokens(file)
    token = keys.add(TokenRequest(name="x", expires_ms=10), 0)
    found = keys.find(token, 9)
    assert found is not None
    assert keys.still(found, 9)

    assert keys.find(token, 10) is None
    assert not keys.still(found, 10)


def test_a_file_that_breaks_is_reported_and_the_tokens_stay(
    file: KeyFile, caplog: pytest.LogCaptureFixture
) -> None:
    token = file.begin(0)
    assert token is not None
    keys = Tokens(file)

    with caplog.at_level(logging.ERROR, "penstock"):
        file.path.write_text("{")
        assert keys.find(token, 0) is not None
        assert keys.find(token, 0) is not None

    assert [record.action for record in caplog.records] == [  # type: ignore[attr-defined]
        "tokens_failed"
    ]


def test_a_file_that_goes_takes_its_tokens_along(file: KeyFile) -> None:
    token = file.begin(0)
    assert token is not None
    keys = Tokens(file)

    file.path.unlink()

    assert keys.find(token, 0) is None


def test_what_was_recognised_is_not_kept_without_end(
    file: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_module, "MAX_KNOWN", 1)
    keys = Tokens(file)
    tokens = [keys.add(TokenRequest(name=name), 0) for name in ("a", "b")]

    for token in tokens * 2:
        assert keys.find(token, 0) is not None


def test_all_of_them_come_by_name(file: KeyFile) -> None:
    keys = Tokens(file)
    for name in ("b", "a"):
        keys.add(TokenRequest(name=name), 0)

    assert [key.name for key in keys.all()] == ["a", "b"]
