from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.pipeline.writing import forget
from tests.unit.pipeline.stores import Lists


@pytest.fixture
def store() -> Iterator[Lists]:
    store = Lists()
    yield store
    forget(store)
