"""``penstock serve`` as a process: its start, its limits and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.log import Reader
from penstock.server.listeners import LOCAL_RESERVE
from penstock.server.users_file import set_password
from tests.serving import PENSTOCK, serving
from tests.wire_client import PATIENCE_S, Wire

pytestmark = pytest.mark.slow

ONLY_LINE = ("--no-json", "--no-maze", "--no-native", "--no-http", "--no-mqtt")
GREETING = "Successfully connected to message_broker"


def configured(folder: Path, text: str) -> tuple[str, str]:
    path = folder / "penstock.toml"
    path.write_text(text)
    return "--config", str(path)


def refused(folder: Path, *flags: str) -> str:
    """What a server says that does not start."""
    done = subprocess.run(
        [*PENSTOCK, "serve", *flags],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def stored(data: Path, topic: str) -> int:
    """How many events a topic holds."""
    count = offset = 0
    with Reader.open(data) as reader:
        while batches := reader.read(topic, offset):
            count += sum(map(len, batches))
            offset = batches[-1].end_offset
    return count


# The start


def test_a_server_is_ready_when_it_says_so_and_stops_when_told(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        told = json.loads((tmp_path / "ready.json").read_bytes())
        assert told["pid"] == server.pid
        assert told["data"] == str(server.data)
        assert len(set(server.ports.values())) == 8
        for port in server.ports.values():
            Wire(port).sock.close()
        with Wire(server.ports["line"]) as wire:
            assert wire.line() == GREETING

        assert server.stop() == 0


def test_a_port_in_use_is_said_in_one_line_and_nothing_is_started(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        free = one.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(
            tmp_path,
            *("--data", "data", "--line-port", str(free)),
            *(
                "--native-port",
                str(port),
                "--no-json",
                "--no-maze",
                "--no-http",
                "--no-mqtt",
            ),
        )

    assert said == (
        f"error: native port 127.0.0.1:{port}: Address already in use\n"
        "hint: give 'penstock serve' another one with --native-port, 0 is a free one\n"
    )
    assert list(tmp_path.iterdir()) == []
    socket.create_server(("127.0.0.1", free)).close()


def test_a_directory_of_another_process_names_it_and_the_ports_stay_free(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        free = str(one.getsockname()[1])
    with serving(tmp_path, *ONLY_LINE) as server:
        said = refused(
            tmp_path, "--data", str(server.data), "--line-port", free, *ONLY_LINE
        )

        first, hint = said.splitlines()
        assert first == (
            f"error: data directory {server.data} is held by process {server.pid}"
        )
        assert hint.startswith("hint: ")
        socket.create_server(("127.0.0.1", int(free))).close()
        with Wire(server.ports["line"]) as wire:
            assert wire.line() == GREETING


def test_other_machines_need_users_or_a_word_that_it_is_meant(tmp_path: Path) -> None:
    said = refused(tmp_path, "--host", "0.0.0.0", "--data", "data")

    assert said.startswith("error: ")
    assert "0.0.0.0" in said
    assert not (tmp_path / "data").exists()
    with (
        serving(tmp_path, "--host", "0.0.0.0", "--insecure", *ONLY_LINE) as server,
        Wire(server.ports["line"]) as wire,
    ):
        assert wire.line() == GREETING
        said = server.log.read_text()
        assert "warning: every client that reaches 0.0.0.0" in said
        assert "warning: what travels to and from 0.0.0.0 can be read" in said


# The end


def test_everything_that_was_taken_in_before_the_end_is_confirmed(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, *ONLY_LINE) as server, Wire(server.ports["line"]) as wire:
        wire.say("confirm on", *["pub t {}"] * 3000)
        assert wire.lines(3)[2].startswith("published t ")

        assert server.stop() == 0

        confirmed = wire.rest().count(b"published t ") + 1
    assert confirmed == stored(server.data, "t") > 0


def test_a_second_signal_ends_a_server_that_waits_for_a_reader(tmp_path: Path) -> None:
    limits = configured(tmp_path, "[server]\ndrain_s = 600\n")
    with serving(tmp_path, *limits, *ONLY_LINE) as server:
        port = server.ports["line"]
        with deaf_reader(port, "t"), Wire(port) as writer:
            publish_bytes(writer, "t", 32 << 20)
            os.kill(server.pid, signal.SIGTERM)
            wait_until_nobody_listens(port)

            assert server.stop() == 1


def test_a_reader_that_does_not_read_is_cut_off_in_the_end(tmp_path: Path) -> None:
    limits = configured(tmp_path, "[server]\ndrain_s = 0.2\n")
    with serving(tmp_path, *limits, *ONLY_LINE) as server:
        port = server.ports["line"]
        with deaf_reader(port, "t"), Wire(port) as writer:
            publish_bytes(writer, "t", 32 << 20)

            assert server.stop() == 0

        assert "not drained within 0.2 s" in server.log.read_text()


def wait_until_nobody_listens(port: int) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            Wire(port).sock.close()
        except OSError:
            return
        time.sleep(0.005)
    raise AssertionError("it still listens")


# Limits


def test_connections_have_limits_in_all_and_for_each_address(tmp_path: Path) -> None:
    limits = configured(
        tmp_path, "[server]\nmax_connections = 4\nmax_connections_per_address = 3\n"
    )
    with serving(tmp_path, *limits, "--no-maze") as server, ExitStack() as stack:
        wires = [
            stack.enter_context(Wire(server.ports[name]))
            for name in ("line", "consumer", "line")
        ]
        greetings = [wire.line() for wire in wires]
        assert greetings == [GREETING, "Please login!", GREETING]

        with Wire(server.ports["publisher"]) as fourth:
            assert fourth.rest() == (
                b"error: too many connections from 127.0.0.1, limit 3\r\n"
            )
        path = str(server.data / "penstock.sock")
        most = 4 + LOCAL_RESERVE
        locals_ = [
            stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(most)
        ]
        for local in locals_:
            local.connect(path)
        locals_[-1].settimeout(PATIENCE_S)
        full = f"error: too many connections, limit {most}\r\n".encode()
        assert locals_[-1].recv(100) == full
        for local in locals_:
            local.close()
        wires[0].sock.close()

        assert let_in(server.ports["line"]) == GREETING


def let_in(port: int) -> str:
    """What a newcomer hears once the server has noticed that another one left."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        with Wire(port) as wire:
            heard = wire.line()
        if not heard.startswith("error: too many"):
            return heard
    return heard


def test_whoever_is_slow_to_log_in_or_says_nothing_is_closed(tmp_path: Path) -> None:
    limits = configured(tmp_path, "[server]\nlogin_s = 1.0\nidle_s = 2.0\n")
    with serving(tmp_path, *limits, "--no-maze") as server, ExitStack() as stack:
        start_s = time.monotonic()
        slow = stack.enter_context(Wire(server.ports["consumer"]))
        silent = stack.enter_context(Wire(server.ports["line"]))
        slow.sock.sendall(b"log an")

        assert slow.rest() == b"Please login!\r\n"
        slow_s = time.monotonic() - start_s
        assert silent.rest().decode() == GREETING + "\r\n"
        silent_s = time.monotonic() - start_s

        assert 1.0 <= slow_s < silent_s
        assert silent_s >= 2.0
        with Wire(server.ports["consumer"]) as quick:
            quick.say("log anna")
            assert quick.lines(2)[1] == "Succesfully logged in!"


def test_readers_that_do_not_read_cost_little_and_hold_up_nobody(
    tmp_path: Path,
) -> None:
    """Ten of them; what each is owed would be 16 MiB."""
    limits = configured(tmp_path, '[broker]\npage_cache_bytes = "1MiB"\n')
    size, deaf = 16 << 20, 10
    with serving(tmp_path, *limits, *ONLY_LINE) as server, ExitStack() as stack:
        port = server.ports["line"]
        writer = stack.enter_context(Wire(port))
        writer.say('pub t {"id":"0"}')
        for _ in range(deaf):
            stack.enter_context(deaf_reader(port, "t"))
        reader = stack.enter_context(Wire(port))
        reader.say("window 100000", "sub t")
        reader.lines(3)
        before = memory_peak(server.pid)

        count = publish_bytes(writer, "t", size)
        got = sum(len(reader.line()) for _ in range(count))

        assert got > size
        assert memory_peak(server.pid) - before < 100 << 20


def deaf_reader(port: int, topic: str) -> Wire:
    """A subscriber that is owed everything and reads nothing of it."""
    wire = Wire(port, receive_buffer=4096)
    wire.say(f'pub {topic} {{"id":"0"}}', "window 100000", f"sub {topic}")
    assert wire.lines(3)[2] == f"successfully subscribed to topic {topic}"
    return wire


def publish_bytes(writer: Wire, topic: str, size: int) -> int:
    """Publish so much and hear that it is stored; how many events it was."""
    line = f'pub {topic} {{"msg":"{"x" * 64_000}"}}'
    count = size // 64_000 + 1
    if writer.ask("confirm on") == GREETING:
        writer.line()
    for _ in range(count):
        writer.say(line)
        assert writer.line().startswith("published ")
    return count


def memory_peak(pid: int) -> int:
    """The most memory a process ever had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmHWM")


# Users


def test_with_a_users_file_everybody_says_who_it_is(tmp_path: Path) -> None:
    set_password(tmp_path / "users", "anna", "secret")
    flags = ("--users-file", str(tmp_path / "users"), "--no-maze")
    with serving(tmp_path, *flags) as server, ExitStack() as stack:
        line, consumer, publisher = (
            stack.enter_context(Wire(server.ports[name]))
            for name in ("line", "consumer", "publisher")
        )

        line.say("pub t {}", "as anna wrong", "as anna secret", "confirm on")
        assert line.lines(5) == [
            GREETING,
            "error: log in first: as <name> <password>",
            "error: wrong password for anna",
            "subscriber anna",
            "confirm on",
        ]
        please, welcome = "Please login!", "Succesfully logged in!"
        consumer.say("log anna", "log anna wrong", "log ANNA secret")
        assert consumer.lines(4) == [please, please, please, welcome]
        assert consumer.ask('{"type":"SUB","topic":"news"}') == "OK"
        publisher.say("log bert secret", "log anna secret")
        assert publisher.lines(3) == [please, please, welcome]
        assert publisher.ask('{"type":"PUB","topic":"news","msg":1}') == (
            '{"msgId":1,"type":"PUBREC"}'
        )

        assert server.stop() == 0


def test_a_login_and_what_follows_it_may_come_in_one_piece(tmp_path: Path) -> None:
    set_password(tmp_path / "users", "anna", "secret")
    flags = ("--users-file", str(tmp_path / "users"), *ONLY_LINE)
    with serving(tmp_path, *flags) as server, Wire(server.ports["line"]) as wire:
        wire.say("as anna secret", "confirm on", 'pub t {"id":"1"}')
        wire.sock.sendall(b'pub t {"id":"2"}')
        wire.sock.shutdown(socket.SHUT_WR)

        assert wire.rest().decode().split("\r\n") == [
            GREETING,
            "subscriber anna",
            "confirm on",
            "published t 1 0",
            "published t 2 1",
            "",
        ]
