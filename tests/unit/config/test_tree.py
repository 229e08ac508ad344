from __future__ import annotations

from dataclasses import fields

import pytest

from penstock.config.tree import SETTINGS, TABLES, nearest, nearest_key
from penstock.config.values import from_text, text_of
from penstock.server.settings import LOG_HELP


def test_every_field_of_every_table_is_a_setting() -> None:
    said = {
        f"{table}.{one.name}" for table, kind in TABLES.items() for one in fields(kind)
    }

    assert set(SETTINGS) == said


def test_every_setting_has_a_help_text() -> None:
    assert not [key for key, setting in SETTINGS.items() if not setting.help]


def test_every_default_can_be_written_and_read() -> None:
    for key, setting in SETTINGS.items():
        text = text_of(setting.default, is_size=setting.is_size)
        read = from_text(setting.kind, text, is_size=setting.is_size)
        assert read == setting.default, key


def test_no_help_text_is_left_over() -> None:
    assert set(LOG_HELP) <= set(SETTINGS)


def test_names_of_variables_are_clear() -> None:
    assert SETTINGS["line.max_line_bytes"].variable == "PENSTOCK_LINE_MAX_LINE_BYTES"
    assert len({setting.variable for setting in SETTINGS.values()}) == len(SETTINGS)


@pytest.mark.parametrize(
    ("table", "name", "meant"),
    [
        ("line", "max_line_byte", "line.max_line_bytes"),
        ("json", "max_line_byte", "json.max_line_bytes"),
        ("line", "port", "listen.line_port"),
        ("maze", "event_port", "listen.maze_event_port"),
        ("line", "max_connections", "server.max_connections"),
        ("", "data", "server.data"),
        ("", "hosts", "server.host"),
        ("line", "xyz", ""),
    ],
)
def test_the_key_that_was_meant_is_found(table: str, name: str, meant: str) -> None:
    assert nearest_key(table, name) == meant


def test_the_nearest_name_is_one_that_is_near() -> None:
    assert nearest("lnie", TABLES) == "line"
    assert nearest("xyz", TABLES) == ""
