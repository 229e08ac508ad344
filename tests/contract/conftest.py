"""One server for contract tests that want a real one, and brokers and stores to try."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.embedded_worlds import World
from tests.serving import Serving, serving


@pytest.fixture(scope="session")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture(params=["async", "blocking", "url"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    server = request.getfixturevalue("one_server") if request.param == "url" else None
    found = World(request.param, tmp_path, server)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(params=["postgres", "mongodb"])
def url(request: pytest.FixtureRequest) -> str:
    """A database of each store."""
    found: str = request.getfixturevalue(f"{request.param}_database")
    return found
