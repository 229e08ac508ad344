"""Events over HTTP with the clients that people have: aiohttp, websockets, curl."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import websockets

from tests.http_client import Http, token_of
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

ONLY_HTTP = ("--no-line", "--no-json", "--no-maze", "--no-native")
NDJSON = {"Content-Type": "application/x-ndjson"}
WAIT_S = 60.0

needs_curl = pytest.mark.skipif(
    shutil.which("curl") is None, reason="component: curl (not installed)"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("http"), *ONLY_HTTP) as server:
        yield server


@pytest.fixture
def client(server: Serving) -> Http:
    return Http(server)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """One for each test."""
    return str(request.node.name)[:100]


def run(scene: Any) -> None:
    asyncio.run(asyncio.wait_for(scene, WAIT_S))


@asynccontextmanager
async def session(server: Serving) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {token_of(server)}"}
    base = f"http://127.0.0.1:{server.ports['http']}"
    timeout = aiohttp.ClientTimeout(total=None, sock_read=WAIT_S)
    async with aiohttp.ClientSession(base, headers=headers, timeout=timeout) as one:
        yield one


def published(client: Http, topic: str, *numbers: int) -> None:
    rows = [{"payload": {"n": number}} for number in numbers]
    answer = client.ask("POST", f"/v1/topics/{topic}/events", rows)
    assert answer.status == 201, answer.body


def numbers_of(page: Any) -> list[int]:
    return [event["payload"]["n"] for event in page["events"]]


# aiohttp


def test_a_generator_of_lines_is_answered_while_it_goes_on(
    server: Serving, topic: str
) -> None:
    confirmed: list[Any] = []

    async def scene() -> None:
        seen = asyncio.Event()

        async def lines() -> AsyncIterator[bytes]:
            for number in range(100):
                yield b'{"payload":{"n":%d}}\n' % number
            # It would wait for ever if the answers came at the end.
            await seen.wait()
            for number in range(100, 200):
                yield b'{"payload":{"n":%d}}\n' % number

        async with (
            session(server) as http,
            http.post(
                f"/v1/topics/{topic}/events", data=lines(), headers=NDJSON
            ) as got,
        ):
            async for line in got.content:
                confirmed.append(json.loads(line))
                if len(confirmed) == 100:
                    seen.set()

    run(scene())

    assert [one["offset"] for one in confirmed] == list(range(200))


def test_an_event_source_follows_a_topic(
    server: Serving, client: Http, topic: str
) -> None:
    published(client, topic, 0, 1)
    frames: list[bytes] = []

    async def scene() -> None:
        path = f"/v1/topics/{topic}/stream?start=earliest"
        async with session(server) as http, http.get(path) as got:
            assert got.content_type == "text/event-stream"
            while len(frames) < 4:
                frame = await got.content.readuntil(b"\n\n")
                if b"data: " in frame:
                    frames.append(frame)
                if len(frames) == 2:
                    await asyncio.to_thread(published, client, topic, 2, 3)

    run(scene())

    assert [frame.split(b"\n")[0] for frame in frames] == [
        b"id: %d" % offset for offset in range(4)
    ]


def test_a_worker_pulls_handles_and_acknowledges(
    server: Serving, client: Http, topic: str
) -> None:
    published(client, topic, *range(25))
    handled: list[int] = []

    async def scene() -> None:
        path = f"/v1/subscriptions/worker/{topic}/pull"
        topic_filter: dict[str, Any] = {"start": "earliest", "max": 10, "wait_s": 0.2}
        async with session(server) as http:
            while True:
                async with http.post(path, json=topic_filter) as got:
                    events = (await got.json())["events"]
                if not events:
                    return
                handled.extend(event["payload"]["n"] for event in events)
                topic_filter["ack"] = [event["offset"] for event in events]

    run(scene())

    assert handled == list(range(25))
    row = client.ask("GET", f"/v1/subscriptions/worker/{topic}").json()
    assert row["lag"] == 0


def test_a_range_comes_as_lines(server: Serving, client: Http, topic: str) -> None:
    published(client, topic, *range(50))

    lines = client.ask(
        "GET",
        f"/v1/topics/{topic}/events?offset=10&until=20",
        headers={"Accept": "application/x-ndjson"},
    )

    events = [json.loads(line) for line in lines.body.splitlines()]
    assert [event["payload"]["n"] for event in events] == list(range(10, 20))


def test_a_range_comes_as_an_arrow_table(
    server: Serving, client: Http, topic: str
) -> None:
    pa = pytest.importorskip("pyarrow")
    published(client, topic, *range(50))

    answer = client.ask(
        "GET",
        f"/v1/topics/{topic}/events",
        headers={"Accept": "application/vnd.apache.arrow.stream"},
    )

    table = pa.ipc.open_stream(io.BytesIO(answer.body)).read_all()
    assert table["offset"].to_pylist() == list(range(50))


# websockets


def test_a_websocket_delivers_within_its_window_and_takes_acks(
    server: Serving, client: Http, topic: str
) -> None:
    published(client, topic, *range(10))
    seen: list[int] = []

    async def scene() -> None:
        address = f"ws://127.0.0.1:{server.ports['http']}/v1/topics/{topic}/socket"
        headers = {"Authorization": f"Bearer {token_of(server)}"}
        query = "?subscriber=anna&window=4&start=earliest"
        async with websockets.connect(
            address + query, additional_headers=headers
        ) as ws:
            while len(seen) < 10:
                events = json.loads(await ws.recv())["events"]
                assert len(events) <= 4
                seen.extend(event["payload"]["n"] for event in events)
                offsets = [event["offset"] for event in events]
                await ws.send(json.dumps({"ack": offsets}))
        # Acks are taken in before the farewell, so they count.

    run(scene())

    assert seen == list(range(10))
    row = client.ask("GET", f"/v1/subscriptions/anna/{topic}").json()
    assert row["lag"] == 0


def test_a_websocket_without_a_token_is_refused(server: Serving, topic: str) -> None:
    async def scene() -> None:
        address = f"ws://127.0.0.1:{server.ports['http']}/v1/topics/{topic}/socket"
        with pytest.raises(websockets.InvalidStatus) as caught:
            async with websockets.connect(address):
                pass
        assert caught.value.response.status_code == 401

    run(scene())


# curl


def curl(server: Serving, path: str, *flags: str, input: bytes = b"") -> bytes:
    done = subprocess.run(
        [
            *("curl", "-sS", "--max-time", "60", "-H"),
            f"Authorization: Bearer {token_of(server)}",
            *flags,
            f"http://127.0.0.1:{server.ports['http']}{path}",
        ],
        input=input,
        capture_output=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_curl
def test_curl_publishes_a_file_and_reads_it_back(
    server: Serving, client: Http, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "picture").write_bytes(bytes(range(256)) * 1000)
    path = f"/v1/topics/{topic}/events"

    stored = json.loads(
        curl(
            server,
            path,
            *("--data-binary", f"@{tmp_path / 'picture'}"),
            *("-H", "Content-Type: image/png", "-H", "Penstock-Key: cat"),
        )
    )
    found = json.loads(curl(server, f"{path}/{stored['offset']}"))["event"]

    assert (found["key"], found["encoding"], found["bytes"]) == (
        "cat",
        "base64",
        256_000,
    )


@needs_curl
def test_curl_publishes_lines_from_standard_input(server: Serving, topic: str) -> None:
    lines = b"".join(b'{"payload":%d}\n' % number for number in range(20_000))

    answers = curl(
        server,
        f"/v1/topics/{topic}/events",
        *("-T", "-", "-X", "POST", "-H", "Content-Type: application/x-ndjson"),
        input=lines,
    )

    offsets = [json.loads(line)["offset"] for line in answers.splitlines()]
    assert offsets == list(range(20_000))


# Readers and senders that misbehave


def memory_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [one for one in status.splitlines() if one.startswith("VmRSS:")]
    return int(line.split()[1]) << 10


def _request(server: Serving, path: str, *headers: str) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    sock.settimeout(WAIT_S)
    sock.connect(("127.0.0.1", server.ports["http"]))
    lines = [
        f"GET {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token_of(server)}",
        *headers,
    ]
    sock.sendall("\r\n".join([*lines, "", ""]).encode())
    return sock


READERS = {
    "lines": ("/v1/topics/{}/events?limit=1000000", "Accept: application/x-ndjson"),
    "arrow": ("/v1/topics/{}/events", "Accept: application/vnd.apache.arrow.stream"),
    "stream": ("/v1/topics/{}/stream?start=earliest", "Accept: text/event-stream"),
}


@pytest.mark.parametrize("kind", READERS)
def test_readers_that_do_not_read_cost_the_server_no_memory(
    server: Serving, client: Http, topic: str, kind: str
) -> None:
    """20 of them, and 40 MB each that they do not take."""
    name = kind + "-slow"
    if client.ask("GET", f"/v1/topics/{name}").status == 404:
        row = {"text": "x" * 10_000}
        for _ in range(80):
            client.ask("POST", f"/v1/topics/{name}/events", [row] * 50)
    path, accept = READERS[kind]
    one = _request(server, path.format(name), accept)
    one.recv(1000)
    before = memory_bytes(server.pid)

    readers = [_request(server, path.format(name), accept) for _ in range(20)]
    for reader in readers:
        assert reader.recv(1000).startswith(b"HTTP/1.1 200")
    published(client, topic, 1)  # everybody else goes on
    grown = memory_bytes(server.pid) - before

    for reader in (one, *readers):
        reader.close()
    assert grown < 60 << 20


def test_a_torn_request_publishes_nothing_or_whole_lines(
    server: Serving, client: Http, topic: str
) -> None:
    published(client, topic, 0)
    head = (
        f"POST /v1/topics/{topic}/events HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {token_of(server)}\r\nContent-Type: "
    )
    event = '{"payload":{"n":1},"dedup_id":"d1"}'
    length, chunked = "Content-Length: 999", "Transfer-Encoding: chunked"
    torn = [
        ("application/json", length, f"[{event}]"),
        ("application/json", length, event),
        ("text/plain", length, "half"),
        ("application/x-ndjson", length, f"{event}\n{event}"),
        ("application/x-ndjson", chunked, f"29\r\n{event}\n{event[:3]}"),
    ]

    for kind, how, body in torn:
        with socket.create_connection(("127.0.0.1", server.ports["http"])) as sock:
            sock.sendall(f"{head}{kind}\r\n{how}\r\n\r\n{body}".encode())
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1 << 16):
                pass
    published(client, topic, 2)
    lines = f"{event}\n".encode()
    client.ask("POST", f"/v1/topics/{topic}/events", lines, NDJSON)

    page = client.ask("GET", f"/v1/topics/{topic}/events").json()
    assert sorted(numbers_of(page)) == [0, 1, 2]


def test_many_publishers_at_once_are_confirmed_once_each(
    server: Serving, client: Http, topic: str
) -> None:
    async def scene() -> None:
        async with session(server) as http:

            async def one(number: int) -> int:
                body = {"payload": {"n": number}}
                async with http.post(f"/v1/topics/{topic}/events", json=body) as got:
                    offset: int = (await got.json())["offset"]
                    return offset

            offsets = await asyncio.gather(*(one(number) for number in range(300)))
            assert sorted(offsets) == list(range(300))

    run(scene())


def test_a_client_that_reads_only_when_it_has_sent_everything_is_answered(
    client: Http, topic: str
) -> None:
    lines = b'{"payload":1}\n' * 60_000

    answer = client.ask("POST", f"/v1/topics/{topic}/events", lines, NDJSON)

    assert answer.body.count(b"\n") == 60_000
    assert json.loads(answer.body.splitlines()[-1])["offset"] == 59_999


def test_a_server_that_stops_says_goodbye_to_everybody(tmp_path: Path) -> None:
    async def scene(server: Serving) -> None:
        async def lines() -> AsyncIterator[bytes]:
            yield b'{"payload":{"n":1}}\n'
            await asyncio.Event().wait()

        address = f"ws://127.0.0.1:{server.ports['http']}/v1/topics/t/socket"
        headers = {"Authorization": f"Bearer {token_of(server)}"}
        async with (
            session(server) as http,
            http.get("/v1/topics/t/stream") as stream,
            http.post("/v1/topics/t/events", data=lines(), headers=NDJSON) as posted,
            websockets.connect(address, additional_headers=headers) as ws,
        ):
            pulling = asyncio.create_task(
                http.post("/v1/subscriptions/w/u/pull", json={"wait_s": 60})
            )
            await posted.content.readline()
            assert b"data: " in await stream.content.readuntil(b"}\n\n")
            for _ in range(1000):
                if await _pulling(http):
                    break
                await asyncio.sleep(0.01)

            code = await asyncio.to_thread(server.stop)

            assert code == 0
            assert (await (await pulling).json())["events"] == []
            assert b"Ending" in await posted.content.read()
            with pytest.raises(websockets.ConnectionClosed) as closed:
                while True:
                    await ws.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001

    with serving(tmp_path, *ONLY_HTTP) as server:
        for name in ("t", "u"):
            published(Http(server), name, 0)
        run(scene(server))


async def _pulling(http: aiohttp.ClientSession) -> bool:
    """Whether somebody consumes the topic that nobody publishes to."""
    async with http.get("/v1/topics/u") as got:
        readers = (await got.json())["readers"]
    return any(reader["consumers"] for reader in readers)
