"""Small frames of data directories of earlier versions become large; all else stays."""

from __future__ import annotations

import tarfile
from functools import partial
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.gateway.maze import MazeState
from penstock.log import Log, LogOptions, Reader, frame_sizes, verify
from penstock.model.event import Event
from tests.kept_directory import DIRECTORIES

pytestmark = pytest.mark.slow

KEPT = sorted(DIRECTORIES.glob("*.tar.gz"))
OPTIONS = LogOptions(write_out_bytes=5_000, checkpoint_bytes=50_000)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name)
def test_a_kept_directory_is_gathered_and_holds_the_same_events(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its segments are small: they have few frames.
    monkeypatch.setattr(frame_sizes, "FEWER", 1)
    monkeypatch.setattr(frame_sizes, "GAIN", 1)
    with tarfile.open(kept) as archive:
        archive.extractall(tmp_path, filter="data")
    before = events_in(tmp_path)

    opened = partial(Log.open, tmp_path, OPTIONS)
    with Broker(opened, kept=[MazeState()]) as broker:
        log = broker.log
        assert isinstance(log, Log)
        log.sync()
        for name in log.topics():
            log.roll(name)
        frames = frames_in(log)
        log.maintain()
        # What a killed one had in its journal was gathered as it was written out.
        assert frames_in(log) < frames or "killed" in kept.name
    now = events_in(tmp_path)
    assert {name: now[name] for name in before} == before
    assert not verify(tmp_path).damages


def frames_in(log: Log) -> int:
    """Of all segments of all topics."""
    topics = [log.topic(name) for name in log.topics()]
    return sum(
        1
        for topic in topics
        for segment in topic.segments
        for _ in topic.frames_of(segment)
    )


def events_in(directory: Path) -> dict[str, list[Event]]:
    with Reader.open(directory) as reader:
        return {
            name: [
                event
                for batch in reader.batches(name, reader.topic(name).start_offset)
                for event in batch.events()
            ]
            for name in reader.topics()
        }
