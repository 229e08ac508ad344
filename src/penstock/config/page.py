"""The tables of docs/configuration.md, made from the help texts of the settings.

Run ``python -m penstock.config.page`` and put what it prints in place of the page's
part behind "## All settings".
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from penstock.config.tree import SETTINGS, TABLES, Setting
from penstock.config.values import text_of

ABOUT = {
    "server": "The process, and every connection.",
    "listen": "The ports. `off` leaves a gateway, or one side of it, off.",
    "line": "The line gateway.",
    "json": "The JSON gateway, both of its ports.",
    "maze": "The maze gateway, both of its ports.",
    "native": "The native gateway, which clients and `penstock` commands use.",
    "mqtt": "The [MQTT gateway](protocols/mqtt.md), all of its ports.",
    "tls": "Certificates, for the ports that speak TLS.",
    "control": "The control gateway, which shows tweets to a person.",
    "http": "The [HTTP gateway](http.md) and the dashboard.",
    "tracing": "[Tracing](tracing.md) with OpenTelemetry.",
    "broker": "What the broker keeps.",
    "quota": (
        "What a [user](security.md#quotas) may have at most, unless the users file "
        "says something else of that user."
    ),
    "log": "The log on disk; [operations](operations.md) says more.",
    "topics": "Options that a new topic gets unless it is created with others.",
}


def settings_tables() -> str:
    """A section with a table for each table of settings."""
    return "\n".join(line for table in TABLES for line in _section(table))


def _section(table: str) -> Iterator[str]:
    yield f"### [{table}]"
    yield ""
    yield ABOUT[table]
    yield ""
    yield "| key | default | limits | is |"
    yield "|---|---|---|---|"
    yield from (_row(one) for one in SETTINGS.values() if one.table == table)
    yield ""


def _row(setting: Setting) -> str:
    default = text_of(setting.default, is_size=setting.is_size)
    limit = setting.limit.replace("'", "`")
    return f"| `{setting.name}` | `{default}` | {limit} | {setting.help} |"


if __name__ == "__main__":
    sys.stdout.write(settings_tables())
