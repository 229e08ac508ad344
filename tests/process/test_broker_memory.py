"""A million events wait for subscribers that do not move, in little memory."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.client import Client, connect
from penstock.torture.load import TIMEOUT_S
from tests.effort import effort
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

EVENTS = effort(100_000, 1_000_000)
BATCH = 10_000
# Measured: 134 MiB, most of it for two windows of 100 000; with a million about 150.
LIMIT_MIB = effort(180, 250)
TOPIC = "backlog"


def test_a_backlog_and_stuck_subscribers_cost_disk_not_memory(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text('[topics]\ndurability = "os"\n')
    with (
        serving(tmp_path, "--no-maze", "--config", str(config)) as server,
        ExitStack() as stack,
    ):
        publish(server, 0, 1)
        stuck(server, stack)

        publish(server, 1, EVENTS)

        assert peak_mib(server) < LIMIT_MIB, "published"
        with connect(server.data) as client:
            consume(client, "fast", 0)
        assert peak_mib(server) < LIMIT_MIB, "consumed"

        server.kill()
        server.start()
        stuck(server, stack)

        with connect(server.data) as client:
            consume(client, "fast after a kill", EVENTS // 2)
        assert peak_mib(server) < LIMIT_MIB, "consumed after a restart"


def publish(server: Serving, start: int, end: int) -> None:
    """Publish events without a wait, but for the last."""
    address = ("127.0.0.1", server.ports["line"])
    with socket.create_connection(address, TIMEOUT_S) as sock:
        for base in range(start, end - 1, BATCH):
            numbers = range(base, min(base + BATCH, end - 1))
            sock.sendall("".join(map(pub, numbers)).encode())
        sock.sendall(f"confirm on\n{pub(end - 1)}".encode())
        with sock.makefile("rb") as heard:
            answers = [heard.readline().decode() for _ in range(3)]
    assert answers[2].endswith(f" {end - 1}\r\n"), answers


def pub(number: int) -> str:
    return f'pub {TOPIC} {{"priority":{number % 3},"msg":{number}}}\n'


def stuck(server: Serving, stack: ExitStack) -> None:
    """Subscribers of every gateway that never read, or never acknowledge."""
    line, consumer = server.ports["line"], server.ports["consumer"]
    subscribe = f"window 1000\nsub {TOPIC}\n"
    for port, words, answer in [
        (line, f"as stuck\n{subscribe}", "successfully subscribed"),
        (line, subscribe, "successfully subscribed"),
        (consumer, f'log slow\n{{"type":"SUB","topic":"{TOPIC}"}}\n', "OK"),
    ]:
        sock = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        stack.enter_context(sock)
        sock.sendall(words.encode())
        with sock.makefile("r") as heard:
            assert any(said.startswith(answer) for said in heard), words
    client = stack.enter_context(connect(server.data))
    client.subscribe(TOPIC, "stuck, with a window", window=100_000)
    client.subscribe(TOPIC, "stuck, without acks", auto_ack=True)
    client.subscribe(TOPIC, "stuck in order", window=100_000, order="priority")


def consume(client: Client, name: str, start: int) -> None:
    """Consume the topic from an offset on under a name, and acknowledge all of it."""
    done = start
    with client.subscribe(TOPIC, name, start=start, window=20_000) as events:
        while done < EVENTS:
            batch = events.next_batch(TIMEOUT_S)
            assert batch is not None, f"{name}: nothing came after {done}"
            assert batch.offsets == list(range(done, done + len(batch.offsets)))
            assert batch.payloads == [b"%d" % offset for offset in batch.offsets]
            done += len(batch.offsets)
            events.settle(batch.offsets)
    assert done == EVENTS, name


def peak_mib(server: Serving) -> int:
    """The most memory that the server has had."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert found is not None
    return int(found[1]) // 1024
