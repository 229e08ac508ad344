"""A reader in this process follows a log that another process writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from penstock.log import Reader
from tests.effort import effort
from tests.process.test_kill import appending, texts

# That it confirms; all that is there is read fifty times meanwhile.
LINES = effort(1000, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["inline", "threaded", "gathering"])
def test_reader_follows_a_living_log_and_sees_only_whole_synced_events(
    tmp_path: Path, mode: str
) -> None:
    looks = 0
    with (
        appending(tmp_path, mode) as child,
        Reader.open(ready(child, tmp_path)) as reader,
    ):
        try:
            assert child.stdout is not None
            for number, line in enumerate(child.stdout):
                name, end = line.rsplit(" ", 1)
                if number % (LINES // 50) == 0:
                    looks += 1
                    look(reader, name, int(end))
                if number >= LINES:
                    break
        finally:
            child.kill()
        if mode == "gathering":
            assert events_of_a_frame(reader) > 4
    assert looks > 40
    assert not reader.damages


def events_of_a_frame(reader: Reader) -> float:
    """In the sealed segments that are there; one is what they came with."""
    topics = [reader.topic(name) for name in reader.topics()]
    frames = [
        found.header.events
        for topic in topics
        for segment in topic.segments[:-1]
        for found in topic.frames_of(segment)
    ]
    return sum(frames) / len(frames)


def ready(child: subprocess.Popen[str], directory: Path) -> Path:
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return directory


def look(reader: Reader, name: str, confirmed: int) -> None:
    """All that is confirmed is there, and whatever is there is right."""
    reader.refresh()
    end = reader.topic(name).end_offset

    assert end >= confirmed
    assert texts_up_to(reader, name, end) == [b"%d" % n for n in range(end)]


def texts_up_to(reader: Reader, name: str, end: int) -> list[bytes]:
    return texts(reader, name)[:end]
