"""A follower maze to run through: events out of order, and what each client must get.

The load is made from a seed alone. What is expected comes from a model of its own, a
dict of sets and a loop, which shares nothing with the gateway it judges.

The mix, the blocks that are shuffled and the ten users for each client are those of
the well-known tester; unfollows are drawn from the follows there are, so the graph
stays small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from types import MappingProxyType

MIX: Mapping[str, float] = MappingProxyType(
    {"S": 0.55, "F": 0.15, "U": 0.15, "P": 0.15, "B": 0.0001}
)
MAX_BATCH = 100

# number, kind, from, to; what a kind does not have is 0
MadeEvent = tuple[int, str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MazeLoad:
    """What a source sends, and what each client must get, byte for byte."""

    seed: int
    events: int
    chunks: list[bytes]
    expected: dict[int, bytes]

    @property
    def clients(self) -> list[int]:
        return list(self.expected)

    @property
    def notifications(self) -> int:
        return sum(lines.count(b"\n") for lines in self.expected.values())


def generate(
    seed: int,
    events: int,
    clients: int,
    users: int | None = None,
    *,
    batch: int = MAX_BATCH,
    mix: Mapping[str, float] = MIX,
    line_end: bytes = b"\n",
) -> MazeLoad:
    """A load of ``events``, shuffled within blocks of at most ``batch`` of them.

    One chunk is one block, the way a source flushes it. ``users`` defaults to ten for
    each client.
    """
    random = Random(seed)
    users = 10 * clients if users is None else users
    connected = random.sample(range(1, users + 1), clients)
    in_order = [
        (event, line_of(event) + line_end)
        for event in random_events(random, events, users, mix)
    ]
    return MazeLoad(
        seed=seed,
        events=events,
        chunks=list(shuffled(random, [line for _, line in in_order], batch)),
        expected=notified(in_order, connected),
    )


def random_events(
    random: Random, events: int, users: int, mix: Mapping[str, float] = MIX
) -> Iterator[MadeEvent]:
    """Events in order. Who is unfollowed is followed, as long as any user is."""
    kinds = list(mix)
    weights = list(accumulate(mix.values()))
    follows: list[tuple[int, int]] = []
    for number in range(1, events + 1):
        kind = random.choices(kinds, cum_weights=weights)[0]
        if kind == "U" and not follows:
            kind = "F"
        one = int(random.random() * users) + 1
        other = int(random.random() * users) + 1
        if kind == "F":
            follows.append((one, other))
        elif kind == "U":
            place = int(random.random() * len(follows))
            one, other = follows[place]
            follows[place] = follows[-1]
            follows.pop()
        elif kind == "S":
            other = 0
        elif kind == "B":
            one = other = 0
        yield number, kind, one, other


def line_of(event: MadeEvent) -> bytes:
    """The event as it is sent, without its line end."""
    number, kind, one, other = event
    if kind == "B":
        return b"%d|B" % number
    if kind == "S":
        return b"%d|S|%d" % (number, one)
    return b"%d|%s|%d|%d" % (number, kind.encode(), one, other)


def shuffled(random: Random, lines: list[bytes], batch: int) -> Iterator[bytes]:
    """Blocks of random size up to ``batch``, each in random order."""
    start = 0
    while start < len(lines):
        stop = start + random.randint(1, batch)
        block = lines[start:stop]
        random.shuffle(block)
        yield b"".join(block)
        start = stop


def notified(
    in_order: list[tuple[MadeEvent, bytes]], connected: list[int]
) -> dict[int, bytes]:
    """The lines each connected client must get, by the rules and nothing else."""
    followers: dict[int, set[int]] = {}
    got: dict[int, list[bytes]] = {client: [] for client in connected}
    for (_, kind, one, other), line in in_order:
        targets: set[int] = set()
        if kind == "F":
            followers.setdefault(other, set()).add(one)
            targets = {other}
        elif kind == "U":
            followers.setdefault(other, set()).discard(one)
        elif kind == "P":
            targets = {other}
        elif kind == "S":
            targets = followers.get(one, set())
        elif kind == "B":
            targets = set(connected)
        for target in targets:
            if target in got:
                got[target].append(line)
    return {client: b"".join(lines) for client, lines in got.items()}


def first_difference(client: int, expected: bytes, got: bytes) -> str | None:
    """What is wrong with what a client got, or None."""
    if got == expected:
        return None
    want, have = expected.split(b"\n"), got.split(b"\n")
    at = next(
        (
            i
            for i, pair in enumerate(zip(want, have, strict=False))
            if pair[0] != pair[1]
        ),
        min(len(want), len(have)),
    )
    wanted = want[at] if at < len(want) else b""
    found = have[at] if at < len(have) else b""
    return (
        f"client {client} expected line {wanted!r}, but got {found!r} (line {at + 1})"
    )
