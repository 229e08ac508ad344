"""Fixtures for pytest: a broker and its clock.

pytest loads this wherever Penstock is installed, so it imports nothing until a fixture
is asked for.

    def test_orders_are_charged(penstock_broker):
        penstock_broker.start(billing)
        ...

    async def test_orders_are_charged(penstock_broker):
        async with penstock_broker as broker:
            await broker.start(billing)
            ...

The broker is in memory, or in ``tmp_path``: by ``@pytest.mark.penstock(disk=True)``, or
for all tests by ``penstock_disk = true`` in the settings of pytest or
``--penstock-disk``. The mark takes whatever Harness takes besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from penstock.testing import Harness, VirtualClock

MARK = "penstock"
SETTING = "penstock_disk"


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "Have the brokers of tests in tmp_path, not in memory."
    parser.getgroup("penstock").addoption(
        "--penstock-disk", dest=SETTING, action="store_true", default=False, help=text
    )
    parser.addini(SETTING, text, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    text = f"{MARK}(disk, options, patience_s): the broker of penstock_broker"
    config.addinivalue_line("markers", text)


@pytest.fixture
def penstock_clock() -> VirtualClock:
    """The clock of ``penstock_broker``; it stands still until it is told to move."""
    from penstock.testing.clock import VirtualClock

    return VirtualClock()


@pytest.fixture
def penstock_broker(
    request: pytest.FixtureRequest, penstock_clock: VirtualClock
) -> Iterator[Harness]:
    """A broker for one test; opened when it is first used, or by ``async with``."""
    from penstock.testing.blocking import Harness

    settings = _settings(request)
    path = None
    if settings.pop("disk", _on_disk(request.config)):
        path = request.getfixturevalue("tmp_path") / "penstock"
    harness = Harness(path, clock=penstock_clock, **settings)
    yield harness
    harness.close()


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the mark says: arguments of Harness."""
    mark = request.node.get_closest_marker(MARK)
    return {} if mark is None else dict(mark.kwargs)


def _on_disk(config: pytest.Config) -> bool:
    return bool(config.getoption(SETTING) or config.getini(SETTING))
