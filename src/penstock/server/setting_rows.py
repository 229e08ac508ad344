"""Every setting of a server as a row: its value, its default, where it came from."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from penstock.desk.views.figures import SettingRow
from penstock.server.settings import LOG_HELP, Settings

DEFAULT = "default"
MASK = "********"
# In names of settings whose values are nobody's business.
SECRET = ("password", "secret", "token", "headers")


def setting_rows(settings: Settings) -> list[SettingRow]:
    """In the order of the tables. What is secret is masked."""
    rows = []
    for table in fields(settings):
        options = getattr(settings, table.name)
        if not is_dataclass(options):
            continue  # the origins
        for one in fields(options):
            key = f"{table.name}.{one.name}"
            rows.append(
                SettingRow(
                    key=key,
                    value=_shown(one.name, getattr(options, one.name)),
                    default=_shown(one.name, one.default),
                    origin=settings.origins.get(key, DEFAULT),
                    help=one.metadata.get("help") or LOG_HELP.get(key, ""),
                )
            )
    return rows


def _shown(name: str, value: object) -> str | int | float | bool | None:
    if value is not None and any(word in name for word in SECRET):
        return MASK
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
