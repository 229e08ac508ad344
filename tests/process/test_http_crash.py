"""What HTTP confirmed or delivered is true after kill -9, and nothing is doubled.

Every story has a topic of its own and hands over when it wants the server killed, so
that one kill is a kill for all of them.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.effort import effort
from tests.http_client import TIMEOUT_S, Http, token_of
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

ONLY_HTTP = ("--no-line", "--no-json", "--no-maze", "--no-native")
NDJSON = {"Content-Type": "application/x-ndjson"}
KILLS = effort(3, 10)

Story = Generator[None, Http, None]
"""Yields where the server is to be killed; gets a client of the next one."""


def test_what_http_confirmed_or_delivered_is_true_after_kills(tmp_path: Path) -> None:
    with serving(tmp_path, *ONLY_HTTP) as server:
        # The last ones are in the middle of something when they hand over.
        going = [begin(server, Http(server)) for begin in STORIES]
        going = [story for story in going if goes_on(story, None)]
        while going:
            server.kill()
            server.start()
            client = Http(server)
            going = [story for story in going if goes_on(story, client)]


def goes_on(story: Story, client: Http | None) -> bool:
    """Let a story go on to its next kill; whether there is one."""
    try:
        if client is None:
            next(story)
        else:
            story.send(client)
    except StopIteration:
        return False
    return True


def events_of(topic: str) -> str:
    return f"/v1/topics/{topic}/events"


def stored(client: Http, topic: str) -> list[int]:
    """The payloads of a topic, in order."""
    if client.ask("GET", f"/v1/topics/{topic}").status == 404:
        return []
    accept = {"Accept": "application/x-ndjson"}
    lines = client.ask("GET", events_of(topic), headers=accept)
    return [json.loads(line)["payload"] for line in lines.body.splitlines()]


# Publishing


class Sender:
    """An endless request: lines go out, answers come in."""

    def __init__(self, server: Serving, topic: str) -> None:
        address = ("127.0.0.1", server.ports["http"])
        self._sock = socket.create_connection(address, TIMEOUT_S)
        self._sock.sendall(
            f"POST {events_of(topic)} HTTP/1.1\r\nHost: localhost\r\n"
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


def every_confirmed_line_is_there_once_and_a_retry_stores_once(
    server: Serving, client: Http
) -> Story:
    """The sender is cut off in the middle, again and again, and begins anew."""
    topic, block, first, confirmed = "lines", 500, 0, {}
    for turn in range(KILLS):
        sender = Sender(server, topic)
        for at in range(first, first + (4 + turn) * block, block):
            sender.send(range(at, at + block))
        answers = sender.confirmed(2 * block)
        client = yield
        answers += sender.rest()
        there = stored(client, topic)

        for number, answer in enumerate(answers, first):
            assert there[answer["offset"]] == number
            confirmed[number] = answer["offset"]
        assert sorted(set(there)) == sorted(there), "stored twice"
        assert set(confirmed) <= set(there)
        # All that was not confirmed is sent again, and some that was.
        first = max(confirmed) - block

    total = max(confirmed) + 1
    lines = b"".join(map(line, range(total)))
    again = client.ask("POST", events_of(topic), lines, NDJSON)

    answers = [json.loads(text) for text in again.body.splitlines()]
    assert {
        n: a["offset"] for n, a in enumerate(answers) if n in confirmed
    } == confirmed
    there = stored(client, topic)
    assert sorted(there)[:total] == list(range(total))
    assert len(set(there)) == len(there)


def a_confirmed_request_is_there_after_a_crash(server: Serving, client: Http) -> Story:
    """One event, an array, a raw body: each kind, then a crash."""
    expected: list[int] = []
    path = events_of("requests")
    for first in range(0, 30 * KILLS, 30):
        for number in range(first, first + 30, 3):
            for body in ({"payload": number}, [{"payload": number + 1}]):
                assert client.ask("POST", path, body).status == 201
            assert client.ask("POST", path, b"%d" % (number + 2)).status == 201
        expected += range(first, first + 30)

        client = yield

        assert stored(client, "requests") == expected


def a_request_that_was_not_answered_can_be_repeated(
    server: Serving, client: Http
) -> Story:
    """Killed between sending and answering: with a dedup id that is no question."""
    path = events_of("unanswered")
    for turn in range(KILLS):
        rows = [
            {"payload": number, "dedup_id": f"d{number}"}
            for number in range(turn * 100, turn * 100 + 100)
        ]
        body = json.dumps(rows).encode()
        with client.raw() as sock:
            sock.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {client.token}\r\n"
                f"Content-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body[: len(body) if turn % 2 else len(body) // 2]
            )
            client = yield

        for _ in range(2):
            assert client.ask("POST", path, rows).status == 201

    assert sorted(stored(client, "unanswered")) == list(range(KILLS * 100))


# Consuming


def acked_events_do_not_come_again_and_held_ones_do(
    server: Serving, client: Http
) -> Story:
    client.ask("POST", events_of("pulled"), [{"payload": n} for n in range(70)])
    handled: list[int] = []
    topic_filter = {"start": "earliest", "max": 60}
    path = "/v1/subscriptions/w/pulled/pull"

    while len(handled) < 70:
        events = client.ask("POST", path, topic_filter).json()["events"]
        # Half of them are handled, and acknowledged; then the server is killed while
        # the others are still held.
        done = events[: max(len(events) // 2, 20)]
        handled += [event["payload"] for event in done]
        acks = {"max": 0, "ack": [event["offset"] for event in done]}
        assert client.ask("POST", path, acks).json()["settled"] == len(done)
        client = yield

    assert handled == list(range(70))


def a_socket_that_broke_gets_what_it_did_not_acknowledge(
    server: Serving, client: Http
) -> Story:
    client.ask("POST", events_of("socket"), [{"payload": n} for n in range(40)])
    handled: list[int] = []

    while len(handled) < 40:
        address = f"ws://127.0.0.1:{client.address[1]}/v1/topics/socket/socket"
        headers = {"Authorization": f"Bearer {client.token}"}
        query = "?subscriber=w&window=30&start=earliest"
        with connect(address + query, additional_headers=headers) as ws:
            done = json.loads(ws.recv(TIMEOUT_S))["events"][:20]
            handled += [event["payload"] for event in done]
            ws.send(json.dumps({"ack": [event["offset"] for event in done]}))
            wait_for_position(client, done[-1]["offset"] + 1)
            # What is confirmed now is on disk, and so is all that was before it.
            client.ask("POST", events_of("other"), b"x")
            client = yield

    assert handled == list(range(40))


def wait_for_position(client: Http, position: int) -> None:
    path, deadline_s = "/v1/subscriptions/w/socket", time.monotonic() + TIMEOUT_S
    while client.ask("GET", path).json()["position"] < position:
        assert time.monotonic() < deadline_s, "the acks did not arrive"
        time.sleep(0.01)


def a_stream_that_comes_back_sees_every_event_once(
    topic: str, subscriber: str, server: Serving, client: Http
) -> Story:
    total, step = 0, 400
    seen: list[int] = []
    last: int | None = None
    for turn in range(KILLS):
        rows = [{"payload": total + n} for n in range(step)]
        client.ask("POST", events_of(topic), rows)
        total += step
        # The last turn reads to the end, the others break off somewhere.
        wanted = total if turn == KILLS - 1 else len(seen) + 37 + 50 * turn
        path = f"/v1/topics/{topic}/stream?start=earliest{subscriber}"
        for id_, number in follow(client, path, last):
            seen.append(number)
            last = id_
            if len(seen) == wanted:
                break
        client = yield

    assert seen == list(range(total))


def follow(client: Http, path: str, last: int | None) -> Iterator[tuple[int, int]]:
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


STORIES: list[Callable[[Serving, Http], Story]] = [
    a_confirmed_request_is_there_after_a_crash,
    acked_events_do_not_come_again_and_held_ones_do,
    partial(a_stream_that_comes_back_sees_every_event_once, "anybody", ""),
    partial(a_stream_that_comes_back_sees_every_event_once, "anna", "&subscriber=anna"),
    a_socket_that_broke_gets_what_it_did_not_acknowledge,
    every_confirmed_line_is_there_once_and_a_retry_stores_once,
    a_request_that_was_not_answered_can_be_repeated,
]
