"""A real server, asked over real sockets: what only those can show."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.http.key_file import KeyFile
from penstock.server.users_file import remove_user, set_password
from tests.command import command
from tests.http_client import Http, Reply, answer_of, token_of
from tests.serving import PENSTOCK, Serving, serving

pytestmark = pytest.mark.slow

ONLY_HTTP = ("--no-line", "--no-json", "--no-maze", "--no-native")
QUICK = 45.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("http"), *ONLY_HTTP) as server:
        yield server


@pytest.fixture
def client(server: Serving) -> Http:
    return Http(server)


def until(condition: object, seconds: float = QUICK) -> None:
    assert callable(condition)
    deadline_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline_s, "not within the time"
        time.sleep(0.005)


def test_a_topic_is_made_published_to_and_read(client: Http) -> None:
    made = client.ask("POST", "/v1/topics", {"name": "a/b ü"})
    path = "/v1/topics/a%2Fb%20%C3%BC"
    stored = client.ask("POST", f"{path}/events", {"payload": {"n": 1}})
    page = client.ask("GET", f"{path}/events?offset=0")

    assert made.status == 201
    assert stored.status == 201
    assert [event["payload"] for event in page.json()["events"]] == [{"n": 1}]


def test_several_requests_share_a_connection(client: Http) -> None:
    request = (
        f"GET /v1/topics?limit=1 HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {client.token}\r\n\r\n"
    ).encode()
    with client.raw() as sock:
        for _ in range(3):
            sock.sendall(request)
            assert answer_of(sock).status == 200


def test_a_head_has_no_body(client: Http) -> None:
    reply = client.ask("HEAD", "/openapi.json")

    assert reply.status == 200
    assert reply.body == b""
    assert int(reply.headers["content-length"]) > 1000


@pytest.mark.parametrize(
    "target",
    [
        "/../../../../etc/passwd",
        "/assets/../../../../etc/passwd",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/%2e%2e/app.py",
        "/ui/../../app.py",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/assets/%00",
        "/v1/topics/%00",
        "/v1/topics/%ff",
        "/v1/topics/..",
        "/v1/../v1/topics",
        "http://elsewhere.example/v1/topics",
        "*",
        "/v1/topics/" + "x" * 2000,
        "/v1/topics/" + "%2F".join(["x"] * 500),
    ],
)
def test_a_path_leads_to_what_it_names_and_to_nothing_else(
    client: Http, target: str
) -> None:
    with client.raw() as sock:
        sock.sendall(
            f"GET {target} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {client.token}\r\n\r\n".encode()
        )
        reply = answer_of(sock)

    assert reply.status in (400, 404, 503) or reply.body.startswith(b"<!doctype html>")
    assert b"root:" not in reply.body
    assert b"import" not in reply.body[:200]
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_answers_name_neither_program_nor_version(client: Http) -> None:
    reply = client.ask("GET", "/healthz")

    assert "server" not in reply.headers
    assert "date" in reply.headers


def test_the_ready_file_names_port_and_login_for_the_owner(server: Serving) -> None:
    path = server.data.parent / "ready.json"

    told = json.loads(path.read_bytes())

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    port = told["ports"]["http"]
    assert told["login"] == f"http://127.0.0.1:{port}/#token={token_of(server)}"


def test_the_commands_of_tokens_work_on_a_running_server(server: Serving) -> None:
    added = command(
        server, "token", "--data", str(server.data), "add", "r", "--scope", "read"
    )
    token = added.stdout.decode().strip()
    reader = Http(server, token)

    before = reader.ask("GET", "/v1/topics")
    forbidden = reader.ask("POST", "/v1/topics", {"name": "x"})
    command(server, "token", "remove", "r", "--data", str(server.data))
    after = reader.ask("GET", "/v1/topics")

    assert (before.status, forbidden.status, after.status) == (200, 403, 401)


def test_a_link_goes_to_the_port_where_the_server_listens(server: Serving) -> None:
    link = f"http://127.0.0.1:{server.ports['http']}/#token={token_of(server)}"

    shown = command(server, "token", "show", "--link", "--data", str(server.data))

    assert shown.stdout.decode() == f"{link}\n"


def test_a_file_of_tokens_that_is_broken_is_named_before_anything_starts(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "http-tokens.json").write_text("{")
    flags = [*ONLY_HTTP, "--no-mqtt", "--data", str(data), "--http-port", "0"]

    done = subprocess.run(
        [*PENSTOCK, "serve", *flags], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "http-tokens.json" in done.stderr
    assert "put it aside" in done.stderr


# Ending


def test_a_long_poll_is_answered_when_the_server_is_told_to_stop(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, *ONLY_HTTP) as server:
        client = Http(server)
        client.ask("POST", "/v1/topics", {"name": "t"})
        replies: list[Reply] = []
        body = {"max": 10, "wait_s": 60}

        def poll() -> None:
            path = "/v1/subscriptions/me/t/pull"
            replies.append(client.ask("POST", path, body))

        thread = threading.Thread(target=poll)
        thread.start()
        path = "/v1/subscriptions/me/t"
        until(lambda: client.ask("GET", path).status == 200)

        began_s = time.monotonic()
        code = server.stop()
        thread.join()

        assert code == 0
        assert time.monotonic() - began_s < QUICK
        assert [reply.status for reply in replies] == [200]
        assert replies[0].json()["events"] == []


def test_a_stream_ends_when_the_server_is_told_to_stop(tmp_path: Path) -> None:
    with serving(tmp_path, *ONLY_HTTP) as server:
        client = Http(server)
        client.ask("POST", "/v1/topics", {"name": "t"})
        with client.raw() as sock:
            sock.sendall(
                f"GET /v1/topics/t/stream HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {client.token}\r\n\r\n".encode()
            )
            assert b"200 OK" in sock.recv(1000)

            code = server.stop()

            while sock.recv(1 << 16):
                pass
        assert code == 0


def test_a_stream_ends_with_the_token_or_the_user_that_opened_it(
    tmp_path: Path,
) -> None:
    users = tmp_path / "users"
    set_password(users, "anna", "secret")
    set_password(users, "bert", "secret")
    with serving(tmp_path, *ONLY_HTTP, "--users-file", str(users)) as server:
        client = Http(server)
        client.ask("POST", "/v1/topics", {"name": "t"})
        made = command(
            server, "token", "add", "reader", "--scope", "read"
        ).stdout.split()
        token = next(word for word in made if word.startswith(b"pk_")).decode()
        anna = base64.b64encode(b"anna:secret").decode()
        with client.raw() as one, client.raw() as other:
            for sock, login in ((one, f"Bearer {token}"), (other, f"Basic {anna}")):
                sock.sendall(
                    f"GET /v1/topics/t/stream HTTP/1.1\r\nHost: localhost\r\n"
                    f"Authorization: {login}\r\n\r\n".encode()
                )
                assert b"200 OK" in sock.recv(1000)

            command(server, "token", "remove", "reader")
            until_ended(one)
            remove_user(users, "anna")
            until_ended(other)


def until_ended(sock: socket.socket) -> None:
    """Read until the last chunk of an answer."""
    got, deadline_s = b"", time.monotonic() + QUICK
    while not got.endswith(b"0\r\n\r\n"):
        data = sock.recv(1 << 16)
        assert data and time.monotonic() < deadline_s, got
        got += data


def test_a_client_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text("[server]\ndrain_s = 300\n")
    flags = ("--no-json", "--no-maze", "--no-native", "--config", str(config))
    with serving(tmp_path, *flags) as server:
        client = Http(server)
        for _ in range(4):
            client.ask("POST", "/v1/topics/t/events", b"x" * (8 << 20))
        line = socket.create_connection(("127.0.0.1", server.ports["line"]), QUICK)
        with client.raw() as stalled, line:
            stalled.sendall(
                f"GET /v1/topics/t/events HTTP/1.1\r\nHost: localhost\r\n"
                f"Accept: application/x-ndjson\r\n"
                f"Authorization: Bearer {client.token}\r\n\r\n".encode()
            )
            assert stalled.recv(10)
            began_s = time.monotonic()

            code = server.stop()

            assert code == 0
            assert time.monotonic() - began_s < QUICK
            while line.recv(1 << 16):
                pass


def test_what_was_begun_is_answered_before_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, *ONLY_HTTP) as server:
        client = Http(server)
        with client.raw() as sock:
            sock.sendall(
                f"POST /v1/topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n"
                f"Content-Type: application/json\r\n"
                f"Authorization: Bearer {client.token}\r\n\r\n".encode()
            )
            until(lambda: client.ask("GET", "/healthz").status == 200)
            os.kill(server.pid, signal.SIGTERM)
            until(lambda: not accepts(client.address))

            sock.sendall(b'{"name":"t"}')
            reply = answer_of(sock)

            assert reply.status == 201
            assert sock.recv(1) == b""
        server.stop()
        server.start()
        assert Http(server).ask("GET", "/v1/topics/t").status == 200


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, *ONLY_HTTP) as server:
        client = Http(server)
        with client.raw() as sock:
            sock.sendall(
                f"POST /v1/topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n"
                f"Authorization: Bearer {client.token}\r\n"
                f"Content-Type: application/json\r\n\r\n".encode()
            )
            until(lambda: client.ask("GET", "/healthz").status == 200)
            os.kill(server.pid, signal.SIGTERM)
            until(lambda: not accepts(client.address))

            assert server.stop() == 1


def accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, 1).close()
    except OSError:
        return False
    return True


# Limits


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("strict")
    config = folder / "penstock.toml"
    config.write_text(
        "[http]\nheader_s = 1\nbody_s = 1\nkeep_alive_s = 1\n"
        'max_body_bytes = "64KiB"\nmax_header_bytes = "4KiB"\n'
        "[server]\nmax_connections = 20\n"
    )
    with serving(folder, *ONLY_HTTP, "--config", str(config)) as server:
        yield server


def test_headers_that_trickle_in_are_not_waited_for(strict: Serving) -> None:
    with Http(strict).raw() as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\n")
        began_s = time.monotonic()
        sock.settimeout(0.2)
        got = b""
        while time.monotonic() < began_s + QUICK:
            try:
                data = sock.recv(1 << 16)
            except TimeoutError:
                sock.sendall(b"X: y\r\n")
                continue
            if not data:
                break
            got += data

    assert time.monotonic() - began_s < QUICK
    assert got.startswith(b"HTTP/1.1 408 ")
    assert b"http.header_s" in got


def test_a_connection_without_a_request_is_closed(strict: Serving) -> None:
    with Http(strict).raw() as sock:
        began_s = time.monotonic()

        assert sock.recv(1) == b""

        assert time.monotonic() - began_s < QUICK


def test_a_body_that_trickles_in_is_not_waited_for(strict: Serving) -> None:
    client = Http(strict)
    with client.raw() as sock:
        sock.sendall(
            f"POST /v1/topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
            f"Content-Type: application/json\r\n"
            f"Authorization: Bearer {client.token}\r\n\r\n{{".encode()
        )

        assert answer_of(sock).status == 408


def test_a_login_that_trickles_in_has_the_time_of_headers(strict: Serving) -> None:
    with Http(strict).raw() as sock:
        sock.sendall(
            b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
            b"Content-Type: application/json\r\n\r\n{"
        )
        reply = answer_of(sock)

    assert reply.status == 408
    assert "http.header_s" in reply.json()["detail"]


def test_headers_larger_than_the_limit_are_refused(strict: Serving) -> None:
    with Http(strict).raw() as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 10_000)
        reply = answer_of(sock)

    assert reply.status == 431
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["limit"] == "4096"
    assert "http.max_header_bytes" in reply.json()["detail"]


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00\x01\x00", b"hello\r\n\r\n"])
def test_what_is_not_http_is_refused(strict: Serving, data: bytes) -> None:
    with Http(strict).raw() as sock:
        sock.sendall(data)
        reply = answer_of(sock)

    assert reply.status == 400
    assert reply.json()["error"] == "BadRequest"


def test_a_body_that_is_declared_too_large_is_refused_before_it_is_sent(
    strict: Serving,
) -> None:
    client = Http(strict)
    with client.raw() as sock:
        sock.sendall(
            f"POST /v1/topics HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 9999999\r\n"
            f"Content-Type: application/json\r\nExpect: 100-continue\r\n"
            f"Authorization: Bearer {client.token}\r\n\r\n".encode()
        )
        reply = answer_of(sock)

    assert reply.status == 413
    assert reply.json()["limit"] == "65536"


def test_who_sends_too_much_all_the_same_gets_to_read_why(strict: Serving) -> None:
    body = b'{"name": "' + b"x" * (8 << 20) + b'"}'

    reply = Http(strict).ask(
        "POST", "/v1/topics", body, {"Content-Type": "application/json"}
    )

    assert reply.status == 413


def test_a_body_in_chunks_is_refused_when_it_becomes_too_large(strict: Serving) -> None:
    client = Http(strict)
    with client.raw() as sock:
        sock.sendall(
            f"POST /v1/topics HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n"
            f"Content-Type: application/json\r\n"
            f"Authorization: Bearer {client.token}\r\n\r\n".encode()
        )
        chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        sock.sendall(chunk * 3)
        reply = answer_of(sock)
        assert reply.status == 413

        # It need not be read to its end: who goes on for ever is cut off.
        with pytest.raises(ConnectionError):
            deadline_s = time.monotonic() + QUICK
            while time.monotonic() < deadline_s:
                sock.sendall(chunk)


def test_connections_have_a_limit_and_the_refusal_names_it(strict: Serving) -> None:
    client = Http(strict)
    socks = [socket.create_connection(client.address) for _ in range(20)]
    try:
        with client.raw() as sock:
            reply = answer_of(sock)
        assert reply.status == 429
        assert "20 connections" in reply.json()["detail"]
    finally:
        for one in socks:
            one.close()
    until(lambda: _asked(client) == 200)


def _asked(client: Http) -> int:
    try:
        return client.ask("GET", "/healthz").status
    except OSError:
        return 0


# Tokens on disk


def test_a_kill_while_tokens_are_written_leaves_a_file_that_is_whole(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    program = (
        "import sys\n"
        "from penstock.http.key_file import KeyFile, TokenRequest\n"
        "file = KeyFile(sys.argv[1])\n"
        "file.begin(0)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    file.add(TokenRequest(name='x'), 0)\n"
        "    file.remove('x')\n"
        "    file.renew(0)\n"
    )
    for number in range(10):
        process = subprocess.Popen(
            [PENSTOCK[0], "-c", program, str(data)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.003 * number)  # a moment of its own for each kill
        process.kill()
        process.wait()
        process.stdout.close()

        keys = KeyFile(data).read()

        assert "admin" in keys
        mode = stat.S_IMODE((data / "http-tokens.json").stat().st_mode)
        assert mode == 0o600
        if "x" in keys:
            KeyFile(data).remove("x")
