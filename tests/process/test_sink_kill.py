"""A query writes in epochs while its server is killed: every epoch is there once.

The writer does what Spark does: it stages the partitions of an epoch, commits it, and
begins the epoch anew whenever it is told that something is missing, or nothing at all.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.client import Client, connect
from penstock.errors import ConnectionLost, NotRunning, ServerRefused
from penstock.log import verify
from tests.effort import effort
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

QUERY = "spark-job"
PARTITIONS = 3
EVENTS = 200
KILLS = effort(4, 8)
SEED = 11
PATIENCE_S = 120.0
# Small files, so that an epoch rolls, writes out and checkpoints.
CONFIG = """
[log]
journal_file_bytes = 200_000
checkpoint_bytes = 100_000
write_out_bytes = 20_000
[topics]
segment_bytes = 50_000
"""


def payloads(epoch: int, partition: int) -> list[bytes]:
    return [b"%d %d %d" % (epoch, partition, number) for number in range(EVENTS)]


class Writer:
    """Writes epochs until it is told to stop; runs in a thread of its own."""

    def __init__(self, server: Serving) -> None:
        self.epoch = 0
        self.met: Counter[str] = Counter()
        self.stopping = False
        self.gate = threading.Event()
        """Cleared: it stops when an epoch is staged and not committed yet."""
        self.gate.set()
        self.staged = threading.Event()
        """Set while it stands there."""
        self.error: BaseException | None = None
        self._data = server.data
        self._random = Random(SEED)
        self._attempt = 0
        self._parts: list[list[int]] | None = None
        """Of a commit without an answer: it is asked for again."""
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "it hangs"

    def _run(self) -> None:
        try:
            while not self.stopping:
                try:
                    with connect(self._data, timeout_s=PATIENCE_S) as client:
                        while not self.stopping:
                            self._write(client)
                except (NotRunning, ConnectionLost) as error:
                    self.met[type(error).__name__] += 1
                    time.sleep(0.01)  # until it is started again
        except BaseException as error:
            self.error = error

    def _write(self, client: Client) -> None:
        """One try of an epoch, or of its commit."""
        if self._parts is None:
            self._parts = self._stage_all(client)
            if not self.gate.is_set():
                self.staged.set()
                self.gate.wait(PATIENCE_S)
                self.staged.clear()
        try:
            done: Any = client.ask(
                "sinks.commit", query=QUERY, epoch=self.epoch, parts=self._parts
            )
        except ServerRefused as error:
            self.met[error.error] += 1
            self._parts = None
            assert error.error == "MissingStage", error
            return
        assert done["committed"]
        self.met["before" if done["before"] else "committed"] += 1
        self._parts = None
        self.epoch += 1

    def _stage_all(self, client: Client) -> list[list[int]]:
        parts = []
        for partition in range(PARTITIONS):
            # A task may fail, and is run again.
            for _ in range(self._random.choice([1, 1, 1, 2])):
                self._attempt += 1
                self._stage(client, partition)
            parts.append([partition, self._attempt])
        return parts

    def _stage(self, client: Client, partition: int) -> None:
        place = (QUERY, self.epoch, partition, self._attempt)
        events, half = payloads(self.epoch, partition), EVENTS // 2
        piece = client.stage(*place, "out", events[:half])
        client.stage(*place, "out", events[half:], piece=piece)


def kill_somewhere(
    server: Serving, writer: Writer, random: Random, *, between: bool
) -> None:
    """Between stage and commit, or anywhere in the middle of commits."""
    before = writer.epoch
    deadline_s = time.monotonic() + PATIENCE_S
    while writer.epoch < before + 2:
        assert writer.error is None, writer.error
        assert time.monotonic() < deadline_s, "nothing is written"
        time.sleep(0.001)
    if between:
        writer.gate.clear()
        assert writer.staged.wait(PATIENCE_S)
    else:
        time.sleep(random.random() * 0.02)  # where in a commit is left to chance
    server.kill()
    writer.gate.set()


def test_every_epoch_is_stored_once_whatever_is_killed(tmp_path: Path) -> None:
    random = Random(SEED)
    config = tmp_path / "penstock.toml"
    config.write_text(CONFIG)
    with serving(tmp_path, "--config", str(config)) as server:
        with Writer(server) as writer:
            for kill in range(KILLS):
                kill_somewhere(server, writer, random, between=kill % 2 == 0)
                server.start()
        assert writer.error is None, writer.error

        assert server.stop() == 0
        server.start()
        with connect(server.data) as client:
            (row,) = client.ask("sinks")["sinks"]  # type: ignore[index]
            found = [
                payload
                for part in client.fetch_all("out", 0, 1 << 40)
                for batch in part.batches
                for payload in batch.payloads()
            ]
        # The last may be stored although its answer was lost when the writer stopped.
        assert row["epoch"] in (writer.epoch - 1, writer.epoch)
        per_epoch = PARTITIONS * EVENTS
        assert len(found) == (row["epoch"] + 1) * per_epoch
        for epoch in range(row["epoch"] + 1):
            whole = found[epoch * per_epoch : (epoch + 1) * per_epoch]
            assert whole == [
                payload
                for partition in range(PARTITIONS)
                for payload in payloads(epoch, partition)
            ], f"epoch {epoch}"
    assert writer.met["committed"] > KILLS
    assert writer.met["MissingStage"] >= KILLS // 2, writer.met
    assert not verify(server.data).damages
