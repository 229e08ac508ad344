from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.tweets.generator import Generator
from penstock.tweets.options import TweetOptions
from penstock.tweets.run import serve
from penstock.wire.sse import SseParser

PATIENCE_S = 30.0


class Watch:
    """Who watches a server in a thread of this process."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.is_ready = threading.Event()
        self.told: dict[str, Any] = {}
        self.status: dict[str, Any] = {}

    def ready(self, **told: object) -> None:
        self.told = told
        self.is_ready.set()

    def tell(self, *, events: int, **told: object) -> None:
        self.status = {"events": events, **told}


@contextmanager
def tweets_server(**options: Any) -> Iterator[Watch]:
    watch = Watch()
    announced: list[str] = []
    thread = threading.Thread(
        target=serve, args=(TweetOptions(port=0, **options), watch, announced.append)
    )
    thread.start()
    try:
        assert watch.is_ready.wait(PATIENCE_S)
        yield watch
    finally:
        watch.stopping.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "it does not end"
    assert announced == [watch.told["url"]]


@pytest.mark.slow
def test_both_streams_are_served_until_their_end() -> None:
    with tweets_server(rate=0, count=300, panic_rate=0.5, malformed_rate=0) as watch:
        for stream in (1, 2):
            with urllib.request.urlopen(f"{watch.told['url']}/tweets/{stream}") as sent:
                events = SseParser(1 << 20).feed(sent.read())
            generator = Generator(1, stream, panic_rate=0.5)
            assert [event.data for event in events] == generator.batch(1, 300)
    assert watch.status == {
        "events": 600,
        "lag": None,
        "errors": 0,
        "clients": 0,
        "sent": {"1": 300, "2": 300},
    }


@pytest.mark.slow
def test_streams_may_end_each_at_its_own_message() -> None:
    with tweets_server(rate=0, count=9, last={"2": 5}) as watch:
        for stream in (1, 2):
            with urllib.request.urlopen(f"{watch.told['url']}/tweets/{stream}") as sent:
                sent.read()
        with urllib.request.urlopen(watch.told["url"]) as sent:
            told = json.load(sent)["sent"]

    assert told == watch.status["sent"] == {"1": 9, "2": 5}


@pytest.mark.slow
def test_it_ends_although_somebody_reads_and_somebody_does_not() -> None:
    with tweets_server(rate=0) as watch:
        port = watch.told["ports"]["http"]
        with socket.create_connection(("127.0.0.1", port)) as lazy:
            lazy.sendall(b"GET /tweets/1 HTTP/1.1\r\nHost: x\r\n\r\n")
            with urllib.request.urlopen(f"{watch.told['url']}/tweets/2") as sent:
                assert sent.readline() == b":\n"
                watch.stopping.set()
                while sent.read(1 << 16):
                    pass


@pytest.mark.slow
def test_nothing_is_made_for_a_reader_that_takes_nothing() -> None:
    with tweets_server(rate=0) as watch:
        port = watch.told["ports"]["http"]
        with socket.create_connection(("127.0.0.1", port)) as lazy:
            lazy.sendall(b"GET /tweets/1 HTTP/1.1\r\nHost: x\r\n\r\n")
            deadline_s = time.monotonic() + PATIENCE_S
            # Full when the count has stood still for many looks at it.
            made, still = 0, 0
            while still < 20:
                assert time.monotonic() < deadline_s, f"{made} and no end"
                time.sleep(0.05)
                events = watch.status.get("events", 0)
                still = still + 1 if events == made > 0 else 0
                made = events


@pytest.mark.slow
def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError) as caught:
            serve(TweetOptions(port=port), Watch(), print)

    assert caught.value.filename == f"127.0.0.1:{port}"


def test_a_host_that_is_none_is_named() -> None:
    with pytest.raises(OSError) as caught:
        serve(TweetOptions(host="no.such.host.invalid"), Watch(), print)

    assert caught.value.filename == "no.such.host.invalid:4000"


@pytest.mark.slow
def test_the_root_is_json() -> None:
    with tweets_server() as watch, urllib.request.urlopen(watch.told["url"]) as sent:
        assert "/tweets/2" in json.load(sent)["routes"]
