from __future__ import annotations

import json
import os
import re
import stat
import threading
from pathlib import Path

import pytest

from penstock.errors import BadTokenFile, InvalidToken, UnknownToken
from penstock.http import key_file
from penstock.http.key_file import KeyFile, KeyScope, TokenRequest, row_of

TOKEN = re.compile(r"pk_[A-Za-z0-9_-]{43}")


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path)


def test_the_first_start_makes_an_admin_token_and_no_later_one(file: KeyFile) -> None:
    token = file.begin(5)

    assert token is not None
    assert TOKEN.fullmatch(token)
    assert file.begin(6) is None
    assert file.admin_token() == token
    (key,) = file.read().values()
    assert (key.name, key.scope, key.made_ms) == ("admin", "admin", 5)
    assert key.fits(token)


def test_only_hashes_are_stored_and_only_the_owner_may_read(
    file: KeyFile, tmp_path: Path
) -> None:
    admin = file.begin(0)
    other = file.add(TokenRequest(name="shop"), 0)
    assert admin is not None

    text = file.path.read_text()

    assert admin not in text
    assert other not in text
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert other not in file.admin_path.read_text()


def test_a_umask_that_takes_more_changes_nothing(
    file: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0)
    try:
        file.begin(0)
    finally:
        os.umask(before)

    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_equal_tokens_would_have_other_hashes(file: KeyFile) -> None:
    file.begin(0)
    file.add(TokenRequest(name="b"), 0)

    first, second = file.read().values()

    assert first.salt != second.salt


def test_a_token_is_added_found_and_removed(file: KeyFile) -> None:
    wanted = TokenRequest(
        name="shop", scope="topics", publish=("orders",), expires_ms=10
    )

    token = file.add(wanted, 3)

    key = file.read()["shop"]
    assert key.fits(token)
    assert not key.fits(token[:-1])
    assert not key.expired(9)
    assert key.expired(10)
    assert row_of(key).publish == ("orders",)
    assert file.remove("shop") == key
    assert file.read() == {}


def test_renewing_makes_the_old_token_worthless(file: KeyFile) -> None:
    first = file.begin(0)
    assert first is not None
    shop = file.add(TokenRequest(name="shop"), 0)

    second = file.renew(1)

    keys = file.read()
    assert keys["admin"].fits(second)
    assert not keys["admin"].fits(first)
    assert keys["shop"].fits(shop)
    assert file.admin_token() == second


def test_a_token_that_does_not_count_is_not_shown(file: KeyFile) -> None:
    file.begin(0)
    file.admin_path.write_text("pk_another\n")

    assert file.admin_token() is None
    assert KeyFile(file.directory / "nowhere").admin_token() is None


def test_removing_admin_removes_what_could_be_shown(file: KeyFile) -> None:
    file.begin(0)

    file.remove("admin")

    assert not file.admin_path.exists()
    assert file.begin(1) is None, "somebody meant it"


@pytest.mark.parametrize(
    ("name", "scope", "publish", "subscribe"),
    [
        ("", "admin", (), ()),
        (" x", "admin", (), ()),
        ("a\nb", "admin", (), ()),
        ("x" * 201, "admin", (), ()),
        ("x", "read", ("t",), ()),
        ("x", "admin", (), ("t",)),
        ("x", "topics", (), ()),
        ("x", "topics", ("",), ()),
        ("x", "topics", ("t",) * 1001, ()),
    ],
)
def test_what_makes_no_sense_is_not_made(
    file: KeyFile,
    name: str,
    scope: KeyScope,
    publish: tuple[str, ...],
    subscribe: tuple[str, ...],
) -> None:
    wanted = TokenRequest(name=name, scope=scope, publish=publish, subscribe=subscribe)

    with pytest.raises(InvalidToken):
        file.add(wanted, 0)

    assert not file.path.exists()


def test_a_name_is_there_once(file: KeyFile) -> None:
    file.add(TokenRequest(name="x"), 0)

    with pytest.raises(InvalidToken, match="already"):
        file.add(TokenRequest(name="x"), 0)


def test_tokens_have_a_limit(file: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_file, "MAX_TOKENS", 1)
    file.add(TokenRequest(name="x"), 0)

    with pytest.raises(InvalidToken, match="1 already"):
        file.add(TokenRequest(name="y"), 0)


def test_who_is_not_there_is_not_removed(file: KeyFile) -> None:
    with pytest.raises(UnknownToken, match="nobody"):
        file.remove("nobody")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 2, "tokens": []}', '{"version": 1, "tokens": [{}]}'],
)
def test_a_file_that_makes_no_sense_is_named(file: KeyFile, text: str) -> None:
    file.path.write_text(text)

    with pytest.raises(BadTokenFile, match=r"http-tokens\.json"):
        file.read()


def test_what_several_add_at_once_is_all_there(file: KeyFile) -> None:
    def add(who: int) -> None:
        for number in range(10):
            KeyFile(file.directory).add(TokenRequest(name=f"{who}-{number}"), 0)

    threads = [threading.Thread(target=add, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(file.read()) == 40
    assert len(json.loads(file.path.read_bytes())["tokens"]) == 40
