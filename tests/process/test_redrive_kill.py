"""Dead letters are sent again while the server is killed: each arrives exactly once."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.client import Client, connect
from penstock.log import verify
from tests.effort import effort
from tests.serving import PENSTOCK, Serving, serving

pytestmark = pytest.mark.slow

EVENTS = effort(800, 1500)
FEW = 100
RATE = 300
# More than both commands have under way, so that some of it is stored at every kill.
SENT = range(61, 150)
KILLS = effort(2, 4)
SEED = 7
# Small files, so that a second of work rolls, writes out and checkpoints many times.
CONFIG = """
[log]
journal_file_bytes = 200_000
checkpoint_bytes = 100_000
write_out_bytes = 20_000
[topics]
segment_bytes = 50_000
"""
REPUBLISH = [
    *("dead-letters", "republish", "--all", "--subscriber", "billing"),
    *("--rate", str(RATE)),
]


def bury(server: Serving, count: int) -> None:
    """Every event is a dead letter of ``billing``, and was handled by ``other``."""
    with connect(server.data) as client:
        client.publish("orders", [b"%d" % number for number in range(count)])
        with client.subscribe("orders", "other", start="earliest") as other:
            for _ in range(count):
                delivery = other.next(20.0)
                assert delivery is not None
                other.ack(delivery)
        with client.subscribe("orders", "billing", start="earliest", tries=1) as one:
            for _ in range(count):
                delivery = one.next(20.0)
                assert delivery is not None
                one.nack(delivery, "not today", kind="ValueError")
        assert open_letters(client) == count


def open_letters(client: Client) -> int:
    found, end = 0, None
    start: int | None = 0
    while start is not None:
        page: Any = client.ask("dead-letters.groups", start=start, end=end)
        found += sum(group["count"] for group in page["groups"])
        start, end = page["next"], page["end"]
    return found


def kill_in_the_middle(server: Serving, left: int, random: Random) -> None:
    """Kill the server when two commands have sent some of what is left."""
    # By its port: who comes late must not work on the files while it is down.
    port = f"127.0.0.1:{server.ports['native']}"
    token = ("--token-file", str(server.data / "http-admin-token"))
    commands = [
        subprocess.Popen(
            [*PENSTOCK, *REPUBLISH, "--server", port, *token],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    target = left - random.choice(SENT)
    with connect(server.data) as client:
        while open_letters(client) > target:
            assert any(one.poll() is None for one in commands), "they have given up"
            time.sleep(0.01)
        server.kill()
    for command in commands:
        _, said = command.communicate(timeout=60)
        assert command.returncode == 2, "it was done before the kill"
        assert b"lost" in said or b"no server" in said, said


def received(server: Serving, subscriber: str) -> Counter[int]:
    """What a subscriber gets until it owes nothing more."""
    found: Counter[int] = Counter()
    with connect(server.data) as client:
        lag = client.ask("subscriptions.show", subscriber=subscriber, topic="orders")
        assert isinstance(lag, dict)
        with client.subscribe("orders", subscriber, tries=1) as subscription:
            for _ in range(lag["lag"]):
                delivery = subscription.next(20.0)
                assert delivery is not None
                assert delivery.payload == b"%d" % delivery.offset
                found[delivery.offset] += 1
                subscription.ack(delivery)
            assert subscription.next(0.1) is None
    return found


def audited(server: Serving) -> Counter[int]:
    found: Counter[int] = Counter()
    before = None
    with connect(server.data) as client:
        while True:
            page: Any = client.ask("dead-letters.audit", before=before, limit=1000)
            for entry in page["entries"]:
                assert (entry["action"], entry["subscriber"]) == (
                    "republished",
                    "billing",
                )
                found.update(entry["numbers"])
            before = page["next"]
            if before is None:
                return found


def test_every_letter_is_sent_again_once_whatever_is_killed(tmp_path: Path) -> None:
    random = Random(SEED)
    config = tmp_path / "penstock.toml"
    config.write_text(CONFIG)
    with serving(tmp_path, "--config", str(config)) as server:
        bury(server, EVENTS)
        left = EVENTS
        for _ in range(KILLS):
            kill_in_the_middle(server, left, random)
            server.start()
            with connect(server.data) as client:
                now_left = open_letters(client)
            assert now_left <= left
            left = now_left
        assert 0 < left < EVENTS, "the kills were not in the middle"

        last = server.run(*REPUBLISH)
        again = server.run(*REPUBLISH)

        assert last.returncode == 0, last.stderr
        assert last.stdout.decode() == f"{left} of {left} republished\n"
        assert again.stdout == b"no dead letters\n"
        once = Counter(range(EVENTS))
        assert received(server, "billing") == once
        assert received(server, "other") == Counter()
        assert audited(server) == once
        assert server.stop() == 0
    assert not verify(server.data).damages


def test_the_desk_goes_on_without_a_server(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        bury(server, FEW)
        server.kill()

        done = server.run(*REPUBLISH[:-2])
        listed = server.run("dead-letters", "list")

        assert done.returncode == 0, done.stderr
        assert b"working on its files" in done.stderr
        assert done.stdout.decode() == f"{FEW} of {FEW} republished\n"
        assert listed.stdout == b"no dead letters\n"
        server.start()
        assert received(server, "billing") == Counter(range(FEW))
