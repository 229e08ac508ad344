from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.http.arrow_range import MEDIA_TYPE
from penstock.log import Columns
from tests.unit.http.scene import http_house
from tests.unit.server.scene import run

EVENTS = "/v1/topics/t/events"
ARROW = {"accept": MEDIA_TYPE}


def test_a_range_is_a_table(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            for first in (0, 10):
                rows = [b"%d" % n for n in range(first, first + 10)]
                house.broker.publish("t", Columns(rows, 5, keys=[b"k"] * 10))
                await house.house.promises.kept(house.broker.group)

            answer = await house.ask("GET", f"{EVENTS}?offset=5&limit=8", headers=ARROW)

            assert answer.headers["content-type"].startswith(MEDIA_TYPE)
            table = pa.ipc.open_stream(answer.body).read_all()
            assert table["offset"].to_pylist() == list(range(5, 13))
            assert table["payload"].to_pylist() == [b"%d" % n for n in range(5, 13)]
            assert table["key"].to_pylist() == [b"k"] * 8

    run(scene())


def test_an_empty_range_is_an_empty_table(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.broker.publish("t", Columns([b"1"], 5))
            await house.house.promises.kept(house.broker.group)

            answer = await house.ask("GET", f"{EVENTS}?offset=9", headers=ARROW)

            table = pa.ipc.open_stream(answer.body).read_all()
            assert (table.num_rows, "payload" in table.column_names) == (0, True)

    run(scene())


def test_without_arrow_one_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "penstock.log.arrow", raising=False)

    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.broker.publish("t", Columns([b"1"], 5))
            await house.house.promises.kept(house.broker.group)

            answer = await house.ask("GET", EVENTS, headers=ARROW)

            assert (answer.status, answer.json()["error"]) == (501, "MissingExtra")
            assert "penstock[arrow]" in answer.body.decode()
            assert house.house.opened.count == 0

    run(scene())
