from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serving import serving


@pytest.mark.slow
def test_who_is_connected_is_a_table_and_json(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-json", "--no-maze") as server:
        done = server.run("connections")
        found = json.loads(server.run("connections", "--json").stdout)
        none = server.run("connections", "--gateway", "line")

    headings, row = done.stdout.decode().splitlines()
    assert headings.split()[:3] == ["GATEWAY", "PEER", "NAME"]
    assert row.split()[:3] == ["local", "-", "penstock"]
    assert [one["gateway"] for one in found] == ["local"]
    assert none.stdout == b"no connections\n"
