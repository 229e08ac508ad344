"""Conversations with a broker, written down: they are tests and documentation.

A transcript in tests/data/line or tests/data/jsonq has a line for everything that
happens, and the answers must be these, byte for byte, and no others:

    # a remark
    * reader connects to line       or: connects to consumer, connects to publisher
    reader > sub tweets             a client sends a line
    reader < error: topic …         the server sends a line
    @ +10s                          time passes: what follows comes at that moment
    * reader disconnects            the connection is gone
    * reader ends                   the client sends no more
    * reader is closed              the server has closed the connection
    * broker restarts               all connections are gone, the files are read again
    * broker is killed              the same, without a chance to write anything

With one client only, its name may be left out. In front of everything may stand
settings, ``* set line.window = 3``, and passwords, ``* password of anna is secret``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.unit.gateway.scene import Peer, Rules, Scene

DATA = Path(__file__).parent / "data"
# What comes so much before its time comes too early. A power of two: exact in sums.
EARLY_S = 0.125

_SAID = re.compile(r"(?P<who>\w*) ?(?P<way>[<>]) (?P<text>.*)")
_TIME = re.compile(r"@ \+(?P<seconds>\d+)s")
_RULE = re.compile(r"\* set (?P<room>\w+)\.(?P<name>\w+) = (?P<value>.*)")
_PASSWORD = re.compile(r"\* password of (?P<who>\w+) is (?P<password>\w+)")
_DEED = re.compile(
    r"\* (?:(?P<who>\w+) )?(?:connects to (?P<port>\w+)|(?P<deed>is closed|[a-z]+))"
)


def transcripts(folder: str) -> list[Path]:
    """All transcripts of a protocol."""
    return sorted((DATA / folder).glob("*.txt"))


def whole(data: bytes) -> list[bytes]:
    """A line comes in one read."""
    return [data]


def byte_by_byte(data: bytes) -> list[bytes]:
    """The network has cut a line into all its pieces."""
    return [data[at : at + 1] for at in range(len(data))]


def play(path: Path, folder: Path, cut: Callable[[bytes], list[bytes]]) -> None:
    """Carry a transcript out; fails at the first line that is not as written."""
    steps = [
        (number, line)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if line and not line.startswith("#")
    ]
    rules = Rules()
    while steps and _set(rules, steps[0][1]):
        steps.pop(0)
    player = Player(Scene(folder, rules), cut)
    try:
        for number, line in [*steps, (0, "@ +0s")]:
            try:
                player.step(line)
            except AssertionError as error:
                where = f"{path.name}:{number}: {line}" if number else path.name
                raise AssertionError(f"{where}\n{error}") from None
    finally:
        player.scene.close()


class Player:
    def __init__(self, scene: Scene, cut: Callable[[bytes], list[bytes]]) -> None:
        self.scene = scene
        self._cut = cut
        self._peers: dict[str, Peer] = {}

    def step(self, line: str) -> None:
        """Carry one line out."""
        if (said := _SAID.fullmatch(line)) and said["way"] == "<":
            self._hear(said["who"], said["text"])
            return
        self._expect_nothing_more()
        if said:
            for piece in self._cut(said["text"].encode() + b"\n"):
                self._peers[said["who"]].send(piece)
        elif time := _TIME.fullmatch(line):
            self._wait(int(time["seconds"]))
        elif line in ("* broker restarts", "* broker is killed"):
            self.scene.restart(kill="killed" in line)
            self._peers.clear()
        elif deed := _DEED.fullmatch(line):
            self._do(deed["who"] or "", deed["port"], deed["deed"])
        else:
            raise AssertionError("no line of a transcript")

    def _hear(self, who: str, text: str) -> None:
        peer = self._peers[who]
        line, end, rest = peer.got.partition(b"\r\n")
        assert end, f"nothing came; got {peer.got!r}"
        assert line == text.encode(), f"came: {line.decode(errors='replace')}"
        peer.got = rest

    def _expect_nothing_more(self) -> None:
        for who, peer in self._peers.items():
            assert not peer.got, f"before it {who or 'the client'} got {peer.got!r}"

    def _wait(self, seconds: int) -> None:
        if seconds:
            self.scene.advance(seconds - EARLY_S)
            self._expect_nothing_more()
            self.scene.advance(EARLY_S)

    def _do(self, who: str, port: str | None, deed: str | None) -> None:
        if port:
            self._peers[who] = self.scene.connect(port)
            self.scene.pump()
        elif deed == "disconnects":
            self._peers.pop(who).disconnect()
            self.scene.pump()
        elif deed == "ends":
            self._peers[who].end()
        else:
            assert deed == "is closed", f"nobody knows how to do that: {deed}"
            assert self._peers[who].closed, "the connection stands"
            self._do(who, None, "disconnects")


def _set(rules: Rules, line: str) -> bool:
    if found := _PASSWORD.fullmatch(line):
        rules.passwords[found["who"]] = found["password"]
    elif found := _RULE.fullmatch(line):
        options = getattr(rules, found["room"])
        change = {found["name"]: json.loads(found["value"])}
        setattr(rules, found["room"], replace(options, **change))
    return found is not None
