from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from penstock.gateway.options import LineOptions
from penstock.server.settings import Settings


def test_a_server_can_be_told_nothing_at_all() -> None:
    settings = Settings()

    assert settings.line == LineOptions()
    assert settings.server.host == "127.0.0.1"


def test_every_room_is_told_on_its_own() -> None:
    settings = Settings(line=LineOptions(window=5))

    assert settings.line.window == 5
    assert settings.json == Settings().json


def test_settings_do_not_change() -> None:
    settings = Settings()

    for one in fields(Settings):
        with pytest.raises(FrozenInstanceError):
            setattr(settings, one.name, None)
