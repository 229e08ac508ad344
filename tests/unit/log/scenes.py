"""Data directories in a certain state, and ways to look at them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.log import Columns, Log, LogOptions
from penstock.log.journal.header import HEADER_BYTES

TEN = [b"%d" % number for number in range(10)]
# Journal files, checkpoints and write-outs that fall due after a few events.
SMALL = LogOptions(
    journal_file_bytes=4096,
    checkpoint_bytes=4096,
    write_out_bytes=1024,
    tail_cache_bytes=1024,
)
Restart = Callable[[Log, Path], Log]


def add(log: Log, *texts: bytes, at_ms: int = 0) -> None:
    """Commit some events of topic t."""
    log.append("t", Columns(texts, at_ms))
    log.commit()


def write_out(log: Log) -> None:
    """Have what was committed in segments: no later frame is gathered with it."""
    work = log.flusher.begin_write_out(log.now_ms())
    work.run()
    log.end_store(work)


def segmented(log: Log, *, stored: bool = True) -> None:
    """Offsets 0 to 9 in segments of 0..3, 4..7, and 8..9."""
    add(log, *TEN[:4])
    log.roll("t")
    add(log, *TEN[4:6])
    write_out(log)
    add(log, *TEN[6:8])
    log.roll("t")
    add(log, *TEN[8:])
    if stored:
        log.checkpoint()


def keyed(log: Log, *keys: bytes | None) -> None:
    """A segment of its own for each call, one event a key, its offset the text."""
    start = log.topic("t").next_offset
    texts = [b"%0200d" % (start + index) for index in range(len(keys))]
    log.append("t", Columns(texts, keys=keys))
    log.commit()
    log.roll("t")


def filled(
    directory: Path, count: int, options: LogOptions | None = None
) -> list[bytes]:
    """A log of events in groups of their own that was not closed."""
    log = Log.open(directory, options)
    log.create_topic("t")
    texts = [b"%0200d" % number for number in range(count)]
    for text in texts:
        log.append("t", Columns([text]))
        log.commit()
    log.abandon()
    return texts


def crashed(log: Log, directory: Path) -> Log:
    log.abandon()
    return Log.open(directory)


def ended(log: Log, directory: Path) -> Log:
    log.close()
    return Log.open(directory)


RESTARTS = pytest.mark.parametrize("restart", [crashed, ended])


def segments(log: Log) -> list[int]:
    """The base offsets of the segment files of topic t."""
    directory = Path(log.topic("t").directory)
    return sorted(int(path.stem) for path in directory.glob("*.seg"))


def journals(directory: Path) -> list[Path]:
    return sorted((directory / "journal").iterdir())


def ends(path: Path) -> list[int]:
    """Where the groups of a journal file end."""
    return ends_in(path.read_bytes())


def ends_in(data: bytes) -> list[int]:
    """The same of what was read of one."""
    places, at = [], HEADER_BYTES
    while data[at : at + 4] == b"PNSJ":
        at += int.from_bytes(data[at + 8 : at + 12], "little")
        places.append(at)
    return places


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, but for new journal files."""
    found = [getattr(record, "action", "?") for record in caplog.records]
    return [action for action in found if action != "journal_rolled"]
