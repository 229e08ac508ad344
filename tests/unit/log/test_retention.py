from __future__ import annotations

import pytest

from penstock.log.options import TopicOptions
from penstock.log.retention import SegmentFacts, new_start

NOW_MS = 1_000_000
# End offset, bytes, largest timestamp.
SEALED = [
    SegmentFacts(10, 100, NOW_MS - 50_000),
    SegmentFacts(20, 200, NOW_MS - 30_000),
    SegmentFacts(30, 300, NOW_MS - 10_000),
]


@pytest.mark.parametrize(
    ("age_s", "size", "start"),
    [
        (None, None, None),
        (50, None, None),  # exactly as old is not older
        (49.999, None, 10),
        (20, None, 20),
        (1, None, 30),
        (None, 640, None),  # 600 sealed and 40 active
        (None, 639, 10),
        (None, 540, 10),
        (None, 339, 30),
        (None, 1, 30),  # the active one stays
        (40, 400, 20),  # whichever asks for more
        (20, 600, 20),
    ],
)
def test_start_moves_behind_the_segments_that_have_to_go(
    age_s: float | None, size: int | None, start: int | None
) -> None:
    options = TopicOptions(retention_age_s=age_s, retention_bytes=size)

    assert new_start(SEALED, 40, options, NOW_MS) == start


def test_young_segment_protects_the_older_ones_behind_it() -> None:
    out_of_order = [SEALED[2], SEALED[0]]
    options = TopicOptions(retention_age_s=20)

    assert new_start(out_of_order, 0, options, NOW_MS) is None


def test_topic_without_sealed_segments_keeps_everything() -> None:
    options = TopicOptions(retention_age_s=1, retention_bytes=1)

    assert new_start([], 1000, options, NOW_MS) is None
