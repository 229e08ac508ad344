"""A broker for the tests of foreign clients, and clients that are closed at the end."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.brokers import Mosquitto, Penstock, running
from tests.interop.loop_peers import Aiomqtt, Gmqtt
from tests.interop.peers import Paho, Peer

LIBRARIES: dict[str, type[Peer]] = {"paho": Paho, "aiomqtt": Aiomqtt, "gmqtt": Gmqtt}


@pytest.fixture(scope="session")
def broker(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Penstock | Mosquitto]:
    """One for all tests that do not stop it; they use topics of their own."""
    with running(tmp_path_factory.mktemp("broker")) as server:
        yield server


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Penstock | Mosquitto]:
    """One that may be killed."""
    with running(tmp_path) as server:
        yield server


@pytest.fixture
def topic() -> str:
    """A name that no other test uses, for a topic or a client."""
    return f"interop/{uuid.uuid4().hex}"


@pytest.fixture(params=sorted(LIBRARIES))
def library(request: pytest.FixtureRequest) -> type[Peer]:
    return LIBRARIES[request.param]


@pytest.fixture(params=[311, 5], ids=["v3.1.1", "v5"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def peers() -> Iterator[Callable[..., Peer]]:
    """Makes peers: ``peers(Paho, broker.port, client_id="a")``."""
    with contextlib.ExitStack() as made:

        def make(library: type[Peer], port: int, **topic_filter: Any) -> Peer:
            peer = library(port, **topic_filter)
            made.callback(peer.close)
            return peer

        yield make
