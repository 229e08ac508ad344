"""MQTT over TLS, with and without certificates of clients."""

from __future__ import annotations

import gc
import ssl
from collections.abc import Callable, Iterator

import pytest

from tests.interop.brokers import Broker, running
from tests.interop.certificates import Certificates
from tests.interop.peers import Message, Peer, Refused

pytestmark = [
    pytest.mark.interop,
    # paho-mqtt forgets to close the socket of a handshake that failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Peers = Callable[..., Peer]


@pytest.fixture(autouse=True)
def no_socket_is_left() -> Iterator[None]:
    """Of a handshake that failed; found here, it fails no test that comes later."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_broker(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Broker]:
    with running(tmp_path_factory.mktemp("tls"), *flags(certificates)) as broker:
        yield broker


def test_messages_travel_encrypted(
    tls_broker: Broker,
    certificates: Certificates,
    peers: Peers,
    library: type[Peer],
    version: int,
    topic: str,
) -> None:
    trust = certificates.context()
    peer = peers(library, tls_broker.tls_port, version=version, tls=trust)
    peer.connect()
    peer.subscribe(topic, 2)

    # Larger than one record of TLS.
    peer.publish(topic, b"x" * 100_000, 2)

    assert peer.receive() == Message(topic=topic, payload=b"x" * 100_000, qos=2)


def test_a_client_that_does_not_trust_the_server_stays_away(
    tls_broker: Broker, peers: Peers, library: type[Peer]
) -> None:
    stranger = ssl.create_default_context()
    peer = peers(library, tls_broker.tls_port, tls=stranger)

    with pytest.raises((ssl.SSLError, Refused)):
        peer.connect()


@pytest.fixture(scope="module")
def strict_broker(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Broker]:
    """One that wants a certificate of everybody."""
    wanted = ("--tls-client-ca", str(certificates.authority))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_TLS_REQUIRE_CLIENT_CERT", "true")
        folder = tmp_path_factory.mktemp("strict")
        with running(folder, *flags(certificates), *wanted) as broker:
            patch.undo()
            yield broker


def test_a_client_without_a_certificate_is_turned_away(
    strict_broker: Broker,
    certificates: Certificates,
    peers: Peers,
    library: type[Peer],
) -> None:
    port = strict_broker.tls_port
    known = peers(library, port, tls=certificates.context(client=True))
    unknown = peers(library, port, tls=certificates.context())

    known.connect()
    assert known.subscribe("a", 1) == 1
    # In TLS 1.3 the client hears of it after its own part of the handshake.
    with pytest.raises((OSError, Refused)):
        unknown.connect()
    known.disconnect()


def flags(certificates: Certificates) -> tuple[str, ...]:
    certificate, key = certificates.server
    return "--tls-cert", str(certificate), "--tls-key", str(key)
