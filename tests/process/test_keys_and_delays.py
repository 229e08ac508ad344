"""Order by key in several processes, and delayed events, when things are killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from penstock.client import Client, connect
from tests.effort import effort
from tests.http_client import token_of
from tests.interop.brokers import free_port
from tests.serving import STOP_S, Serving, serving

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "embedded_keys.py"
KEYS = [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]
PER_KEY = effort(60, 400)
KILLS = effort(3, 20)


def program(server: Serving, file: Path) -> subprocess.Popen[bytes]:
    url = f"penstock://127.0.0.1:{server.ports['native']}"
    command = [sys.executable, str(PROGRAM), url, token_of(server), str(file)]
    with server.log.open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def lines(file: Path) -> list[list[str]]:
    text = file.read_text() if file.exists() else ""
    return [line.split() for line in text.splitlines()]


def until(server: Serving, file: Path, count: int) -> None:
    """Until so many events were handled in all."""
    deadline_s = time.monotonic() + STOP_S
    while len({tuple(one[1:3]) for one in lines(file) if one[0] == "end"}) < count:
        assert time.monotonic() < deadline_s, server.log.read_text()[-2000:]
        time.sleep(0.01)


def note_kill(file: Path, pid: int = 0) -> None:
    """A process was killed; 0 is the server."""
    with file.open("a") as out:
        out.write(f"killed - 0 {pid}\n")


@pytest.mark.parametrize("seed", [1])
def test_processes_share_keys_in_order_whatever_is_killed(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    file = tmp_path / "handled"
    total = PER_KEY * len(KEYS)
    port = str(free_port())  # programs find the server there again
    with serving(tmp_path, "--no-maze", "--native-port", port) as server:
        with connect(server.data) as client:
            for number in range(PER_KEY):
                client.publish("work", [b"%d" % number] * len(KEYS), keys=KEYS)
        programs = [program(server, file) for _ in range(2)]
        try:
            for kill in range(KILLS):
                until(server, file, total * (kill + 1) // (KILLS + 2))
                if kill == 1:
                    server.kill()
                    note_kill(file)
                    server.start()
                victim = programs.pop(random.randrange(len(programs)))
                victim.kill()
                victim.wait()
                note_kill(file, victim.pid)
                programs += [program(server, file) for _ in range(4 - len(programs))]
            until(server, file, total)
        finally:
            for one in programs:
                one.kill()
                one.wait()
    check_order(lines(file), seed)


def check_order(rows: list[list[str]], seed: int) -> None:
    """No call of a key begins while another of it runs, and none is left out.

    A process that is killed leaves calls without an end, and ends that the server does
    not know: another begins with those again, and goes on in order. So does any after
    the server was killed.
    """
    running: dict[str, int] = {}
    following: defaultdict[str, int] = defaultdict(int)
    holders: dict[str, str] = {}
    for what, key, text, pid in rows:
        number = int(text)
        if what == "killed":
            mine = [one for one, by in holders.items() if pid in (by, "0")]
            for one in mine:
                del holders[one]
                running.pop(one, None)
        elif what == "begin":
            assert running.get(key, number) == number, (seed, key, number, pid)
            again = holders.get(key) != pid
            assert number <= following[key] if again else number == following[key], (
                *(seed, key, number, pid, following[key]),
            )
            running[key], following[key], holders[key] = number, number, pid
        else:
            running.pop(key, None)
            if what == "end":
                following[key] = number + 1
    assert dict(following) == {key.decode(): PER_KEY for key in KEYS}, seed


def test_delayed_events_come_after_their_time_whenever_the_server_is_killed(
    tmp_path: Path,
) -> None:
    random = Random(7)
    times: dict[bytes, float] = {}
    settled: list[bytes] = []
    with serving(tmp_path, "--no-maze", "--no-mqtt") as server:
        for life in range(effort(3, 12)):
            with connect(server.data) as client:
                publish(client, random, times, life)
                take(client, times, settled, until=len(times) - 40)
            server.kill()
            server.start()
        with connect(server.data) as client:
            take(client, times, settled, until=len(times))
    assert set(settled) == set(times)


def publish(
    client: Client, random: Random, times: dict[bytes, float], life: int
) -> None:
    now_ms = int(time.time() * 1000)
    payloads = [b"%d-%d" % (life, number) for number in range(100)]
    delays = [random.choice([0, 0, 200, 600, 1500]) for _ in payloads]
    client.publish(
        "later",
        payloads,
        not_before=[now_ms + delay if delay else None for delay in delays],
    )
    for payload, delay in zip(payloads, delays, strict=True):
        times[payload] = (now_ms + delay) / 1000


def take(
    client: Client, times: dict[bytes, float], settled: list[bytes], *, until: int
) -> None:
    """Settle events, each after its time, until so many were."""
    with client.subscribe("later", "reader", start="earliest", window=20) as reader:
        while len(set(settled)) < until:
            batch = reader.next_batch(STOP_S)
            assert batch is not None
            assert all(times[one] <= time.time() for one in batch.payloads)
            settled += batch.payloads
            reader.settle(batch.offsets)
