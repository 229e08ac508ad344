from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.log import core, flusher, recovery
from penstock.log.journal import files


@pytest.fixture(autouse=True, scope="module")
def _few_zeros() -> Iterator[None]:
    """Journals of these sizes have groups that bring zeros, and groups that do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "MIN_ZEROS_BYTES", 256)
        patch.setattr(files, "MAX_ZEROS_BYTES", 1024)
        yield


@pytest.fixture(autouse=True, scope="module")
def _few_topics() -> Iterator[None]:
    """Logs of a few topics have write-outs of some, and checkpoints that wait."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (core, flusher, recovery):
            patch.setattr(module, "MAX_TOPICS", 1)
        yield
