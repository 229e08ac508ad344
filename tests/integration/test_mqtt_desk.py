"""Sessions and retained messages as people meet them: a server, and real clients."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http_client import Http
from tests.interop.peers import KEPT_S, Message, Paho
from tests.serving import Serving, serving

pytestmark = pytest.mark.interop

WAIT_S = 20.0


class Client(Paho):
    """paho-mqtt with a lasting session; version 5 has a will that takes its time."""

    def __init__(self, server: Serving, name: str, *, version: int = 5) -> None:
        super().__init__(
            server.ports["mqtt"],
            client_id=name,
            version=version,
            clean=False,
            will=Message(topic="gone", payload=b"bye", qos=1) if version == 5 else None,
            will_delay_s=3600,
        )
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()

    def ended(self) -> int:
        """Wait for the end of the connection; its reason."""
        reason = self._ended.get(timeout=WAIT_S)
        self.connected = False
        self._end_thread(at_once=True)
        return reason

    def _on_disconnect(self, _: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
        super()._on_disconnect(_, __, ___, reason, ____)
        self._ended.put(reason.value)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path, "--no-json", "--no-maze", "--no-line") as server:
        yield server


def told(server: Serving, *arguments: str) -> Any:
    """What a command prints as JSON."""
    result = server.run("mqtt", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def sessions(server: Serving) -> dict[str, Any]:
    return {one["client"]: one for one in told(server, "sessions")}


def test_a_session_is_seen_and_ended_and_its_client_sent_away(server: Serving) -> None:
    ann = Client(server, "ann")
    assert not ann.connect()
    ann.subscribe("a/#", 2)
    bob = Client(server, "bob", version=311)
    bob.connect()
    bob.subscribe("a/b", 1)
    bob.disconnect()
    ann.publish("a/b", b"1", 1)
    ann.publish("a/b", b"2", 1, retain=True)

    found = sessions(server)
    bobs = told(server, "session", "bob")
    gone = told(server, "end", "ann", "--yes")

    assert (found["ann"]["state"], found["ann"]["expiry_s"]) == ("connected", KEPT_S)
    assert (found["bob"]["state"], found["bob"]["lag"]) == ("away", 2)
    assert bobs["topics"] == [{"topic": "a/b", "group": None, "in_flight": 0, "lag": 2}]
    assert gone["filters"][0]["filter"] == "a/#"
    assert ann.ended() == 0x98  # administrative action
    assert set(sessions(server)) == {"bob"}
    again = Client(server, "ann")
    assert not again.connect(), "its session is gone"
    again.disconnect()


def test_whose_session_ends_is_told_of_by_the_will(server: Serving) -> None:
    http = Http(server)
    ann = Client(server, "ann")
    ann.connect()

    assert http.ask("DELETE", "/v1/mqtt/sessions/ann").status == 200

    assert ann.ended() == 0x98
    events = http.ask("GET", "/v1/topics/gone/events").json()["events"]
    assert [one["payload"] for one in events] == ["bye"], "without its delay"
    assert http.ask("DELETE", "/v1/mqtt/sessions/ann").status == 404


def test_a_client_of_version_3_is_cut_off(server: Serving) -> None:
    bob = Client(server, "bob", version=311)
    bob.connect()

    told(server, "end", "bob", "--yes")

    bob.ended()
    assert sessions(server) == {}


def test_what_is_forgotten_comes_no_more(server: Serving) -> None:
    http = Http(server)
    ann = Client(server, "ann")
    ann.connect()
    for topic in ("a/1", "a/2"):
        ann.publish(topic, b"warm", 1, retain=True)
    ann.disconnect()

    rows = told(server, "retained", "a/+")
    one = http.ask("GET", "/v1/mqtt/retained/a%2F1").json()
    forgotten = http.ask("DELETE", "/v1/mqtt/retained/a%2F1")

    assert [(row["topic"], row["bytes"], row["qos"]) for row in rows] == [
        ("a/1", 4, 1),
        ("a/2", 4, 1),
    ]
    assert (one["payload"], one["producer"]) == ("d2FybQ==", "mqtt/ann")
    assert forgotten.status == 200
    server.kill()
    server.start()
    left = Http(server).ask("GET", "/v1/mqtt/retained").json()
    assert [row["topic"] for row in left["retained"]] == ["a/2"]


def test_without_a_server_the_files_are_worked_on(server: Serving) -> None:
    ann = Client(server, "ann")
    ann.connect()
    ann.publish("a", b"warm", 1, retain=True)
    server.kill()  # the client is still there, and its will is not published
    ann.ended()

    shown = sessions(server)
    told(server, "end", "ann", "--yes")
    told(server, "forget", "a", "--yes")
    server.start()

    assert (shown["ann"]["state"], shown["ann"]["durable"]) == ("away", True)
    assert told(server, "retained") == []
    http = Http(server)
    deadline_s = time.monotonic() + WAIT_S
    while http.ask("GET", "/v1/mqtt/sessions").json()["sessions"]:
        assert time.monotonic() < deadline_s, "the server has not ended it"
        time.sleep(0.05)
    events = http.ask("GET", "/v1/topics/gone/events").json()["events"]
    assert [one["payload"] for one in events] == ["bye"]
