"""One server at a time, in this process; many more in tests/integration."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from penstock.broker.broker import Broker
from penstock.errors import DirectoryLocked
from penstock.gateway.maze import MazeState
from penstock.log import Log, Reader
from penstock.server.options import ListenOptions, ServerOptions
from penstock.server.ready import Ready
from penstock.server.run import serve
from penstock.server.settings import Settings

NONE = dict.fromkeys(ListenOptions.__slots__)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """A server has its process for itself and sets it up so."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)
    gc.unfreeze()


def settings(folder: Path, **ports: int | None) -> Settings:
    return Settings(
        server=ServerOptions(data=str(folder / "data")),
        listen=ListenOptions(**{**NONE, **ports}),
    )


def serve_once(
    settings: Settings, visit: Callable[[Ready], None], ready_file: Path | None = None
) -> int:
    """Serve one visitor, who comes from another thread, then be told to stop."""
    failures: list[BaseException] = []
    visitors: list[Thread] = []

    def come(ready: Ready) -> None:
        try:
            visit(ready)
        except BaseException as error:
            failures.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def announce(ready: Ready) -> None:
        visitors.append(Thread(target=come, args=(ready,)))
        visitors[0].start()

    path = None if ready_file is None else str(ready_file)
    try:
        return serve(settings, ready_file=path, announce=announce)
    finally:
        for visitor in visitors:
            visitor.join()
        if failures:
            raise failures[0]


@pytest.mark.slow
def test_a_server_serves_stops_and_leaves_its_directory(tmp_path: Path) -> None:
    told: list[Ready] = []

    said: list[bytes] = []

    def visit(ready: Ready) -> None:
        told.append(ready)
        said.append((tmp_path / "ready.json").read_bytes())
        address = ("127.0.0.1", ready.ports["line"])
        with socket.create_connection(address, 10.0) as client:
            client.sendall(b'confirm on\npub t {"id":"1"}\n')
            with client.makefile("rb") as lines:
                assert [next(lines) for _ in range(3)][2] == b"published t 1 0\r\n"

    code = serve_once(
        settings(tmp_path, line_port=0), visit, ready_file=tmp_path / "ready.json"
    )

    assert code == 0
    (ready,) = told
    assert list(ready.ports) == ["line"]
    assert not (tmp_path / "ready.json").exists()
    assert json.loads(said[0]) == {
        "pid": os.getpid(),
        "data": str(tmp_path / "data"),
        "ports": dict(ready.ports),
    }
    with Reader.open(tmp_path / "data") as reader:
        assert [one.payloads() for one in reader.read("t", 0)] == [[b"null"]]


@pytest.mark.slow
def test_answers_to_what_came_before_the_end_are_sent(tmp_path: Path) -> None:
    sent = b"confirm on\n" + b"pub t {}\n" * 1000
    got: list[bytes] = []
    clients: list[socket.socket] = []

    def visit(ready: Ready) -> None:
        client = socket.create_connection(("127.0.0.1", ready.ports["line"]), 60.0)
        clients.append(client)
        client.sendall(sent)
        got.append(client.recv(100))

    assert serve_once(settings(tmp_path, line_port=0), visit) == 0

    with clients[0] as client:
        while data := client.recv(1 << 16):
            got.append(data)
    assert b"".join(got).count(b"published t ") == 1000


def test_ports_are_taken_first_and_let_go_if_something_is_wrong(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"publisher port 127.0.0.1:{port}"):
            serve_once(settings(tmp_path, line_port=0, publisher_port=port), refuse_all)

    assert not (tmp_path / "data").exists()


def test_a_directory_in_use_is_an_error_and_the_ports_are_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]

    with Log.open(tmp_path / "data"), pytest.raises(DirectoryLocked) as raised:
        serve_once(settings(tmp_path, line_port=port), refuse_all)

    assert raised.value.pid == os.getpid()
    socket.create_server(("127.0.0.1", port)).close()


def test_a_directory_in_use_is_said_before_its_ports_are(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        Log.open(tmp_path / "data"),
        pytest.raises(DirectoryLocked),
    ):
        port = taken.getsockname()[1]
        serve_once(settings(tmp_path, line_port=port), refuse_all)


@pytest.mark.slow
def test_a_ready_file_that_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text(json.dumps({"pid": os.getpid() + 1, "data": str(tmp_path / "x")}))
    said: list[bytes] = []

    def visit(ready: Ready) -> None:
        said.append(path.read_bytes())

    serve_once(settings(tmp_path, line_port=0), visit, ready_file=path)

    assert json.loads(said[0])["pid"] == os.getpid()
    assert not path.exists()


@pytest.mark.slow
def test_a_ready_file_that_another_server_has_written_since_stays(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ready.json"
    other = json.dumps({"pid": os.getpid() + 1})

    def visit(ready: Ready) -> None:
        path.write_text(other)

    serve_once(settings(tmp_path, line_port=0), visit, ready_file=path)

    assert path.read_text() == other


def test_a_ready_file_that_cannot_be_written_ends_the_server(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        serve_once(
            settings(tmp_path, line_port=0),
            refuse_all,
            ready_file=tmp_path / "nowhere" / "ready.json",
        )

    Broker(partial(Log.open, tmp_path / "data"), kept=[MazeState()]).log.close()


def refuse_all(ready: Ready) -> None:
    raise AssertionError("it is not ready")
