"""What HTTP confirmed or delivered is true after kill -9, and nothing is doubled."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.http_client import TIMEOUT_S, Http, token_of
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

ONLY_HTTP = ("--no-line", "--no-json", "--no-maze", "--no-native")
EVENTS = "/v1/topics/t/events"
NDJSON = {"Content-Type": "application/x-ndjson"}
KILLS = 3


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path, *ONLY_HTTP) as server:
        yield server


def crash(server: Serving) -> Http:
    """Kill it and start it again; it has new ports."""
    server.kill()
    server.start()
    return Http(server)


def stored(client: Http) -> list[int]:
    """The payloads of the topic, in order."""
    if client.ask("GET", "/v1/topics/t").status == 404:
        return []
    lines = client.ask("GET", EVENTS, headers={"Accept": "application/x-ndjson"})
    return [json.loads(line)["payload"] for line in lines.body.splitlines()]


# Publishing


class Sender:
    """An endless request: lines go out, answers come in."""

    def __init__(self, server: Serving) -> None:
        address = ("127.0.0.1", server.ports["http"])
        self._sock = socket.create_connection(address, TIMEOUT_S)
        self._sock.sendall(
            f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {token_of(server)}\r\n"
            f"Content-Type: application/x-ndjson\r\n"
            f"Content-Length: {10**15}\r\n\r\n".encode()
        )
        self._answer = http.client.HTTPResponse(self._sock)
        self._answer.begin()

    def send(self, numbers: range) -> None:
        self._sock.sendall(b"".join(map(line, numbers)))

    def confirmed(self, count: int) -> list[Any]:
        """The next answers."""
        return [json.loads(self._answer.readline()) for _ in range(count)]

    def rest(self) -> list[Any]:
        """All that comes before the connection breaks."""
        found = []
        try:
            while text := self._answer.readline():
                if text.endswith(b"\n"):
                    found.append(json.loads(text))
        except (OSError, http.client.HTTPException):
            pass
        self._sock.close()
        return found


def line(number: int) -> bytes:
    return b'{"payload":%d,"dedup_id":"d%d"}\n' % (number, number)


def test_every_confirmed_line_is_there_once_and_a_retry_stores_once(
    server: Serving,
) -> None:
    """The sender is killed off in the middle, again and again, and begins anew."""
    block, first, confirmed = 500, 0, {}
    for turn in range(KILLS):
        sender = Sender(server)
        for number in range(20):
            at = first + number * block
            sender.send(range(at, at + block))
            if number == 3 + turn:
                break
        answers = sender.confirmed(2 * block)
        server.kill()
        answers += sender.rest()
        server.start()
        there = stored(Http(server))

        for number, answer in enumerate(answers, first):
            assert there[answer["offset"]] == number
            confirmed[number] = answer["offset"]
        assert sorted(set(there)) == sorted(there), "stored twice"
        assert set(confirmed) <= set(there)
        # All that was not confirmed is sent again, and some that was.
        first = max(confirmed) - block

    client = Http(server)
    total = max(confirmed) + 1
    again = client.ask("POST", EVENTS, b"".join(map(line, range(total))), NDJSON)

    answers = [json.loads(text) for text in again.body.splitlines()]
    assert {
        n: a["offset"] for n, a in enumerate(answers) if n in confirmed
    } == confirmed
    assert sorted(stored(client))[:total] == list(range(total))
    assert len(set(stored(client))) == len(stored(client))


def test_a_confirmed_request_is_there_after_a_crash(server: Serving) -> None:
    """One event, an array, a raw body: each kind, then a crash."""
    client = Http(server)
    expected: list[int] = []
    for first in range(0, 30 * KILLS, 30):
        for number in range(first, first + 30, 3):
            for body in ({"payload": number}, [{"payload": number + 1}]):
                assert client.ask("POST", EVENTS, body).status == 201
            assert client.ask("POST", EVENTS, b"%d" % (number + 2)).status == 201
        expected += range(first, first + 30)

        client = crash(server)

        assert stored(client) == expected


def test_a_request_that_was_not_answered_can_be_repeated(server: Serving) -> None:
    """Killed between sending and answering: with a dedup id that is no question."""
    client = Http(server)
    for turn in range(KILLS):
        rows = [
            {"payload": number, "dedup_id": f"d{number}"}
            for number in range(turn * 100, turn * 100 + 100)
        ]
        body = json.dumps(rows).encode()
        with client.raw() as sock:
            sock.sendall(
                f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {client.token}\r\n"
                f"Content-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body[: len(body) if turn % 2 else len(body) // 2]
            )
            client = crash(server)

        for _ in range(2):
            assert client.ask("POST", EVENTS, rows).status == 201

    assert sorted(stored(client)) == list(range(KILLS * 100))


# Consuming


def test_acked_events_do_not_come_again_and_held_ones_do(server: Serving) -> None:
    client = Http(server)
    client.ask("POST", EVENTS, [{"payload": number} for number in range(100)])
    handled: list[int] = []
    wish = {"start": "earliest", "max": 60}

    while len(handled) < 100:
        answer = client.ask("POST", "/v1/subscriptions/w/t/pull", wish)
        events = answer.json()["events"]
        # Half of them are handled, and acknowledged; then the server is killed while
        # the others are still held.
        done = events[: max(len(events) // 2, 20)]
        handled += [event["payload"] for event in done]
        acks = {"max": 0, "ack": [event["offset"] for event in done]}
        answer = client.ask("POST", "/v1/subscriptions/w/t/pull", acks)
        assert answer.json()["settled"] == len(done)
        client = crash(server)

    assert handled == list(range(100))


def test_a_socket_that_broke_gets_what_it_did_not_acknowledge(server: Serving) -> None:
    client = Http(server)
    client.ask("POST", EVENTS, [{"payload": number} for number in range(40)])
    handled: list[int] = []

    while len(handled) < 40:
        address = f"ws://127.0.0.1:{client.address[1]}/v1/topics/t/socket"
        headers = {"Authorization": f"Bearer {client.token}"}
        query = "?subscriber=w&window=30&start=earliest"
        with connect(address + query, additional_headers=headers) as ws:
            done = json.loads(ws.recv(TIMEOUT_S))["events"][:20]
            handled += [event["payload"] for event in done]
            ws.send(json.dumps({"ack": [event["offset"] for event in done]}))
            wait_for_position(client, done[-1]["offset"] + 1)
            # What is confirmed now is on disk, and so is all that was before it.
            client.ask("POST", "/v1/topics/other/events", b"x")
            client = crash(server)

    assert handled == list(range(40))


def wait_for_position(client: Http, position: int) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while client.ask("GET", "/v1/subscriptions/w/t").json()["position"] < position:
        assert time.monotonic() < deadline_s, "the acks did not arrive"
        time.sleep(0.01)


@pytest.mark.parametrize("subscriber", ["", "&subscriber=anna"])
def test_a_stream_that_comes_back_sees_every_event_once(
    server: Serving, subscriber: str
) -> None:
    client, total, step = Http(server), 0, 400
    seen: list[int] = []
    last: int | None = None
    for turn in range(KILLS):
        client.ask("POST", EVENTS, [{"payload": total + n} for n in range(step)])
        total += step
        # The last turn reads to the end, the others break off somewhere.
        wanted = total if turn == KILLS - 1 else len(seen) + 37 + 50 * turn
        path = f"/v1/topics/t/stream?start=earliest{subscriber}"
        for id_, number in _follow(server, client, path, last):
            seen.append(number)
            last = id_
            if len(seen) == wanted:
                break
        client = crash(server)

    assert seen == list(range(total))


def _follow(
    server: Serving, client: Http, path: str, last: int | None
) -> Iterator[tuple[int, int]]:
    """Id and payload of what comes, as an EventSource would see them."""
    connection = http.client.HTTPConnection(*client.address, timeout=TIMEOUT_S)
    headers = {"Authorization": f"Bearer {client.token}"}
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    id_ = -1
    try:
        while text := answer.readline():
            if text.startswith(b"id: "):
                id_ = int(text[4:])
            elif text.startswith(b"data: "):
                yield id_, json.loads(text[6:])["payload"]
    finally:
        connection.close()
