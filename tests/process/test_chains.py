"""Chains of a real server: asked while it indexes, killed, with a lost index."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from penstock.client import Client, connect
from penstock.client.chains import Chain, chain
from penstock.client.plan import drive_blocking
from tests.effort import effort
from tests.serving import PENSTOCK, Serving, serving

pytestmark = pytest.mark.slow

KILLS = effort(2, 6)
BATCH = 100


def whole(client: Client, id_: str, limit: int = 10_000) -> Chain:
    return drive_blocking(
        chain(id_, limit=limit), lambda verb, said: client.ask(verb, **said), time.sleep
    )


def publish(client: Client, topic: str, number: int, parent: str | None) -> str:
    """A batch whose events have one parent; the id of its first event."""
    name = f"{topic}-{number}"
    ids = [name, *(f"{name}.{index}" for index in range(1, BATCH))]
    client.publish(topic, [b"x"] * BATCH, ids=ids, parents=[parent] * BATCH)
    return name


def test_a_server_indexes_by_itself_and_answers(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-maze") as server, connect(server.data) as client:
        client.publish("orders", b"{}", ids=["order"])
        client.publish("payments", b"{}", ids=["payment"], parents=["order"])
        while not (server.data / "chains.sqlite").exists():
            client.ask("topics")  # takes a while: until its time has come

        found = whole(client, "order")
        drawn = server.run("chain", "payment").stdout.decode().splitlines()
        said = json.loads(server.run("chain", "order", "--json").stdout)

        assert [one.id for one in found.events] == ["order", "payment"]
        assert [line.split("  ")[1] for line in drawn] == ["order", "payment"]
        assert [one["level"] for one in said["events"]] == [0, 1]
        assert server.stop() == 0
    offline = server.run("chain", "payment")
    assert offline.stdout.decode().splitlines() == drawn


def test_a_chain_is_whole_after_kills_while_it_is_indexed(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-maze") as server:
        parent: str | None = None
        for kill in range(KILLS):
            with connect(server.data) as client:
                for number in range(10):
                    topic = f"t{number % 3}"
                    parent = publish(client, topic, kill * 10 + number, parent)
                if kill % 2:
                    client.ask("chains.show", id="t0-0", limit=10_000)
                server.kill()
            if kill == 3:
                lose_index(server)
            server.start()
            with connect(server.data) as client:
                found = whole(client, "t0-0")
                assert len(found.events) == 1 + (kill * 10 + 9) * BATCH, f"kill {kill}"
                assert (found.behind, found.cut) == (0, None)
        assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


def lose_index(server: Serving) -> None:
    path = server.data / "chains.sqlite"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + b"\0" * 1000)


def test_others_are_served_while_a_question_is_answered(tmp_path: Path) -> None:
    """The index of 10 000 events is made anew while somebody else publishes."""
    with serving(tmp_path, "--no-maze") as server:
        with connect(server.data) as client:
            parent: str | None = None
            for number in range(100):
                parent = publish(client, "t", number, parent)
        server.kill()
        for path in server.data.glob("chains.sqlite*"):
            path.unlink()
        server.start()
        answer = tmp_path / "answer.json"
        with answer.open("wb") as output:
            asking = subprocess.Popen(
                [*PENSTOCK, "chain", "t-0", "--json"],
                env={**os.environ, "PENSTOCK_DATA": str(server.data)},
                stdout=output,
            )
        waits = []
        with connect(server.data) as client:
            while asking.poll() is None:
                begun_s = time.monotonic()
                client.publish("other", b"x")
                waits.append(time.monotonic() - begun_s)
        found = json.loads(answer.read_bytes())

        assert (asking.returncode, found["cut"]) == (0, "limit")
        # Bounded by a step, not by the question, however slow the machine is.
        assert sorted(waits)[len(waits) // 2] < sum(waits) / 10
        assert len(waits) > 10
