from __future__ import annotations

from pathlib import Path

from penstock.config.page import settings_tables
from penstock.config.tree import SETTINGS, TABLES
from penstock.config.values import text_of

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PAGE = (ROOT / "docs" / "configuration.md").read_text()
ALL = PAGE.partition("## All settings\n\n")[2]


def test_the_page_has_the_tables_as_they_are_made() -> None:
    how = "python -m penstock.config.page prints what belongs behind '## All settings'"

    assert settings_tables() == ALL, how


def test_every_setting_is_in_the_table_of_its_section() -> None:
    for key, setting in SETTINGS.items():
        section = ALL.partition(f"### [{setting.table}]\n")[2].partition("\n### ")[0]
        (row,) = (one for one in section.split("\n") if f"| `{setting.name}` |" in one)
        default = text_of(setting.default, is_size=setting.is_size)
        assert f"| `{default}` |" in row, key
        assert setting.help in row, key
        assert row.count("|") == 5, key


def test_every_table_has_its_section_once() -> None:
    for table in TABLES:
        assert ALL.count(f"### [{table}]\n") == 1
