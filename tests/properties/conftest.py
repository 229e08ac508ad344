from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.log.journal import files


@pytest.fixture(autouse=True, scope="module")
def _few_zeros() -> Iterator[None]:
    """Journals of these sizes have groups that bring zeros, and groups that do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "MIN_ZEROS_BYTES", 256)
        patch.setattr(files, "MAX_ZEROS_BYTES", 1024)
        yield
