"""TLS at a real server: every port that takes a login, renewed while it runs.

Users come by password or by certificate; what the network could read or change is what
these tests look for.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import connect as web_connect
from websockets.typing import Subprotocol

import penstock
from penstock import Domain, Event
from penstock.access.grants import Rule
from penstock.access.quota import Quota
from penstock.client import Client, aio, connect
from penstock.client.address import remote
from penstock.client.feed import Feed, FeedEvents
from penstock.client.tls import Tls
from penstock.errors import ClientError, ConnectionLost, ServerRefused, TlsFailed
from penstock.server.users_file import (
    set_certificate,
    set_password,
    set_quota,
    set_rules,
)
from penstock.wire.line import replies
from penstock.wire.mqtt import ClientParser, Connack, Connect, Reason, render_connect
from tests.http_client import token_of
from tests.interop.certificates import Certificates
from tests.serving import Serving, serving
from tests.sse_server import NO_CONTENT, answer, sse_server
from tests.wire_client import Wire

pytestmark = pytest.mark.slow

GREETING = "Successfully connected to message_broker"
PLEASE, WELCOME = "Please login!", "Succesfully logged in!"
SUB = '{"type":"SUB","topic":"t"}'
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def sensor(made: Certificates) -> tuple[Path, Path]:
    """The certificate of a user who has no password."""
    return made.signed("sensor")


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, made: Certificates
) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("server")
    users = folder / "users"
    set_password(users, "anna", "secret")
    set_certificate(users, "sensor")
    set_rules(users, "sensor", (Rule("publish", "sensors/#"), Rule("subscribe", "t")))
    with started(folder, made, "[tls]\ncert_users = 'cn'", users=users) as server:
        yield server


def started(
    folder: Path, made: Certificates, settings: str = "", *, users: Path | None = None
):
    """A server with a certificate that asks clients for theirs."""
    (folder / "penstock.toml").write_text(settings)
    certificate, key = map(str, made.server)
    flags = ["--config", str(folder / "penstock.toml"), "--mqtts-port", "0"]
    flags += ["--tls-cert", certificate, "--tls-key", key]
    flags += ["--tls-client-ca", str(made.authority)]
    flags += [] if users is None else ["--users-file", str(users)]
    return serving(folder, *flags)


def url(server: Serving, host: str = "127.0.0.1") -> str:
    return f"penstock+tls://{host}:{server.ports['native']}"


def native(
    server: Serving, made: Certificates, shown: tuple[Path, Path] | None = None, **more
) -> Client:
    certificate, key = map(str, shown) if shown else (None, None)
    return connect(
        url(server),
        ca_file=str(made.authority),
        cert_file=certificate,
        key_file=key,
        **more,
    )


def mqtt(sock: socket.socket, user: str | None, password: str | None) -> int:
    """What a CONNECT is answered by."""
    sock.sendall(connect_packet(user, password))
    return reason(sock.recv(100))


def connect_packet(user: str | None, password: str | None) -> bytes:
    secret = None if password is None else password.encode()
    return render_connect(
        Connect(
            version=4,
            client_id=f"c-{user}",
            clean_start=True,
            keep_alive=60,
            user=user,
            password=secret,
        )
    )


def reason(data: bytes) -> int:
    parser = ClientParser(1 << 16, 4)
    (packet,) = parser.feed(data)
    assert isinstance(packet, Connack)
    return packet.reason


def over_web(
    server: Serving, tls: ssl.SSLContext, user: str | None, password: str | None
) -> int:
    """What a CONNECT is answered by, over a WebSocket.

    Asked by the client of one thread. The blocking one reads in another, and OpenSSL
    may lose what is written meanwhile: when the tickets that follow a handshake of
    TLS 1.3 came in just then, the request was never sent.
    """

    async def ask() -> int:
        where = f"wss://127.0.0.1:{server.ports['http']}/mqtt"
        async with web_connect(
            where, ssl=tls, subprotocols=[Subprotocol("mqtt")], open_timeout=PATIENCE_S
        ) as web:
            await web.send(connect_packet(user, password))
            said = await asyncio.wait_for(web.recv(), PATIENCE_S)
            assert isinstance(said, bytes)
            return reason(said)

    return asyncio.run(ask())


def get(
    server: Serving, tls: ssl.SSLContext, path: str = "/v1/topics", **headers: str
) -> http.client.HTTPResponse:
    asked = http.client.HTTPSConnection(
        "127.0.0.1", server.ports["http"], timeout=PATIENCE_S, context=tls
    )
    with closing(asked):
        asked.request("GET", path, headers=headers)
        found = asked.getresponse()
        found.read()
        return found


# Every port


def test_lines_travel_encrypted(server: Serving, made: Certificates) -> None:
    with Wire(server.ports["line"], tls=made.context()) as wire:
        assert wire.line() == GREETING
        assert "anna" in wire.ask("as anna secret")
        wire.say("confirm on", *('pub t {"id":"1"}' for _ in range(20_000)))

        assert wire.lines(20_001)[-1].startswith("published t 1 ")


def test_json_travels_encrypted_on_both_sides(
    server: Serving, made: Certificates
) -> None:
    with Wire(server.ports["consumer"], tls=made.context()) as wire:
        wire.say("log anna secret", SUB)
        assert wire.lines(3) == [PLEASE, WELCOME, "OK"]
    with Wire(server.ports["publisher"], tls=made.context()) as wire:
        wire.say("log anna secret", '{"type":"PUB","topic":"t","msg":{}}')
        assert wire.lines(2) == [PLEASE, WELCOME]
        assert "PUBREC" in wire.line()


def test_clients_of_both_kinds_travel_encrypted(
    server: Serving, made: Certificates
) -> None:
    async def async_client() -> int:
        async with await aio.connect(
            url(server), user="anna", password="secret", ca_file=str(made.authority)
        ) as client:
            subscription = await client.subscribe("big", start="earliest")
            count = 0
            async for delivery in subscription:
                subscription.ack(delivery)
                count += 1
                if count == 5000:
                    return count
        return 0

    # More than the buffers of two sockets and TLS between them hold.
    with native(server, made, user="anna", password="secret") as client:
        stored = client.publish("big", [b"x" * 5000] * 5000)

    assert len(list(stored)) == 5000
    assert asyncio.run(async_client()) == 5000


def test_a_client_that_sends_much_while_much_comes_does_not_get_stuck(
    server: Serving, made: Certificates
) -> None:
    with native(server, made, user="anna", password="secret") as client:
        client.publish("echo", b"first")
        subscription = client.subscribe("echo", window=10_000)
        for _ in range(5):
            client.publish("echo", [b"x" * 5000] * 1000)
        got = 0
        for delivery in subscription:
            subscription.ack(delivery)
            got += 1
            if got == 5000:
                break

    assert got == 5000


def test_http_travels_encrypted_and_its_cookies_only_so(
    server: Serving, made: Certificates
) -> None:
    token = token_of(server)
    asked = http.client.HTTPSConnection(
        "127.0.0.1", server.ports["http"], context=made.context()
    )

    with closing(asked):
        said = json.dumps({"token": token})
        json_type = {"Content-Type": "application/json"}
        asked.request("POST", "/v1/session", said, json_type)
        cookie = asked.getresponse().headers["set-cookie"]

    assert get(server, made.context(), Authorization=f"Bearer {token}").status == 200
    assert get(server, made.context()).status == 401
    assert "Secure" in cookie


def test_mqtt_travels_encrypted_over_web_sockets_too(
    server: Serving, made: Certificates
) -> None:
    trust = made.context()
    with Wire(server.ports["mqtts"], tls=trust) as wire:
        assert mqtt(wire.sock, "anna", "secret") == 0
    assert over_web(server, trust, "anna", "secret") == 0
    assert over_web(server, trust, "anna", "wrong") == Reason.BAD_USER_NAME_OR_PASSWORD


@pytest.mark.parametrize(
    ("port", "said"),
    [
        ("line", b"as anna secret\nsub t\n"),
        ("consumer", b"log anna secret\n"),
        ("publisher", b"log anna secret\n"),
        ("http", b"GET /v1/server HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        ("native", b"\0\0\0\1x"),
        ("mqtts", connect_packet("anna", "secret")),
    ],
)
def test_what_is_said_plainly_is_not_answered(
    server: Serving, port: str, said: bytes
) -> None:
    with Wire(server.ports[port]) as wire:
        wire.sock.sendall(said)
        got = b""
        with suppress(ConnectionError):
            while data := wire.sock.recv(1000):
                got += data

    # Nothing, or an alert of TLS.
    assert not got or got.startswith(b"\x15\x03")


def test_the_ready_file_says_which_ports_speak_tls(server: Serving) -> None:
    told = json.loads((server.data.parent / "ready.json").read_bytes())

    spoken = {"line", "consumer", "publisher", "native", "http", "mqtts"}
    assert set(told["tls"]) == spoken
    assert told["login"].startswith(f"https://127.0.0.1:{server.ports['http']}/#token=")
    assert "https://127.0.0.1" in server.log.read_text()


def test_ports_may_stay_plain(tmp_path: Path, made: Certificates) -> None:
    with started(tmp_path, made, "[tls]\nplain = 'line, http'") as server:
        with Wire(server.ports["line"]) as wire:
            assert wire.line() == GREETING
        asked = http.client.HTTPConnection("127.0.0.1", server.ports["http"])
        with closing(asked):
            asked.request("GET", "/v1/topics")
            assert asked.getresponse().status == 401
        native(server, made).close()
        with Wire(server.ports["mqtt"]) as wire:  # this machine may
            wire.sock.sendall(connect_packet(None, None))
            assert reason(wire.sock.recv(100)) == 0


# Trust


def test_a_server_that_nobody_vouches_for_is_not_talked_to(
    server: Serving, made: Certificates, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Certificates(tmp_path / "other")
    for trust in (None, str(other.authority)):
        with pytest.raises(TlsFailed, match="not trusted") as caught:
            connect(url(server), user="anna", password="secret", ca_file=trust)
        assert "ca_file" in caught.value.hint
        with pytest.raises(TlsFailed, match="not trusted"):
            asyncio.run(aio.connect(url(server), ca_file=trust))


def test_a_certificate_of_another_host_is_not_trusted(
    server: Serving, made: Certificates
) -> None:
    with pytest.raises(TlsFailed, match="mismatch.*localhost") as caught:
        connect(url(server, "localhost"), ca_file=str(made.authority))

    assert "name" in caught.value.hint


def test_the_wrong_scheme_is_told_from_a_server_that_is_away(
    server: Serving, made: Certificates, tmp_path: Path
) -> None:
    plain = f"127.0.0.1:{server.ports['native']}"
    for spoken in (plain, f"penstock://{plain}"):
        with pytest.raises((TlsFailed, ConnectionLost)) as caught:
            connect(spoken, user="anna", password="secret")
        assert "penstock+tls://" in caught.value.hint
        with pytest.raises((TlsFailed, ConnectionLost)) as caught:
            asyncio.run(aio.connect(spoken, user="anna", password="secret"))
        assert "penstock+tls://" in caught.value.hint
    with serving(tmp_path, "--no-http", "--no-maze", "--no-json") as other:
        with pytest.raises(TlsFailed, match="does not speak TLS") as caught:
            native(other, made)
        assert "penstock://" in caught.value.hint
        with pytest.raises(TlsFailed, match="does not speak TLS"):
            asyncio.run(aio.connect(url(other)))


# Certificates of clients


def test_a_certificate_names_a_user_who_needs_no_password(
    server: Serving, made: Certificates, sensor: tuple[Path, Path]
) -> None:
    trust = made.context(shown=sensor)

    with Wire(server.ports["line"], tls=trust) as wire:
        wire.say("as Sensor", "confirm on")
        assert "Sensor" in wire.lines(3)[1]
        assert wire.ask('pub sensors/1 {"id":"1"}').startswith("published sensors/1")
        said = wire.ask("pub other {}")
        assert said == "error: user sensor may not publish to other"
    with Wire(server.ports["consumer"], tls=trust) as wire:
        wire.say("log sensor", SUB)
        assert wire.lines(3) == [PLEASE, WELCOME, "OK"]
    with Wire(server.ports["publisher"], tls=trust) as wire:
        wire.say("log sensor", '{"type":"PUB","topic":"other","msg":{}}')
        assert wire.lines(2) == [PLEASE, WELCOME]
        assert "user sensor may not publish" in wire.line()
    with native(server, made, sensor) as client:
        client.publish("sensors/2", b"x")
        with pytest.raises(ServerRefused, match="user sensor may not publish"):
            client.publish("other", b"x")
    for user in (None, "sensor"):
        with Wire(server.ports["mqtts"], tls=trust) as wire:
            assert mqtt(wire.sock, user, None) == 0
        assert over_web(server, trust, user, None) == 0
    assert get(server, trust, "/v1/topics/t").status in (200, 404)
    assert get(server, trust, "/v1/topics/other").status == 403


def test_a_certificate_spares_the_password_of_nobody_else(
    server: Serving, made: Certificates, sensor: tuple[Path, Path]
) -> None:
    trust = made.context(shown=sensor)

    with Wire(server.ports["line"], tls=trust) as wire:
        wire.line()
        assert wire.ask("as anna").startswith("error: ")
        assert "wrong password" in wire.ask("as anna wrong")
        assert wire.ask("as anna secret") == replies.subscriber("anna").decode().strip()
    with Wire(server.ports["consumer"], tls=trust) as wire:
        wire.say("log anna")
        assert wire.lines(2) == [PLEASE, PLEASE]
    with pytest.raises(ServerRefused):
        native(server, made, sensor, user="anna")
    with Wire(server.ports["mqtts"], tls=trust) as wire:
        assert mqtt(wire.sock, "anna", None) == Reason.NOT_AUTHORIZED
    # And the user has no password, whatever is tried.
    for password in ("certificate", ""):
        with pytest.raises(ServerRefused, match="wrong password"):
            native(server, made, sensor, user="sensor", password=password)


def test_quotas_hold_for_users_with_certificates(
    tmp_path: Path, made: Certificates, sensor: tuple[Path, Path]
) -> None:
    users = tmp_path / "users"
    set_password(users, "anna", "secret")
    set_certificate(users, "sensor")
    set_quota(users, "sensor", Quota(connections=1, topics=1))
    trust = made.context(shown=sensor)
    settings = "[tls]\ncert_users = 'cn'"
    with (
        started(tmp_path, made, settings, users=users) as server,
        Wire(server.ports["line"], tls=trust) as wire,
    ):
        wire.say("as anna wrong", "as sensor", "confirm on")
        assert "wrong password" in wire.lines(3)[1]
        wire.line()
        assert wire.ask('pub one {"id":"1"}').startswith("published one")

        assert "quota: topics is 1" in wire.ask('pub two {"id":"1"}')
        with Wire(server.ports["publisher"], tls=trust) as other:
            assert "quota: connections is 1" in other.line()


def test_a_page_of_somebody_else_gets_nothing_by_a_browsers_certificate(
    server: Serving, made: Certificates, sensor: tuple[Path, Path]
) -> None:
    trust = made.context(shown=sensor)

    found = get(server, trust, "/v1/topics/t", Origin="https://evil.test")

    assert found.status == 403


def test_a_certificate_of_somebody_unknown_is_refused(
    server: Serving, made: Certificates
) -> None:
    trust = made.context(shown=made.signed("stranger"))

    for port in ("line", "consumer", "publisher"):
        with Wire(server.ports[port], tls=trust) as wire:
            assert "stranger is not known here" in wire.line()
            assert wire.line() == ""
    with pytest.raises(ServerRefused, match="stranger is not known"):
        native(server, made, made.signed("stranger"))
    with Wire(server.ports["mqtts"], tls=trust) as wire:
        assert wire.line().startswith("error: ")
    assert get(server, trust).status == 401
    with pytest.raises(Exception):  # noqa: B017 - however it is closed
        over_web(server, trust, None, None)


def test_a_certificate_of_another_authority_is_refused(
    server: Serving, made: Certificates, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    forged = Certificates(tmp_path / "other").signed("sensor")

    for port in ("line", "consumer", "publisher", "mqtts", "http"):
        with (
            pytest.raises(OSError),
            Wire(server.ports[port], tls=made.context(shown=forged)) as wire,
        ):
            wire.sock.recv(1)
            raise ConnectionResetError
    with pytest.raises((TlsFailed, ConnectionLost)) as caught:
        native(server, made, forged)
    assert "cert_file" in caught.value.hint


def test_clients_without_a_certificate_may_be_turned_away(
    tmp_path: Path, made: Certificates
) -> None:
    with started(tmp_path, made, "[tls]\nrequire_client_cert = true") as server:
        native(server, made, made.client).close()
        with pytest.raises((TlsFailed, ConnectionLost)) as caught:
            native(server, made)
        assert "cert_file" in caught.value.hint
        with pytest.raises(ClientError) as told:
            asyncio.run(aio.connect(url(server), ca_file=str(made.authority)))
        assert "cert_file" in told.value.hint
        for port in ("line", "consumer", "publisher", "mqtts", "http"):
            with (
                pytest.raises(OSError),
                Wire(server.ports[port], tls=made.context()) as wire,
            ):
                assert not wire.sock.recv(1)
                raise ConnectionResetError


# Renewal


def test_certificates_are_renewed_while_the_server_runs(
    tmp_path: Path, made: Certificates
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    files = Certificates(own)
    second = Certificates(other)
    with started(tmp_path, files, "[tls]\nrequire_client_cert = true") as server:
        first = files.context(client=True)
        with Wire(server.ports["line"], tls=first) as standing:
            before = serial(server, first)

            put(second.server, files.server)
            put((second.authority,), (files.authority,))
            new = second.context(client=True)
            until(lambda: serial(server, new) not in (None, before))

            # Whoever is inside stays; whoever comes is looked at by the new files.
            assert standing.line() == GREETING
            assert "error" not in standing.ask("as me")
            for port in ("line", "http", "native", "mqtts"):
                assert serial(server, new, port) == serial(server, new)
            shown = second.context()
            shown.load_cert_chain(*made.client)
            assert serial(server, shown) is None

            files.server[0].write_text("half a certifi")
            until(lambda: "stays as it was" in server.log.read_text())
            assert serial(server, new) is not None


def put(new: tuple[Path, ...], old: tuple[Path, ...]) -> None:
    """Replace files as those do who renew certificates."""
    for here, there in zip(new, old, strict=True):
        draft = there.with_suffix(".new")
        shutil.copy(here, draft)
        draft.replace(there)


def serial(server: Serving, trust: ssl.SSLContext, port: str = "line") -> str | None:
    """Which certificate the server shows; None if one side does not trust the other."""
    with (
        suppress(OSError),
        closing(socket.create_connection(address(server, port))) as s,
    ):
        s.settimeout(PATIENCE_S)
        with trust.wrap_socket(s, server_hostname="127.0.0.1") as wrapped:
            if port == "line" and not wrapped.recv(1):
                return None
            return str((wrapped.getpeercert() or {})["serialNumber"])
    return None


def address(server: Serving, port: str) -> tuple[str, int]:
    return "127.0.0.1", server.ports[port]


def until(done: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


# Whoever is a client


def test_a_handler_is_reached_by_its_url(server: Serving, made: Certificates) -> None:
    where = f"penstock+tls://anna:secret@127.0.0.1:{server.ports['native']}"
    seen: list[bytes] = []
    billing = Domain("billing")

    @billing.on("orders")
    def handle(event: Event[bytes]) -> None:
        seen.append(event.payload)

    with penstock.open(where, ca_file=str(made.authority)) as broker:
        broker.start(billing)
        broker.publish("orders", b"one")
        broker.wait_until_settled(timeout_s=PATIENCE_S)

    assert seen == [b"one"]


def test_a_feed_stores_over_tls(server: Serving, made: Certificates) -> None:
    where = remote(url(server), Tls(ca_file=str(made.authority)))
    with Feed(where, "f", gateway="test", user="anna", password="secret") as feed:
        feed.put([FeedEvents("fed", [b"x"])], note="1")
        assert feed.note == "1"


def test_commands_speak_tls(
    server: Serving, made: Certificates, sensor: tuple[Path, Path], tmp_path: Path
) -> None:
    where = ("--server", url(server))
    trust = ("--ca-file", str(made.authority))
    shown = ("--cert-file", str(sensor[0]), "--key-file", str(sensor[1]))

    done = server.run("publish", "sensors/cli", *where, *trust, *shown, input=b"{}\n")
    assert done.returncode == 0, done.stderr
    said = server.run("publish", "sensors/cli", *where, *shown, input=b"{}\n")
    assert said.returncode == 2
    assert b"not trusted" in said.stderr
    assert b"--ca-file" in said.stderr
    (tmp_path / "password").write_text("secret\n")
    login = ("--user", "anna", "--password-file", str(tmp_path / "password"))
    with sse_server(answer(b"data: {}\n\n"), NO_CONTENT) as source:
        command = ("ingest", "sse", source.url, "--topic", "taken", "--until-end")
        done = server.run(*command, *where, *trust, *login)
    assert done.returncode == 0, done.stderr
    done = server.run("topics", *where, *trust, *login)
    assert b"taken" in done.stdout
    said = server.run("topics", "--data", str(server.data), *trust)
    assert b"need --server" in said.stderr
