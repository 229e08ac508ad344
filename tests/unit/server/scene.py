"""A server in this process: real loop, real sockets, a clock that moves when told."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from penstock.broker.broker import Broker
from penstock.clock import ManualClock
from penstock.gateway.gateway import Gateway, LoginRequest
from penstock.log import Journal, Log, LogOptions
from penstock.server.connection import Connection
from penstock.server.engine import Engine
from penstock.server.listeners import Listeners, Port, bind
from penstock.server.options import ServerOptions
from penstock.server.users import Users
from tests.unit.log.faults import FaultyFiles

# Nothing here takes so long.
TIMEOUT_S = 60.0


def run(scene: Coroutine[Any, Any, None]) -> None:
    """Run a scene in a loop as the server has one."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scene, TIMEOUT_S))


class Echo(Gateway):
    """Sends back what it gets; does as it is told in other respects."""

    def __init__(self) -> None:
        self.got = b""
        self.answers: deque[bytes] = deque()
        self.ends = 0
        self.left = False
        self.fails = ""
        """The step that fails."""

    def connected(self, now_s: float) -> None:
        self._meet("connected")
        self.answers.append(b"hello\n")

    def receive(self, data: bytes, now_s: float) -> None:
        self._meet("receive")
        self.got += data
        self.answers.append(data)
        if data.startswith(b"login "):
            self.login = LoginRequest("anna", data[6:].strip().decode())

    def eof(self, now_s: float) -> None:
        self._meet("eof")
        self.ends += 1
        self.closing = True

    def logged_in(self, ok: bool, now_s: float) -> None:
        self.login = None
        self.answers.append(b"in\n" if ok else b"out\n")

    def output(self, now_s: float, room: int) -> list[bytes]:
        self._meet("output")
        answers, self.answers = self.answers, deque()
        return list(answers)

    def disconnected(self, now_s: float) -> None:
        self.left = True
        self._meet("disconnected")

    def _meet(self, step: str) -> None:
        if step == self.fails:
            raise RuntimeError(f"{step} fails as planned")


async def turns(count: int) -> None:
    """Let the loop turn so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


class House:
    """A broker, an engine and listeners. Nothing ticks by itself."""

    def __init__(
        self,
        folder: Path,
        options: ServerOptions,
        users: Users | None,
        log: LogOptions | None,
        journal: Journal | None = None,
        sync_wait_s: float = 0.0,
    ) -> None:
        self.clock = ManualClock()
        self.files = FaultyFiles()
        open_log = partial(
            Log.open, folder, log, files=self.files, clock=self.clock, journal=journal
        )
        self.broker = Broker(open_log)
        loop = asyncio.get_running_loop()
        self.engine = Engine(self.broker, self.clock, loop, sync_wait_s=sync_wait_s)
        self.listeners = Listeners(self.engine, options, users)
        self.gateways: list[Gateway] = []
        self.addresses: list[tuple[str, int]] = []
        self.clients: list[Client] = []

    async def listen(
        self,
        make_gateway: Callable[[], Gateway],
        connection: type[Connection] = Connection,
    ) -> None:
        """One more port; what is made there is in ``gateways``."""

        def make() -> Gateway:
            self.gateways.append(make_gateway())
            return self.gateways[-1]

        sock = bind("127.0.0.1", 0, "test")
        self.addresses.append(sock.getsockname())
        self.listeners.listen(
            Port(name="test", sock=sock, make_gateway=make, connection=connection)
        )

    async def connect(self, port: int = 0) -> Client:
        """A client that was let in, or not: the server knows of it."""
        return await self.client(self.addresses[port])

    async def client(self, address: tuple[str, int]) -> Client:
        """A client of any address; it is closed in the end."""
        client = Client(address)
        self.clients.append(client)
        await client.open()
        return client

    async def until(self, condition: Callable[[], object]) -> None:
        """Let the loop turn until something is so."""
        while not condition():
            await turns(1)

    def gateway(self, number: int = -1) -> Echo:
        found = self.gateways[number]
        assert isinstance(found, Echo)
        return found


class Client:
    """A plain socket in the same loop."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.sock = socket.socket()
        self.sock.setblocking(False)
        self._address = address
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        await self._loop.sock_connect(self.sock, self._address)

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def read(self, count: int) -> bytes:
        """So many bytes; fewer if the server closes before."""
        got = bytearray()
        while len(got) < count:
            data = await self._loop.sock_recv(self.sock, count - len(got))
            if not data:
                break
            got += data
        return bytes(got)

    async def lines(self, count: int) -> list[bytes]:
        """So many lines, without their line ends."""
        got = b""
        while got.count(b"\n") < count:
            data = await self._loop.sock_recv(self.sock, 1)
            assert data, f"closed after {got!r}"
            got += data
        return got.splitlines()

    async def rest(self) -> bytes:
        """All there is until the server closes; also if it does so rudely."""
        got = bytearray()
        with suppress(ConnectionError):
            while data := await self._loop.sock_recv(self.sock, 1 << 18):
                got += data
        return bytes(got)

    def end(self) -> None:
        """Send no more."""
        self.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.sock.close()


@asynccontextmanager
async def house(
    folder: Path,
    options: ServerOptions | None = None,
    users: Users | None = None,
    log: LogOptions | None = None,
    journal: Journal | None = None,
    sync_wait_s: float = 0.0,
) -> AsyncIterator[House]:
    options = options or ServerOptions()
    one = House(folder, options, users, log, journal, sync_wait_s)
    try:
        yield one
    finally:
        one.listeners.close()
        for client in one.clients:
            client.close()
        for connection in list(one.engine.connections.values()):
            connection.abort()
        await one.engine.deserted.wait()
        await one.engine.stop()
        one.broker.log.abandon()
