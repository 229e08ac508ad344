"""Fixtures of the conformance tests: one server, and clients that are hung up.

A test leaves nothing behind that another could see: names are used once, and what was
retained is removed.

A test that takes ``version`` runs for MQTT 3.1.1 and for MQTT 5.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.deviations import MOSQUITTO
from tests.conformance.peer import Join, Peer
from tests.conformance.reference import REFERENCE
from tests.conformance.server import Endpoints, running

NUMBERS = itertools.count(1)
HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    with running(tmp_path_factory.mktemp("server")) as one:
        yield one


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    with running(tmp_path_factory.mktemp("secured"), secured=True) as one:
        yield one


@pytest.fixture(params=[4, 5], ids=["v311", "v5"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def dial(server: Endpoints) -> Iterator[Join]:
    """A connection on which nothing was sent yet."""
    peers: list[Peer] = []

    def dialled(version: int = 5, *, port: int = 0) -> Peer:
        peers.append(Peer(port or server.mqtt, version=version))
        return peers[-1]

    yield dialled
    for peer in peers:
        peer.drop()
    forget({(one.port, name) for one in peers for name in one.retained})


@pytest.fixture
def join(dial: Join) -> Join:
    """A client that was accepted; keyword arguments are those of a CONNECT."""

    def joined(version: int = 5, client_id: str | None = None, **options: Any) -> Peer:
        peer = dial(version, port=options.pop("port", 0))
        answer = peer.connect(name() if client_id is None else client_id, **options)
        assert answer.reason == 0, answer
        peer.connack = answer
        return peer

    return joined


def forget(retained: set[tuple[int, str]]) -> None:
    """Remove messages that were retained, by port and topic."""
    for port in {port for port, _ in retained}:
        peer = Peer(port)
        peer.connect("forget")
        for name in sorted(name for at, name in retained if at == port):
            peer.publish(name, b"", qos=1, retain=True)
        peer.disconnect()


@pytest.fixture
def topic() -> str:
    """A topic no other test knows."""
    return name()


@pytest.fixture
def client_id() -> str:
    return name()


def name() -> str:
    return f"n{next(NUMBERS)}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them are slow; what a reference does otherwise has to fail there."""
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.slow)
        why = MOSQUITTO.get(item.name) or MOSQUITTO.get(item.name.split("[")[0])
        if REFERENCE and why:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))
