"""What a URL says; what stores do is in tests/contract/test_store.py."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import pytest

from penstock.errors import InvalidName, InvalidStore, MissingExtra
from penstock.store import store as stores
from penstock.store.store import checked_name, place_of


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://u:secret@h:1/db?passfile=secret", "postgresql://h:1/db"),
        ("postgresql://u:se@cret@h/db", "postgresql://h/db"),
        ("mongodb://u:secret@a:1,b:2/db?replicaSet=rs", "mongodb://a:1,b:2/db"),
        ("postgresql:///db?host=/socket", "postgresql:///db"),
        ("postgresql://u:se?cret@h/db", "postgresql://…"),
        ("mongodb://u:se/cret@h/db", "mongodb://h/db"),
        ("postgresql://h/db?password=se@cret", "postgresql://…"),
        ("secret", "(no URL)"),
        ("", "(no URL)"),
    ],
)
def test_place_holds_no_secret(url: str, place: str) -> None:
    assert place_of(url) == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "postgresql",
        "ftp://u:secret@h/db",
        "sqlite:///file",
        "postgresql://u:secret@h:port/db",
        "postgresql://u:secret@h/db?nonsense=1",
        "postgresql://u:sec%ret@h/db",
        "mongodb://",
        "mongodb://u:secret@h/",
        "mongodb://u:secret@h:port/db",
        "mongodb://u:se/cret@h/db",
    ],
)
def test_url_that_is_none_is_refused_without_its_secret(url: str) -> None:
    with pytest.raises(InvalidStore) as caught:
        stores.open(url)

    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.hint


def test_missing_driver_is_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    true = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("penstock.store.postgres"):
            raise ImportError("no", name="psycopg.pq")
        return true(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(MissingExtra, match="needs psycopg"):
        stores.open("postgresql://h/db")


@pytest.mark.slow
def test_importing_it_loads_no_driver() -> None:
    code = (
        "import penstock.store.store, penstock.store.own, penstock.cli.store, sys;"
        "print([m for m in ('psycopg', 'pymongo', 'pyarrow') if m in sys.modules])"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert said.stdout.strip() == "[]", said.stderr


def test_names_are_checked() -> None:
    assert checked_name("users_2") == "users_2"
    with pytest.raises(InvalidName, match="collection name 'a-b'"):
        checked_name("a-b")
