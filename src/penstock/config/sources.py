"""Where settings come from: a TOML file, the environment, the flags of a command.

Each source gives the values it has, with their origin. Whatever it has that is no
setting is an error: a misspelt setting is never ignored.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from penstock.config.tree import (
    RENAMED,
    SETTINGS,
    TABLES,
    Setting,
    nearest,
    nearest_key,
    variable,
)
from penstock.config.values import WrongKind, from_text, from_toml
from penstock.errors import BadConfigFile, InvalidSetting, UnknownSetting

logger = logging.getLogger(__name__)

PREFIX = "PENSTOCK_"
CONFIG_VARIABLE = "PENSTOCK_CONFIG"
SHORTCUTS = {"PENSTOCK_DATA": "server.data", "PENSTOCK_HOST": "server.host"}
# No settings, but options of commands: what is not to stand on a command line.
OF_COMMANDS = ("PENSTOCK_STORE", "PENSTOCK_SERVER")
VARIABLES = {setting.variable: setting for setting in SETTINGS.values()}
OLD_VARIABLES = {variable(old): new for old, new in RENAMED.items()}

# What Kubernetes and Docker tell a container of a service named "penstock".
_OF_A_SERVICE = re.compile(
    r"PENSTOCK_(SERVICE_(HOST|PORT\w*)=.*|PORT\w*=(tcp|udp)://.*"
    r"|PORT_\d+_(TCP|UDP)\w*=.*)"
)


class Value(NamedTuple):
    """A value that is not the default, and where it came from."""

    setting: Setting
    value: object
    origin: str


class Flag(NamedTuple):
    """A flag as given: ``Flag("line.window", "--window", "5")``."""

    key: str
    name: str
    text: str


def of_file(path: str) -> Iterator[Value]:
    """The values of a TOML file.

    The name of before of a setting counts less than its new one.
    """
    origin = f"file {path}"
    given = _given(path, origin)
    for key, raw in sorted(given, key=lambda one: one[0] not in RENAMED):
        if key in RENAMED:
            key = _renamed(key, RENAMED[key], origin)
        setting = SETTINGS.get(key)
        if setting is None:
            raise UnknownSetting(origin, key, nearest_key(*key.split(".", 1)))
        yield Value(setting, _from_toml(setting, raw, origin), origin)


def of_environment(environ: Mapping[str, str]) -> Iterator[Value]:
    """The values of the variables that begin with PENSTOCK_.

    The short name of a setting counts less than its full one.
    """
    known = {
        **{name: SETTINGS[key] for name, key in SHORTCUTS.items()},
        **{name: SETTINGS[key] for name, key in OLD_VARIABLES.items()},
        **VARIABLES,
    }
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            _refuse_variable(name, environ[name], known)
    for name, setting in known.items():
        if name in environ:
            if name in OLD_VARIABLES:
                _renamed(name, setting.variable, "environment")
            yield _from_text(setting, environ[name], f"environment {name}")


def of_flags(flags: Iterable[Flag]) -> Iterator[Value]:
    """The values of a command's flags."""
    for flag in flags:
        yield _from_text(SETTINGS[flag.key], flag.text, f"flag {flag.name}")


def _given(path: str, origin: str) -> Iterator[tuple[str, object]]:
    """Each key of a TOML file, ``table.name``, with its value."""
    for table, keys in _parsed(path).items():
        if table not in TABLES:
            raise UnknownSetting(origin, _shown(table, keys), _near_table(table, keys))
        if not isinstance(keys, dict):
            raise InvalidSetting(table, keys, f"a table, [{table}]", origin)
        for name, raw in keys.items():
            yield f"{table}.{name}", raw


def _renamed(old: str, new: str, origin: str) -> str:
    logger.warning(
        "%s: %s is called %s now; the old name goes with the next version",
        *(origin, old, new),
        extra={"action": "setting_renamed", "setting": new},
    )
    return new


def _parsed(path: str) -> dict[str, object]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except UnicodeDecodeError:
        raise BadConfigFile(path, "is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise BadConfigFile(path, str(error)) from error
    except OSError as error:
        raise BadConfigFile(path, error.strerror or str(error)) from error


def _shown(table: str, keys: object) -> str:
    return f"[{table}]" if isinstance(keys, dict) else table


def _near_table(table: str, keys: object) -> str:
    if not isinstance(keys, dict):
        # A key in front of all tables; it may be one that belongs into a table.
        return nearest_key("", table)
    found = nearest(table, TABLES)
    return f"[{found}]" if found else ""


def _refuse_variable(name: str, value: str, known: Iterable[str]) -> None:
    if name in (CONFIG_VARIABLE, *OF_COMMANDS):
        return
    if _OF_A_SERVICE.fullmatch(f"{name}={value}"):
        return
    near = nearest(name, [*known, CONFIG_VARIABLE])
    raise UnknownSetting("environment", name, near)


def _from_toml(setting: Setting, raw: object, origin: str) -> object:
    try:
        return from_toml(setting.kind, raw, is_size=setting.is_size)
    except WrongKind as error:
        raise InvalidSetting(setting.key, raw, str(error), origin) from error


def _from_text(setting: Setting, text: str, origin: str) -> Value:
    try:
        value = from_text(setting.kind, text, is_size=setting.is_size)
    except WrongKind as error:
        raise InvalidSetting(setting.key, text, str(error), origin) from error
    return Value(setting, value, origin)
