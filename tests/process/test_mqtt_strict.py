"""What a server promises over MQTT when its disk fails, or it is killed in between.

And what it keeps from everybody, however they ask: with sockets, files and processes.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.log import Reader
from tests.conformance.packets import SESSION_EXPIRY, Will
from tests.conformance.peer import Peer
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

WAIT_S = 30.0
# No file may be larger: the journal is, and what the server says of itself is not.
ROOM = 400_000
QUIET = ("--no-line", "--no-json", "--no-maze")
# Of clients, and topics of their wills: kept by the journal, and not.
KINDS = {"kept": [(SESSION_EXPIRY, 100)], "not kept": []}


def test_a_will_is_stored_once_when_the_disk_has_room_again(tmp_path: Path) -> None:
    with serving(tmp_path, *QUIET) as server:
        with clients_lost_on_a_full_disk(server, *KINDS):
            assert not any(stored(server.data, name) for name in KINDS)

        until(lambda: all(stored(server.data, name) == [b"bye"] for name in KINDS))
        assert server.stop() == 0

    assert all(stored(server.data, name) == [b"bye"] for name in KINDS)


def test_a_will_whose_commit_failed_outlives_a_kill(tmp_path: Path) -> None:
    with serving(tmp_path, *QUIET) as server:
        with clients_lost_on_a_full_disk(server, "kept"):
            server.kill()
        assert stored(server.data, "kept") == []

        server.start()

        until(lambda: stored(server.data, "kept") == [b"bye"])
        server.kill()
        server.start()
        assert server.stop() == 0
    assert stored(server.data, "kept") == [b"bye"]


def test_what_was_cleared_stays_so_after_a_kill(tmp_path: Path) -> None:
    with serving(tmp_path, *QUIET) as server:
        words = ["schemas", "register", "state", "-"]
        assert server.run(*words, input=b'{"type":"integer"}').returncode == 0
        peer = Peer(server.ports["mqtt"])
        peer.connect("me")
        peer.publish("state", b"5", qos=1, retain=True)
        answer = peer.publish("state", b"", qos=1, retain=True)
        assert answer is not None and answer.reason == 0
        server.kill()
        peer.drop()
        server.start()

        late = Peer(server.ports["mqtt"])
        late.connect("late")
        late.subscribe("state", qos=1)
        late.publish("state", b"6", qos=1)
        assert late.until(b"6") == []
        late.drop()
        assert server.stop() == 0
    assert stored(server.data, "state") == [b"5", b"6"]


def test_what_nobody_may_subscribe_to_comes_with_no_filter(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text('[mqtt]\nno_subscribe = "secret/plan"\n')
    with serving(tmp_path, *QUIET, "--config", str(config)) as server:
        for filter in ("#", "+/plan", "$share/g/#", "$share/g/secret/+"):
            peer = Peer(server.ports["mqtt"])
            peer.connect("me")
            peer.publish("secret/plan", b"kept", qos=1, retain=True)

            assert peer.subscribe(filter, "end", qos=1).reasons == [1, 1]
            peer.publish("secret/plan", b"live", qos=1, retain=True)
            peer.publish("end", b"end", qos=1)

            assert peer.until(b"end") == [], filter
            peer.drop()


@contextmanager
def clients_lost_on_a_full_disk(server: Serving, *kinds: str) -> Iterator[None]:
    """Connections of clients with a will break, and no will can be stored."""
    clients = [Peer(server.ports["mqtt"]) for _ in kinds]
    for client, kind in zip(clients, kinds, strict=True):
        will = Will(topic=kind, payload=b"bye", qos=1)
        client.connect(kind, will=will, pairs=KINDS[kind])
    clients[0].publish("much", bytes(ROOM), qos=1)
    pid = server.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (ROOM, before[1]))
    for client in clients:
        client.drop()
    until(lambda: b"nothing is confirmed" in server.log.read_bytes())
    yield
    if server.running:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline_s, "it does not come"
        time.sleep(0.02)


def stored(data: Path, topic: str) -> list[bytes]:
    with Reader.open(data) as reader:
        if topic not in reader.topics():
            return []
        batches = reader.read(topic, 0)
        return [payload for batch in batches for payload in batch.payloads()]
