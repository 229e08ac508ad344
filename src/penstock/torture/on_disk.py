"""A server in its own process, on a disk of the user's, and accidents that it survives.

Accidents are real: a process is killed, the kernel refuses to let files grow, bytes of
files change. Only the clock of the machine is left alone: the server's own is set.
"""

from __future__ import annotations

import mmap
import os
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from penstock.errors import CorruptRecord
from penstock.log import (
    INDEX_SUFFIX,
    JOURNAL_SUFFIX,
    SEGMENT_SUFFIX,
    Damage,
    Layout,
    Reader,
    end_of_groups,
    verify,
)
from penstock.torture.child import AHEAD
from penstock.torture.client import LoadClient
from penstock.torture.load import Load
from penstock.torture.notes import WriteNotes, WrittenRange
from penstock.torture.promise import holds
from penstock.torture.record import Truth
from penstock.torture.server import ServerProcess

# Small files, so that a second of work rolls, writes out and checkpoints many times. No
# token for HTTP. Nothing is forgotten because it is old: the clock is set.
CONFIG = """
[log]
journal_file_bytes = 200_000
checkpoint_bytes = 100_000
write_out_bytes = 20_000
tail_cache_bytes = 20_000
[topics]
segment_bytes = 50_000
[broker]
page_cache_bytes = "1MiB"
dedup_age_s = 1e9
pending_ttl_s = 1e9
[http]
open_on_loopback = true
pull_idle_s = 1
"""
STEPS_S = (-86_400.0, -3600.0, -2.0, 2.0, 3600.0, 86_400.0)
FULL_BYTES = (4096, 30_000, 100_000)
MAX_JUNK = 5000
FULL_S = 3.0


class SteppedServer(ServerProcess):
    """A server whose clock can be set, and whose syncs are noted."""

    def __init__(self, directory: Path, *flags: str) -> None:
        clock, notes = directory / "clock", directory / "notes"
        clock.write_bytes(AHEAD.pack(0.0))
        self.notes = WriteNotes.made(notes)
        child = (sys.executable, "-m", "penstock.torture.child")
        self.program = (*child, str(clock), str(notes))
        # Whatever its user has set is for another server.
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PENSTOCK_")
        }
        super().__init__(directory, *flags)
        with clock.open("r+b") as file:
            self._clock = mmap.mmap(file.fileno(), AHEAD.size)

    def step_clock(self, seconds: float) -> None:
        """Set it forward, or back."""
        ahead = AHEAD.unpack(self._clock)[0] + seconds
        self._clock[:] = AHEAD.pack(ahead)


class OnDisk:
    """The world of clients that talk to a server over sockets."""

    def __init__(
        self,
        directory: Path,
        random: Random,
        still_working: Callable[[], None] = lambda: None,
    ) -> None:
        directory.mkdir(parents=True)
        config = directory / "penstock.toml"
        config.write_text(CONFIG)
        self._random = random
        self._directory = directory
        self._flags = ("--no-maze", "--config", str(config))
        self.server = SteppedServer(directory, *self._flags)
        self.server.start()
        self._load = Load([], self.server.ports, still_working)
        self.clients: list[LoadClient] = self._load.clients

    # The world of a scene

    def run(self, done: Callable[[], bool]) -> None:
        self._load.run(done)

    def tear(self, client: LoadClient) -> None:
        self._load.tear(client)

    def leave(self, client: LoadClient) -> None:
        self._load.leave(client)

    def truth(self) -> Truth:
        return Truth.of(self.server.data)

    # Accidents

    def kill(self) -> None:
        """kill -9, and all that it has said before is heard."""
        self._kill()
        self._start()

    def cut_power(self) -> None:
        """kill -9, and of what the log has not synced any part is lost."""
        self._kill()
        unsynced = self.server.notes.unsynced()
        for path in sorted(self.server.data.rglob("*")):
            if path.is_file():
                for lost in unsynced.get(path.stat().st_ino, []):
                    self._lose(path, lost)
        self._start()

    def _lose(self, path: Path, lost: WrittenRange) -> None:
        """Of a write that was not synced: it is there, zeros, junk, or partly so."""
        length = min(lost.length, path.stat().st_size - lost.position)
        kinds = ["there", "zeros", "junk", "cut off"]
        kind = self._random.choice(kinds)
        if kind == "there" or length <= 0:
            return
        start = self._random.randrange(length)
        with path.open("r+b") as file:
            if kind == "cut off" and lost.position + length == path.stat().st_size:
                file.truncate(lost.position + start)
                return
            file.seek(lost.position + start)
            size = length - start
            file.write(self._random.randbytes(size) if kind == "junk" else bytes(size))

    def tear_tail(self) -> None:
        """kill -9 in the middle of a write: behind the last group is half of one."""
        self._kill()
        journal = Path(Layout(str(self.server.data)).journal)
        last = max(journal.glob(f"*{JOURNAL_SUFFIX}"))
        with last.open("r+b") as file:
            data = file.read()
            file.seek(end_of_groups(data))
            file.write(self._junk(data[:MAX_JUNK]))
        self._start()

    def stop(self) -> None:
        """The server ends in peace, and comes back."""
        self._stop()
        self._start()

    def step_clock(self) -> None:
        """The clock is set while everything is at work."""
        self.server.step_clock(self._random.choice(STEPS_S))

    def fill_disk(self, refusals: Callable[[], int]) -> None:
        """No file may grow for a while; publishers hear of it."""
        pid, name = self.server.pid, resource.RLIMIT_FSIZE
        limits = resource.prlimit(pid, name)
        resource.prlimit(pid, name, (self._random.choice(FULL_BYTES), limits[1]))
        enough = refusals() + self._random.randint(1, 5)
        # Or no client has anything to say any more, since none gets an answer.
        self._load.run_for(FULL_S, lambda: refusals() >= enough)
        resource.prlimit(pid, name, limits)

    def flip_bit(self) -> None:
        """A bit of a file changes while the server is down, and is found.

        What is read is what was stored, or is refused; never anything else, and so by a
        server that is started on a copy. The bit is put back, and ours comes up again.
        """
        self._stop()
        truth = self.truth()
        suffix = self._random.choice([JOURNAL_SUFFIX, SEGMENT_SUFFIX])
        found = sorted(self.server.data.rglob(f"*{suffix}"))
        files = [one for one in found if one.stat().st_size]
        if files:
            file = self._random.choice(files)
            position = self._random.randrange(file.stat().st_size)
            _flip(file, position, bit := self._random.randrange(8))
            try:
                self._check_damaged(file, truth)
            finally:
                _flip(file, position, bit)
        holds(not self._damages(), "damage is seen where none is")
        self._start()

    def close(self) -> None:
        """End the server; what it leaves behind is whole."""
        self._load.close()
        holds((code := self.server.stop()) == 0, "the server ended with", code)
        damages = self._damages()
        holds(not damages, "damaged without an accident:", damages)

    def abandon(self) -> None:
        """Something is wrong: leave everything as it is."""
        self._load.close()
        if self.server.running:
            self.server.kill()

    # Within

    def _kill(self) -> None:
        self.server.kill()
        self._load.hear_out()

    def _stop(self) -> None:
        holds((code := self.server.stop()) == 0, "the server ended with", code)
        self._load.hear_out()

    def _start(self) -> None:
        self.server.notes.clear()
        self.server.start()
        self._load.ports = self.server.ports

    def _damages(self) -> list[Damage]:
        """All but of indexes: a power cut may tear them, and they are made again."""
        found = verify(self.server.data).damages
        return [one for one in found if not one.file.endswith(INDEX_SUFFIX)]

    def _junk(self, beginning: bytes) -> bytes:
        """What may stand behind the last group that was synced."""
        size = self._random.randint(1, MAX_JUNK)
        kinds = (bytes(size), self._random.randbytes(size), beginning[:size])
        return self._random.choice(kinds)

    def _check_damaged(self, file: Path, truth: Truth) -> None:
        damages = verify(self.server.data).damages
        if file.suffix == SEGMENT_SUFFIX:
            named = {Path(one.file).name for one in damages}
            holds(file.name in named, "a bit of", file.name, "was flipped, unseen")
        _check_all_read(self.server.data, truth)
        copy = self._directory / "flipped"
        shutil.copytree(
            self.server.data, copy / "data", ignore=shutil.ignore_patterns("*.sock")
        )
        other = SteppedServer(copy, *self._flags)
        try:
            other.start()
            _check_all_read(other.data, truth)
        finally:
            if other.running:
                other.kill()
        shutil.rmtree(copy)


def _check_all_read(data: Path, truth: Truth) -> None:
    with Reader.open(data) as reader:
        for topic in reader.topics():
            if topic in truth.topics:
                _check_read(reader, topic, truth)


def _check_read(reader: Reader, topic: str, truth: Truth) -> None:
    """All that is read is true."""
    stored = truth.topics[topic]
    offset = 0
    while offset < len(stored):
        try:
            batches = reader.read(topic, offset)
        except CorruptRecord:
            offset += 1
            continue
        if not batches:
            return
        for batch in batches:
            for at, payload in zip(batch.offsets(), batch.payloads(), strict=True):
                same = payload == stored[at].payload
                holds(same, topic, at, "is read as", payload, "not", stored[at])
        offset = batches[-1].end_offset


def _flip(file: Path, position: int, bit: int) -> None:
    with file.open("r+b") as handle:
        handle.seek(position)
        byte = handle.read(1)[0]
        handle.seek(position)
        handle.write(bytes([byte ^ 1 << bit]))
