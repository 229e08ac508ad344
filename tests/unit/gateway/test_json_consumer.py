from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transcripts import byte_by_byte, play, transcripts, whole


@pytest.mark.parametrize("cut", [whole, byte_by_byte])
@pytest.mark.parametrize("path", transcripts("jsonq"), ids=lambda path: path.stem)
def test_conversation_is_as_written(
    path: Path, tmp_path: Path, cut: Callable[[bytes], list[bytes]]
) -> None:
    play(path, tmp_path, cut)
