from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from penstock.server import accepting
from penstock.server.accepting import Acceptor, Entrance
from penstock.server.listeners import GONE_S, LOCAL_RESERVE, Port, bind, bind_local
from penstock.server.options import ServerOptions, TlsOptions
from penstock.server.strangers import ConnectionSlot
from penstock.server.tls import context_of
from tests.interop.certificates import Certificates
from tests.unit.server.scene import Client, Echo, House, house, run, turns


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def listening(one: House, made: Certificates) -> tuple[str, int]:
    """A port that speaks TLS, and an echo."""
    certificate, key = map(str, made.server)
    context = context_of(TlsOptions(cert_file=certificate, key_file=key))
    sock = bind("127.0.0.1", 0, "mqtts")
    port = Port(name="mqtts", sock=sock, make_gateway=Echo, tls=lambda: context)
    one.listeners.listen(port)
    address: tuple[str, int] = sock.getsockname()
    return address


def test_the_system_looks_after_peers_that_are_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            met: list[tuple[int, int]] = []

            def make(place: ConnectionSlot) -> asyncio.Protocol:
                class Meeting(asyncio.Protocol):
                    def connection_made(self, transport: asyncio.BaseTransport) -> None:
                        sock = transport.get_extra_info("socket")
                        alive = socket.SOL_SOCKET, socket.SO_KEEPALIVE
                        idle = socket.IPPROTO_TCP, socket.TCP_KEEPIDLE
                        met.append((sock.getsockopt(*alive), sock.getsockopt(*idle)))
                        place.leave()

                return Meeting()

            sock = bind("127.0.0.1", 0, "line")
            acceptor = Acceptor(
                one.engine.loop,
                Entrance(
                    sock=sock, admit=lambda _: None, leave=lambda _: None, make=make
                ),
            )
            with socket.create_connection(sock.getsockname()):
                await one.until(lambda: met)
            acceptor.close()

            assert met == [(1, GONE_S)]

    run(scene())


def counted(one: House) -> int:
    return one.listeners._addresses.total()


def test_a_handshake_that_is_not_finished_is_counted_and_has_its_time(
    tmp_path: Path, made: Certificates
) -> None:
    async def scene() -> None:
        options = ServerOptions(max_connections=2, login_s=0.2)
        async with house(tmp_path, options) as one:
            address = listening(one, made)
            silent, half = await one.client(address), await one.client(address)
            await half.send(b"\x16\x03\x01\x02\x00\x01\x00")
            await one.until(lambda: counted(one) == 2)

            third = await one.client(address)
            assert await third.rest() == b""
            assert counted(one) == 2

            assert await silent.rest() == b""
            assert await half.rest() == b""
            await one.until(lambda: counted(one) == 0)
            assert not one.engine.connections

    run(scene())


@pytest.mark.parametrize(
    "data", [b"", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n"]
)
def test_whoever_goes_within_a_handshake_gives_its_place_back(
    tmp_path: Path, made: Certificates, data: bytes
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            client = await one.client(listening(one, made))
            await client.send(data)
            await one.until(lambda: counted(one) == 1)

            client.close()

            await one.until(lambda: counted(one) == 0)

    run(scene())


def test_whoever_has_finished_its_handshake_is_served_and_gives_its_place_back(
    tmp_path: Path, made: Certificates
) -> None:
    def speak(address: tuple[str, int], context: ssl.SSLContext) -> bytes:
        with (
            socket.create_connection(address) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as sock,
        ):
            sock.sendall(b"x" * 3000)
            got = b""
            while len(got) < 3006:
                got += sock.recv(4000)
            return got

    async def scene() -> None:
        async with house(tmp_path) as one:
            address = listening(one, made)

            got = await asyncio.to_thread(speak, address, made.context())

            assert got == b"hello\n" + b"x" * 3000
            await one.until(lambda: counted(one) == 0)
            await one.engine.deserted.wait()

    run(scene())


def test_handshakes_are_given_up_when_the_server_accepts_no_more(
    tmp_path: Path, made: Certificates
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            client = await one.client(listening(one, made))
            await one.until(lambda: counted(one) == 1)

            one.listeners.close()

            await one.until(lambda: counted(one) == 0)
            client.close()

    run(scene())


def test_the_certificate_is_asked_for_with_every_connection(
    tmp_path: Path, made: Certificates
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            asked: list[int] = []
            sock = bind("127.0.0.1", 0, "line")
            one.listeners.listen(
                Port(
                    name="line",
                    sock=sock,
                    make_gateway=Echo,
                    tls=lambda: asked.append(1),
                )
            )
            for number in range(1, 3):
                client = await one.client(sock.getsockname())
                assert await client.read(6) == b"hello\n"
                assert len(asked) == number

    run(scene())


def test_the_local_socket_has_a_place_when_all_others_are_taken(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path, ServerOptions(max_connections=2)) as one:
            await one.listen(Echo)
            for _ in range(2):
                assert await (await one.connect()).read(6) == b"hello\n"
            full = await one.connect()
            assert await full.rest() == b"error: too many connections, limit 2\r\n"
            with bind_local(str(tmp_path)) as sock:
                port = Port(name="local", sock=sock, make_gateway=Echo)
                one.listeners.listen(port)

                greeted = [await local(one, tmp_path) for _ in range(LOCAL_RESERVE)]
                assert greeted == [b"hello\n"] * LOCAL_RESERVE
                limit = f"limit {2 + LOCAL_RESERVE}".encode()
                assert limit in await local(one, tmp_path)

    async def local(one: House, folder: Path) -> bytes:
        client = Client((str(folder / "penstock.sock"), 0))
        client.sock.close()
        client.sock = socket.socket(socket.AF_UNIX)
        client.sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client.sock, str(folder / "penstock.sock"))
        one.clients.append(client)
        return await loop.sock_recv(client.sock, 100)

    run(scene())


class Exhausted:
    """A listening socket of a process that has no descriptors."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.number = errno.EMFILE
        self.asked = 0
        self.full = True

    def fileno(self) -> int:
        return self._sock.fileno()

    def accept(self) -> tuple[socket.socket, Any]:
        self.asked += 1
        if self.full:
            raise OSError(self.number, "too many open files")
        return self._sock.accept()

    def close(self) -> None:
        self._sock.close()


@pytest.mark.slow
def test_without_descriptors_it_waits_and_does_not_spin(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(accepting, "PAUSE_S", 0.05)
    told: list[str] = []

    class Told(asyncio.Protocol):
        def __init__(self, place: ConnectionSlot) -> None:
            told.append("made")

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        with bind("127.0.0.1", 0, "line") as sock:
            listener = Exhausted(sock)
            entrance = Entrance(
                sock=listener,  # type: ignore[arg-type]
                admit=lambda address: None,
                leave=told.append,
                make=Told,
            )
            acceptor = Acceptor(loop, entrance)
            with socket.create_connection(sock.getsockname()):
                while not listener.asked:
                    await turns(1)
                await turns(100)
                assert listener.asked == 1
                while listener.asked < 3:
                    await turns(1)
                listener.full = False
                while not told:
                    await turns(1)
                acceptor.close()

    run(scene())

    assert "no connection is accepted" in caplog.text
    assert [one.levelno for one in caplog.records] == [logging.ERROR]
