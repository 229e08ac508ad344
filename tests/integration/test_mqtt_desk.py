"""Sessions and retained messages as people meet them: a server, and real clients."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import command
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
    result = command(server, "mqtt", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def sessions(server: Serving) -> dict[str, Any]:
    return {one["client"]: one for one in told(server, "sessions")}


def test_a_session_is_seen_and_ended_and_its_client_sent_away(server: Serving) -> None:
    http = Http(server)
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

    # Whose session is ended by HTTP is told of by the will, too, without its delay.
    again = Client(server, "ann")
    assert not again.connect(), "its session is gone"
    assert wills(http) == ["bye"]
    assert http.ask("DELETE", "/v1/mqtt/sessions/ann").status == 200
    assert again.ended() == 0x98
    assert wills(http) == ["bye", "bye"]
    assert http.ask("DELETE", "/v1/mqtt/sessions/ann").status == 404

    # A client of version 3, which cannot be told why, is cut off.
    bob = Client(server, "bob", version=311)
    assert bob.connect(), "its session was kept"
    told(server, "end", "bob", "--yes")
    bob.ended()
    assert sessions(server) == {}


def test_what_is_forgotten_comes_no_more_with_and_without_a_server(
    server: Serving,
) -> None:
    http = Http(server)
    ann = Client(server, "ann")
    ann.connect()
    for topic in ("a", "a/1", "a/2"):
        ann.publish(topic, b"warm", 1, retain=True)

    rows = told(server, "retained", "a/+")
    one = http.ask("GET", "/v1/mqtt/retained/a%2F1").json()
    forgotten = http.ask("DELETE", "/v1/mqtt/retained/a%2F1")

    assert [(row["topic"], row["bytes"], row["qos"]) for row in rows] == [
        ("a/1", 4, 1),
        ("a/2", 4, 1),
    ]
    assert (one["payload"], one["producer"]) == ("d2FybQ==", "mqtt/ann")
    assert forgotten.status == 200

    # Without a server the files are worked on.
    server.kill()  # the client is still there, and its will is not published
    ann.ended()
    shown = sessions(server)
    told(server, "end", "ann", "--yes")
    told(server, "forget", "a", "--yes")
    server.start()

    assert (shown["ann"]["state"], shown["ann"]["durable"]) == ("away", True)
    assert [row["topic"] for row in told(server, "retained")] == ["a/2"]
    http = Http(server)
    left = http.ask("GET", "/v1/mqtt/retained").json()
    assert [row["topic"] for row in left["retained"]] == ["a/2"]
    deadline_s = time.monotonic() + WAIT_S
    while not wills(http):  # it can be read when it is on disk
        assert time.monotonic() < deadline_s, "the server has not ended it"
        time.sleep(0.05)
    assert http.ask("GET", "/v1/mqtt/sessions").json()["sessions"] == []
    assert wills(http) == ["bye"]


def wills(http: Http) -> list[str]:
    """What was published for clients that are gone."""
    events = http.ask("GET", "/v1/topics/gone/events").json().get("events", [])
    return [one["payload"] for one in events]
