"""Pages of other sites at a real server: DNS rebinding over HTTP and WebSockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http_client import Http, Reply, answer_of
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

FLAGS = ("--no-json", "--no-maze", "--no-native", "--no-line")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("hosts")
    config = folder / "penstock.toml"
    config.write_text(
        "[http]\nallowed_hosts = 'events.lan 192.0.2.9'\nopen_on_loopback = true\n"
        "public_url = 'https://public.example'\n"
    )
    with serving(folder, *FLAGS, "--config", str(config)) as server:
        yield server


def send(server: Serving, path: str, *headers: str) -> Reply:
    with Http(server, None).raw() as sock:
        lines = [f"GET {path} HTTP/1.1", *headers, "", ""]
        sock.sendall("\r\n".join(lines).encode())
        return answer_of(sock)


def upgraded(server: Serving, path: str, *headers: str) -> Reply:
    return send(
        server,
        path,
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: mqtt",
        *headers,
    )


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LocalHost:8420", "127.0.0.1", "127.9.9.9:1", "[::1]:8420"),
        *("events.lan", "EVENTS.lan.:80", "192.0.2.9:8420", "public.example"),
    ],
)
def test_own_names_are_answered(server: Serving, host: str) -> None:
    assert send(server, "/healthz", f"Host: {host}").status == 200
    port = server.ports["http"]
    own = f"Origin: http://127.0.0.1:{port}"
    shaken = upgraded(server, "/mqtt", f"Host: 127.0.0.1:{port}", own)
    assert shaken.status == 101


@pytest.mark.parametrize("path", ["/mqtt", "/%6dqtt", "/mqtt?x=1", "/%6D%71tt"])
def test_nothing_is_compressed_before_a_login_however_it_is_spelled(
    server: Serving, path: str
) -> None:
    asked = "Sec-WebSocket-Extensions: permessage-deflate"

    shaken = upgraded(server, path, "Host: localhost", asked)

    assert shaken.status == 101
    assert "sec-websocket-extensions" not in shaken.headers


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:{}", "127.0.0.1.evil.example", "192.0.2.8"),
        *("localhost.evil.example", "evil.example@localhost", "xlocalhost", "[::2]"),
        *("2130706433", "localhost:x", ""),
        *("[::1].evil.example", "[::1]evil.example:80", "[::1%25x]evil.example"),
        *("127.0.0.1%evil.example", "[::1%25lo]", "127.0.0.1%25", "[::1]]:80"),
    ],
)
def test_a_page_that_resolves_its_name_to_us_gets_nothing(
    server: Serving, host: str
) -> None:
    name = host.format(server.ports["http"])
    page = (f"Host: {name}", f"Origin: http://{name}", "Sec-Fetch-Site: same-origin")

    answers = [
        send(server, "/v1/topics", *page),
        send(server, "/", *page),
        send(server, "/healthz", *page),
        upgraded(server, "/mqtt", *page),
        upgraded(server, "/v1/topics/t/socket", *page),
    ]

    assert [one.status for one in answers] == [421] * 5
    for one in answers:
        assert one.headers["content-type"] == "application/problem+json"
        assert one.json()["error"] == "Misdirected"
        assert "http.allowed_hosts" in one.json()["hint"]
        assert one.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "http://events.lan"]
)
def test_a_page_of_another_origin_opens_no_websocket(
    server: Serving, origin: str
) -> None:
    port = server.ports["http"]

    answer = upgraded(server, "/mqtt", f"Host: localhost:{port}", f"Origin: {origin}")

    assert answer.status == 403


def test_a_request_without_host_is_none_of_http_1_1(server: Serving) -> None:
    assert send(server, "/healthz").status == 400


def test_an_open_loopback_is_closed_to_what_a_proxy_has_passed_on(
    server: Serving,
) -> None:
    host = "Host: localhost"

    statuses = [
        send(server, "/v1/topics", host).status,
        send(server, "/v1/topics", host, "X-Forwarded-For: 127.0.0.1").status,
        send(server, "/v1/topics", host, "Forwarded: for=127.0.0.1").status,
    ]

    assert statuses == [200, 401, 401]


def test_a_star_lets_any_name_in(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text("[http]\nallowed_hosts = '*'\n")
    with serving(tmp_path, *FLAGS, "--config", str(config)) as server:
        assert send(server, "/healthz", "Host: any.example").status == 200
