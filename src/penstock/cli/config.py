"""``penstock config``: which settings are in effect, and why."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from penstock.cli import show
from penstock.cli.flags import setting_flags, settings_of
from penstock.cli.output import say, write_line
from penstock.config import Settings, items_of
from penstock.config.values import text_of


@click.group()
def config() -> None:
    """Look at the settings.

    A setting comes from its default, the configuration file, the environment or a
    flag, and each of these counts more than the one before it.
    """


@config.command("show")
@setting_flags
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show_command(*, as_json: bool, **given: Any) -> None:
    """Show the settings in effect, and where each came from.

    Takes the flags of "penstock serve", and shows what a server would use that is
    started with them, here and now. Starts nothing and changes nothing. Sizes have a
    unit where it is exact: KiB, MiB, GiB. A setting that is "off" has no value.

    \b
    Examples:
      penstock config show
      penstock config show --config penstock.toml --line-port 0
      penstock config show --json | jq .listen.line_port.value
    """
    settings = settings_of(given)
    if as_json:
        write_line(msgspec.json.encode(_object(settings)))
        return
    rows = [
        (setting.key, text_of(value, is_size=setting.is_size), origin)
        for setting, value, origin in items_of(settings)
    ]
    for line in show.table([("SETTING", "VALUE", "FROM"), *rows]):
        say(line)


def _object(settings: Settings) -> dict[str, dict[str, object]]:
    """Table -> key -> value and origin."""
    found: dict[str, dict[str, object]] = {}
    for setting, value, origin in items_of(settings):
        table = found.setdefault(setting.table, {})
        table[setting.name] = {"value": value, "from": origin}
    return found
