"""The package itself: cheap to import, and its names are where they should be."""

from __future__ import annotations

import subprocess
import sys

import pytest

import penstock

IMPORT = """
import sys
import penstock
assert penstock.__version__
assert "Topic" in dir(penstock)
heavy = {"asyncio", "uvloop", "msgspec", "penstock.embedded"} & set(sys.modules)
assert not heavy, heavy
penstock.Topic
assert "penstock.embedded" in sys.modules
assert penstock.desk.topics
"""


@pytest.mark.slow
def test_importing_the_package_loads_nothing_else() -> None:
    run = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, timeout=60
    )

    assert run.returncode == 0, run.stderr


def test_every_name_can_be_had() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None

    assert penstock.Topic is penstock.Topic


def test_other_names_are_errors_that_name_them() -> None:
    with pytest.raises(AttributeError, match="'penstock' has no attribute 'nothing'"):
        penstock.nothing  # noqa: B018
