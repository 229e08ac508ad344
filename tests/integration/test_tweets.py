"""`penstock tweets serve` as a process: what a reader sees, and how it ends."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from penstock.tweets.generator import Generator
from penstock.wire.sse import ServerSentEvent, SseParser
from tests.process.programs import Program

pytestmark = pytest.mark.slow


def read(url: str, last_event_id: str | None = None) -> list[ServerSentEvent]:
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as sent:
        return SseParser(1 << 20).feed(sent.read())


def test_a_reader_goes_on_although_the_server_was_killed(tmp_path: Path) -> None:
    flags = ("--port", "0", "--rate", "0", "--seed", "3", "--panic-rate", "0.1")
    short = Program(tmp_path, "short", "tweets", "serve", *flags, "--count", "400")
    long = Program(tmp_path, "long", "tweets", "serve", *flags, "--count", "1000")
    with short, long:
        short.start()
        first = read(f"{short.told['url']}/tweets/2")
        short.kill()
        long.start()
        rest = read(f"{long.told['url']}/tweets/2", first[-1].id)
        over = read(f"{long.told['url']}/tweets/2", rest[-1].id)
        ended = long.stop()

    generator = Generator(3, 2, panic_rate=0.1, malformed_rate=0.001)
    assert [event.data for event in first + rest] == generator.batch(1, 1000)
    assert (first[-1].id, rest[0].id, rest[-1].id) == ("400", "401", "1000")
    assert over == []
    assert ended == 0
    assert long.status["events"] == 600


def test_the_routes_are_there(tmp_path: Path) -> None:
    with Program(tmp_path, "tweets", "tweets", "serve", "--port", "0") as server:
        server.start()
        url = server.told["url"]
        with urllib.request.urlopen(url, timeout=30) as sent:
            routes = json.load(sent)["routes"]
        with urllib.request.urlopen(f"{url}/emotion_values", timeout=30) as sent:
            lines = sent.read().decode().split("\r\n")

    assert routes == ["/tweets/1", "/tweets/2", "/emotion_values", "/"]
    assert lines[0] == "abandon\t-2" and len(lines) == 2477
