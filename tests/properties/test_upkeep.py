"""Retention, compaction and deletion beside everything else, with accidents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from penstock.log import frame_sizes, housekeeping, store
from penstock.log.core import LogCore
from penstock.log.flusher import Flusher
from penstock.log.topic import Segment, TopicLog
from tests.effort import effort
from tests.properties.upkeep_model import Pump
from tests.ungathered import as_they_came


def lives(count: int) -> Counter[str]:
    met: Counter[str] = Counter()
    for seed in range(count):
        with pytest.MonkeyPatch.context() as patch:
            # Segments are small here.
            patch.setattr(frame_sizes, "FEWER", 1)
            patch.setattr(frame_sizes, "GAIN", 2)
            if seed % 2:
                patch.setattr(store, "gathered", as_they_came)
            pump = Pump(seed)
            pump.run(400)
            pump.check_erased()
        met += pump.met
    return met


def test_nothing_is_lost_doubled_or_left_behind() -> None:
    met = lives(effort(60, 3000))

    wanted = {"deleted", "crash", "closed", "Survey", "ReadKeys", "Rewrite", "Erase"}
    wanted |= {"LookAtFrames", "gathered"}
    assert wanted < met.keys()


def always_sealed(topic: TopicLog) -> list[Segment]:
    """Compacts whatever is sealed by then."""
    return LaterSealed(topic)  # type: ignore[return-value]


class LaterSealed:
    def __init__(self, topic: TopicLog) -> None:
        self._topic = topic

    def __iter__(self) -> object:
        return iter([one for one in self._topic.segments[:-1] if one.sealed])


def keeps_both(log: LogCore, keep: int) -> None:
    log._keep = 2


PLANTED: dict[str, tuple[object, str, Callable[..., object]]] = {
    "sealed later": (housekeeping, "_sealed", always_sealed),
    "a checkpoint forgets": (Flusher, "nothing_to_erase", lambda flusher: True),
    "an older checkpoint": (LogCore, "checkpoint_soon", keeps_both),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, planted = PLANTED[bug]
    monkeypatch.setattr(owner, name, planted)

    with pytest.raises(AssertionError):
        lives(400)
