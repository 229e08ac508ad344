"""All settings of a server, merged: defaults < file < environment < flags."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any

from penstock.config.sources import (
    CONFIG_VARIABLE,
    Flag,
    Value,
    of_environment,
    of_file,
    of_flags,
)
from penstock.config.tree import SETTINGS, TABLES, Setting
from penstock.errors import InvalidOption, InvalidSetting
from penstock.server.settings import Settings

DEFAULT = "default"


def load(
    config_file: str | None = None,
    flags: Iterable[Flag] = (),
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings in effect; raises ConfigError naming what is wrong, and where.

    Without ``config_file`` the variable PENSTOCK_CONFIG names the file, if any.
    """
    if environ is None:
        environ = os.environ
    file = config_file or environ.get(CONFIG_VARIABLE)
    values = chain(
        of_file(file) if file else (), of_environment(environ), of_flags(flags)
    )
    return _merged(values)


def items_of(settings: Settings) -> Iterator[tuple[Setting, object, str]]:
    """Every setting with its value and origin, in the order of the tables."""
    for key, setting in SETTINGS.items():
        value = getattr(getattr(settings, setting.table), setting.name)
        yield setting, value, settings.origins.get(key, DEFAULT)


def _merged(values: Iterable[Value]) -> Settings:
    """Later values win."""
    given: dict[str, dict[str, object]] = defaultdict(dict)
    origins = dict.fromkeys(SETTINGS, DEFAULT)
    for setting, value, origin in values:
        given[setting.table][setting.name] = value
        origins[setting.key] = origin
    rooms: dict[str, Any] = {
        table: _made(table, given[table], origins) for table in TABLES
    }
    return Settings(**rooms, origins=MappingProxyType(origins))


def _made(table: str, values: Mapping[str, Any], origins: Mapping[str, str]) -> object:
    try:
        return TABLES[table](**values)
    except InvalidOption as error:
        key = f"{table}.{error.name}"
        raise InvalidSetting(key, error.value, error.limit, origins[key]) from error
