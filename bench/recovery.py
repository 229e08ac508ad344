"""Starting after SIGKILL: how fast the journal is replayed, and what history costs.

A child process fills a data directory and is killed while it goes on. Replaying
means reading and verifying the journal, and writing the topic's segments again. With
regular checkpoints only the journal since the last but one has to be replayed,
however long the history is.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

from bench.rounds import MIB, Row, Sample, Settings, Stopwatch, payloads, scratch
from penstock.log import Batch, Columns, Log, LogOptions, TopicOptions, frame_of

NAME = "recovery"
BATCH = 1000
CASES = {"100 B": 100, "1 KiB": 1024}
GIB = 1 << 30
MIN_MIB_PER_S = 300
HISTORIES_MIB = (100, 500, 2000)
# No checkpoint falls due, so that the whole journal has to be replayed.
UNCHECKED = LogOptions(journal_file_bytes=256 * MIB, checkpoint_bytes=1 << 40)


def run(settings: Settings) -> list[Row]:
    rows = [_replay(settings, case, size) for case, size in CASES.items()]
    rows += [_history(settings, settings.scaled(size)) for size in HISTORIES_MIB]
    return rows


def _replay(settings: Settings, case: str, size: int) -> Row:
    length = settings.scaled(GIB)
    samples = []
    for _ in range(settings.rounds):
        with scratch(settings.directory) as folder:
            _fill_and_kill(folder, length, size, checkpoints=False)
            samples.append(_start(folder, UNCHECKED, length))
    sample = sorted(samples, key=lambda one: one.mib_per_s)[len(samples) // 2]
    return Row(
        benchmark=NAME,
        case=case,
        contender=f"journal of {sample.bytes // MIB} MiB",
        rate=f"{sample.mib_per_s:.0f} MiB/s, {sample.events / 1e6:.1f} M events",
        cpu_s_per_million=sample.cpu_s_per_million,
        target=f"at least {MIN_MIB_PER_S} MiB/s",
        met=sample.mib_per_s >= MIN_MIB_PER_S,
    )


def _history(settings: Settings, size_mib: int) -> Row:
    seconds, replayed = [], []
    with scratch(settings.directory) as folder:
        for step in range(1, settings.rounds + 1):
            _fill_and_kill(folder, size_mib * MIB * step // settings.rounds, 100)
            sample = _start(folder, LogOptions(), 1)
            seconds.append(sample.seconds)
            replayed.append(sample.bytes)
    return Row(
        benchmark=NAME,
        case="100 B",
        contender=f"start, {size_mib} MiB of history",
        rate=f"{statistics.median(seconds):.2f} s, "
        f"{statistics.median(replayed) / MIB:.0f} MiB replayed",
    )


def _start(folder: Path, options: LogOptions, least: int) -> Sample:
    watch = Stopwatch()
    log = Log.open(folder, options)
    sample = watch.stop(log.topic("t").end_offset, log.report.journal_bytes)
    assert not log.report.damages
    assert sample.bytes >= least or log.report.checkpoint_position > 0
    log.abandon()
    return sample


def _fill_and_kill(
    folder: Path, length: int, size: int, *, checkpoints: bool = True
) -> None:
    """Have a child write until the topic has ``length`` bytes more or less."""
    command = [sys.executable, "-m", __spec__.name]
    command += [str(folder), str(length), str(size), str(int(checkpoints))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        child.kill()
        assert line == b"enough\n"


def _child(folder: str, length: str, size: str, checkpoints: str) -> None:
    events = payloads(BATCH, int(size))
    options = LogOptions() if int(checkpoints) else UNCHECKED
    log = Log.open(folder, options)
    if "t" not in log.topics():
        log.create_topic("t", TopicOptions(durability="os"))
    frame = frame_of(Columns(events), 0, bytes(16))
    enough = False
    while True:
        log.append("t", Batch.of("t", frame))
        log.commit(sync=False)
        if not enough and log.topic("t").end_offset // BATCH * len(frame) >= int(
            length
        ):
            os.write(1, b"enough\n")
            enough = True


if __name__ == "__main__":
    _child(*sys.argv[1:])
