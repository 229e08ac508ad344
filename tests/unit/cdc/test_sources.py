from __future__ import annotations

import pytest

from penstock.cdc.mongo import MongoCapture
from penstock.cdc.postgres import PostgresCapture
from penstock.cdc.sources import drop_capture, open_capture
from penstock.errors import InvalidStore


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("postgresql://h/db", PostgresCapture),
        ("postgres://h/db", PostgresCapture),
        ("mongodb://h/db", MongoCapture),
    ],
)
def test_a_url_says_which_system(url: str, kind: type) -> None:
    assert isinstance(open_capture(url, "a", ["t"]), kind)


@pytest.mark.parametrize(
    "do",
    [lambda url: open_capture(url, "a", ["t"]), lambda url: drop_capture(url, "a")],
)
def test_another_system_is_refused_without_its_secrets(do) -> None:
    with pytest.raises(InvalidStore) as raised:
        do("mysql://me:secret@h/db")

    assert "secret" not in str(raised.value)
    assert "mysql" in str(raised.value)


def test_mongodb_keeps_nothing_for_a_capture() -> None:
    drop_capture("mongodb://nowhere/db", "a")
