"""Confirms every line at once and keeps nothing: what the loader can do alone."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from bench.peers.adapter import Adapter, Consumer, Dialogue, Place
from bench.peers.processes import Server, free_port, spawn

CONFIRMATION = b"published t 123456 123456\r\n"
# More lines than one read can hold.
MOST = 1 << 14
ROOT = Path(__file__).resolve().parents[2]


def start(folder: Path, variant: str) -> Server:
    port, ready = free_port(), folder / "ready"
    command = [sys.executable, "-m", __name__, str(port), str(ready)]
    process = spawn(command, folder, ready.exists, {"PYTHONPATH": str(ROOT)})
    place = Place(ports={"line": port}, pids=[process.pid])
    return Server(place=place, processes=[process])


def serve(port: int, ready: Path) -> None:
    """One connection after the other, until killed."""
    answers = memoryview(CONFIRMATION * MOST)
    with socket.create_server(("127.0.0.1", port)) as listener:
        ready.touch()
        while True:
            sock, _ = listener.accept()
            # Answers must not wait for the client's acknowledgement of earlier ones.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with sock:
                while data := sock.recv(1 << 18):
                    lines = data.count(b"\n")
                    sock.sendall(answers[: lines * len(CONFIRMATION)])


class Sink(Adapter):
    """Publishes in the words of the line gateway."""

    def prepare(self, topics: int) -> None:
        pass

    def publisher(self) -> socket.socket:
        return Dialogue(self.place.ports["line"]).sock

    def request(self, number: int, topic: int, payload: bytes) -> bytes:
        return b'pub t%d {"id":"%d","msg":"%b"}\r\n' % (topic, number, payload)

    def confirmed(self, data: bytes) -> int:
        return data.count(b"\n")

    def consumer(self, window: int, topic: int = 0) -> Consumer:
        raise NotImplementedError

    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        raise NotImplementedError


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
