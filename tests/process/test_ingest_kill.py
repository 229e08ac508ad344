"""Tweets are taken in while everything is killed in turn: each is there once.

What has to be there is computed from the seed, without any of the programs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.client import connect
from penstock.delivery.letters import DeadLetter
from penstock.errors import ServerRefused
from penstock.model.event import Event
from penstock.tweets.generator import Generator, MessageKind
from tests.process.programs import Program
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

SEED = 5
# Messages of each of two streams, and how many of them come in a second.
COUNT = 2500
RATE = 1500
PANICS = 0.02
MALFORMED = 0.02
PATIENCE_S = 60.0
READ = {MessageKind.TWEET, MessageKind.OTHER_OBJECT}


def generators() -> dict[str, Generator]:
    return {
        name: Generator(SEED, int(name), panic_rate=PANICS, malformed_rate=MALFORMED)
        for name in ("1", "2")
    }


def stored(server: Serving, topic: str) -> Iterator[Event]:
    with connect(server.data) as client:
        try:
            for part in client.fetch_all(topic, 0, 1 << 40):
                for batch in part.batches:
                    yield from batch.events()
        except ServerRefused as error:
            assert error.error == "UnknownTopic", error


def wait_for(server: Serving, ingest: Program, share: float) -> None:
    """Until so much of everything is stored."""
    deadline_s = time.monotonic() + PATIENCE_S
    with connect(server.data) as client:
        while True:
            found: Any = client.ask("topics")
            ends = {one["name"]: one["end_offset"] for one in found["topics"]}
            if ends.get("firehose", 0) >= share * 2 * COUNT * (1 - PANICS - MALFORMED):
                return
            assert time.monotonic() < deadline_s, ingest.log.read_text()
            time.sleep(0.005)


def check_firehose(server: Serving, sources: dict[str, Generator]) -> None:
    by_source: dict[str, list[Event]] = {}
    for event in stored(server, "firehose"):
        by_source.setdefault(event.headers["source"][-1], []).append(event)
    for name, generator in sources.items():
        expected = [n for n in range(1, COUNT + 1) if generator.kind(n) in READ]
        found = by_source[name]
        assert [int(event.headers["sse-id"]) for event in found] == expected
        for n, event in zip(expected, found, strict=True):
            assert event.payload == generator.data(n)
            is_tweet = generator.kind(n) is MessageKind.TWEET
            key = generator.tweet(n).id_str.encode() if is_tweet else None
            assert event.key == key


def check_letters(server: Serving, sources: dict[str, Generator]) -> None:
    decode = msgspec.json.Decoder(DeadLetter).decode
    letters = [decode(event.payload) for event in stored(server, "$dead-letters")]
    assert {letter.gateway for letter in letters} == {"ingest sse"}
    assert Counter(letter.raw for letter in letters) == Counter(
        generator.data(n)
        for generator in sources.values()
        for n in range(1, COUNT + 1)
        if generator.kind(n) not in READ
    )
    panics = [letter for letter in letters if letter.reason == "panic"]
    assert {letter.raw for letter in panics} == {b'{"message": panic}'}
    samples = [
        msgspec.json.decode(event.payload) for event in stored(server, "samples")
    ]
    assert sum(sample["count"] for sample in samples) == len(panics)


def test_every_message_is_taken_in_once_whatever_is_killed(tmp_path: Path) -> None:
    sources = generators()
    tweets = Program(
        tmp_path,
        *("tweets", "tweets", "serve", "--port", "0", "--steady"),
        *("--seed", str(SEED), "--rate", str(RATE), "--count", str(COUNT)),
        *("--panic-rate", str(PANICS), "--malformed-rate", str(MALFORMED)),
    )
    flags = ("--no-line", "--no-json", "--no-maze")
    with serving(tmp_path, *flags) as server, tweets:
        tweets.start()
        port = str(tweets.told["ports"]["http"])
        tweets.command[tweets.command.index("--port") + 1] = port
        urls = [f"{tweets.told['url']}/tweets/{name}" for name in sources]
        ingest = Program(
            tmp_path,
            *("ingest", "ingest", "sse", *urls, "--topic", "firehose"),
            *("--data", str(server.data), "--samples", "samples", "--until-end"),
        )
        with ingest:
            ingest.start()
            plan: list[tuple[float, list[Program | Serving]]] = [
                (0.05, [ingest]),
                (0.2, [server]),
                (0.35, [ingest]),
                (0.5, [tweets]),
                (0.65, [ingest, server]),
                (0.8, [ingest, tweets]),
            ]
            for share, killed in plan:
                wait_for(server, ingest, share)
                for one in killed:
                    one.kill()
                for one in reversed(killed):
                    one.start()

            assert ingest.wait() == 0, ingest.log.read_text()
            status = ingest.status

        check_firehose(server, sources)
        check_letters(server, sources)
        kinds = Counter(
            generator.kind(n)
            for generator in sources.values()
            for n in range(1, COUNT + 1)
        )
        assert status["events"] == 2 * COUNT
        assert status["panics"] == kinds[MessageKind.PANIC] > 20
        assert (
            status["malformed"]
            == kinds[MessageKind.TRUNCATED] + kinds[MessageKind.NO_OBJECT]
            > 20
        )
        assert status["sources"] == {url: str(COUNT) for url in urls}
        assert tweets.stop() == 0
        assert server.stop() == 0
