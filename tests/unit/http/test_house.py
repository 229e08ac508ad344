from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from penstock.http.options import HttpOptions
from tests.unit.http.scene import http_house
from tests.unit.server.scene import run


def test_a_house_has_what_its_options_say_and_keeps_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path, HttpOptions(max_streams=1)) as house:
            with house.house.opened.one():
                assert house.house.opened.count == 1
            assert len(house.house.sessions) == 0
            with pytest.raises(FrozenInstanceError):
                house.house.clock = house.clock  # type: ignore[misc]

    run(scene())
