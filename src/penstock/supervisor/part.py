"""A part: one command, what it needs before it starts, and what it says of itself."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.files import Files, make_directories


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """``says_ready``, ``says_status``: its command takes the option for such a file.

    ``needs``: parts that are ready before this one is started; ``after``: the same,
    but for the first time only. ``ends``: it may end by itself with exit code 0, and is
    not started again then. ``orphaned``: the signal it gets when its parent is killed.
    ``rests``: it is started when a client asks for the stream.
    """

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    says_ready: bool = True
    says_status: bool = True
    ends: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    orphaned: int = signal.SIGTERM
    rests: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything of one run is kept, below one directory."""

    directory: Path

    @property
    def broker(self) -> Path:
        """The data of the broker: commands find it by its directory alone."""
        return self.directory

    @property
    def own(self) -> Path:
        return self.directory / "up"

    @property
    def store(self) -> Path:
        return self.own / "store"

    @property
    def checkpoints(self) -> Path:
        return self.own / "checkpoints"

    @property
    def scratch(self) -> Path:
        """What Spark needs while it runs, and leaves behind when it is killed."""
        return self.own / "scratch"

    @property
    def lock(self) -> Path:
        """Held by the one who starts the parts."""
        return self.own / "lock"

    @property
    def parts_lock(self) -> Path:
        """Held until the last of them has ended, also by the parts."""
        return self.own / "parts.lock"

    @property
    def view(self) -> Path:
        """What the run tells of its stages; see run.py."""
        return self.own / "status.json"

    @property
    def before(self) -> Path:
        """How many documents the store had before the first run."""
        return self.own / "before.json"

    @property
    def which_store(self) -> Path:
        """The store that this directory belongs to."""
        return self.own / "store.json"

    @property
    def sums(self) -> Path:
        """What statistics and samples came to, and how far they were read."""
        return self.own / "sums.json"

    def ready(self, part: str) -> Path:
        return self.own / "run" / f"{part}.ready.json"

    def status(self, part: str) -> Path:
        return self.own / "run" / f"{part}.status.json"

    def log(self, part: str) -> Path:
        return self.own / "logs" / f"{part}.log"

    def sweep(self) -> None:
        """Remove what a run that was killed has left."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        Files().make_directory(str(self.scratch))

    def make(self) -> None:
        """Have the folders, for no other user: parts write what they like into them."""
        files = Files()
        for path in (self.store, self.checkpoints, self.own / "run", self.own / "logs"):
            make_directories(files, str(path))
        files.secure(str(self.directory), (self.own.name,))


def read_json(path: Path) -> dict[str, object]:
    """What a part has written of itself; nothing if there is nothing yet."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
