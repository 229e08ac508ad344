"""A server in the process for the tests of clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local_server import LocalServer, local_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server
