from __future__ import annotations

from penstock.config import items_of, load
from penstock.server import process_info as module
from penstock.server.process_info import MASK, setting_rows
from penstock.server.settings import Settings


def test_every_setting_is_a_row() -> None:
    settings = load(environ={"PENSTOCK_DATA": "here"})

    rows = {row.key: row for row in setting_rows(settings)}

    assert list(rows) == [setting.key for setting, _, _ in items_of(settings)]
    assert rows["server.data"].value == "here"
    assert rows["server.data"].default == "penstock-data"
    assert rows["server.data"].origin == "environment PENSTOCK_DATA"
    assert rows["server.host"].origin == "default"


def test_every_row_says_what_it_is_for() -> None:
    assert [row.key for row in setting_rows(Settings()) if not row.help] == []


def test_what_is_secret_is_masked() -> None:
    assert module._shown("password", "x") == MASK
    assert module._shown("admin_token", "x") == MASK
    assert module._shown("password", None) is None
    assert module._shown("host", "x") == "x"
