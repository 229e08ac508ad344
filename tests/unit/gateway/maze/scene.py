"""A maze without sockets: a broker that remembers, a source and clients to drive."""

from __future__ import annotations

from typing import Any

from penstock.broker.log_throttle import LogThrottle
from penstock.broker.publishing import Accepted, StoredPiece
from penstock.errors import Backlogged, InvalidPayload, PenstockError
from penstock.gateway.maze import MazeClient, MazeHub, MazeSource, MazeState
from penstock.gateway.options import MazeOptions
from penstock.log import Batch, Columns, frame_of

ROOM = 1 << 20


class FakeBroker:
    """Keeps what it is given; ``behind`` makes it refuse everything."""

    def __init__(self) -> None:
        self.awake: dict[Any, None] = {}
        self.throttle = LogThrottle()
        self.letters: list[tuple[str, bytes]] = []
        self.batches: list[Batch] = []
        self.behind = False
        self.unfit: set[bytes] = set()
        """Lines that do not fit the schema of the topic."""

    def accept(self, topic: str, columns: Columns) -> Accepted:
        if self.behind:
            raise Backlogged(1, 1)
        refused: dict[int, PenstockError] = {
            index: InvalidPayload(topic, 0, "$", "is not JSON", 1)
            for index, payload in enumerate(columns.payloads)
            if payload in self.unfit
        }
        fit = [index for index in range(len(columns)) if index not in refused]
        if not fit:
            return Accepted([], refused)
        stored = columns.pick(fit)
        stored.check()
        assert stored.keys is None
        base = self.end
        self.batches.append(Batch.of(topic, frame_of(stored, base, b"\0" * 16)))
        return Accepted(
            [StoredPiece(fit, range(base, base + len(fit)), 1, None)], refused
        )

    def dead_letter(self, *, gateway: str, reason: str, raw: bytes) -> None:
        if self.behind:
            raise Backlogged(1, 1)
        assert gateway == "maze"
        self.letters.append((reason, raw))

    @property
    def end(self) -> int:
        return self.batches[-1].end_offset if self.batches else 0

    @property
    def published(self) -> list[bytes]:
        return [line for batch in self.batches for line in batch.payloads()]


class Maze:
    """A hub with what stands around it; time is what ``now_s`` says."""

    def __init__(
        self, *clients: int, state: MazeState | None = None, **options: Any
    ) -> None:
        self.now_s = 1000.0
        self.broker = FakeBroker()
        self.state = MazeState() if state is None else state
        self.hub = MazeHub(self.broker, self.state, MazeOptions(**options))
        self.clients: dict[int, MazeClient] = {}
        self.got: dict[int, bytes] = {}
        for client in clients:
            self.join(client)
        self.source = self.new_source()

    def new_source(self) -> MazeSource:
        self.source = MazeSource(self.hub)
        self.source.connected(self.now_s)
        return self.source

    def connect(self) -> MazeClient:
        client = MazeClient(self.hub)
        client.connected(self.now_s)
        return client

    def join(self, number: int) -> MazeClient:
        client = self.clients[number] = self.connect()
        client.receive(b"%d\n" % number, self.now_s)
        self.got.setdefault(number, b"")
        return client

    def send(self, *lines: str, end: str = "\n") -> None:
        self.feed("".join(line + end for line in lines).encode())

    def feed(self, data: bytes) -> None:
        self.source.receive(data, self.now_s)
        self.pull()

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.hub.tick(self.now_s)
        self.pull()

    def end_source(self) -> None:
        self.source.eof(self.now_s)
        self.source.disconnected(self.now_s)
        self.pull()

    def pull(self) -> None:
        """Hand out output as a server does: to those that were woken."""
        for number, client in self.clients.items():
            if self.broker.awake.pop(client, self) is None:
                self.got[number] += b"".join(client.output(self.now_s, ROOM))

    @property
    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.broker.letters]
