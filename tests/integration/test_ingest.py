"""`penstock ingest sse` against a real broker: limits, restarts, a clean end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.client import connect
from penstock.delivery.letters import DeadLetter
from penstock.model.event import Event
from tests.command import command
from tests.process.programs import Program
from tests.serving import Serving, serving
from tests.sse_server import NO_CONTENT, Hanging, answer, sse_server

pytestmark = pytest.mark.slow

FLAGS = ("--no-line", "--no-json", "--no-maze")
LIMIT = 2000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    config = tmp_path / "penstock.toml"
    config.write_text(f"[log]\nmax_event_bytes = {LIMIT}\n")
    with serving(tmp_path, *FLAGS, "--config", str(config)) as server:
        yield server


def stored(server: Serving, topic: str) -> list[Event]:
    with connect(server.data) as client:
        batches = client.fetch(topic, 0, 1 << 20).batches
        return [event for batch in batches for event in batch.events()]


def test_events_beyond_the_brokers_limit_are_dead_letters(
    tmp_path: Path, server: Serving
) -> None:
    # Their dead letters would be too large as well, and keep the beginning.
    large, larger = b'{"x": "%b"}' % (b"l" * LIMIT), b'{"x": "%b"}' % (b"r" * 9000)
    data = [b'{"n": 1}', large, b'{"n": 2}', larger, b'{"n": 3}']
    body = b"".join(b"id: %d\ndata: %b\n\n" % one for one in enumerate(data, 1))
    with sse_server(answer(body), NO_CONTENT) as source:
        ran = command(
            server, "ingest", "sse", source.url, "--topic", "t", "--until-end"
        )

    assert ran.returncode == 0, ran.stderr
    assert [event.payload for event in stored(server, "t")] == data[::2]
    decode = msgspec.json.Decoder(DeadLetter).decode
    letters = [decode(event.payload) for event in stored(server, "$dead-letters")]
    assert [letter.reason for letter in letters] == [
        f"payload size is {len(one)}: must be at most {LIMIT}"
        for one in (large, larger)
    ]
    for letter, one in zip(letters, (large, larger), strict=True):
        assert letter.raw and one.startswith(letter.raw)


def test_it_waits_for_a_broker_and_ends_cleanly(
    tmp_path: Path, server: Serving
) -> None:
    server.kill()
    hanging = Hanging(answer(b'id: 1\ndata: {"n": 1}\n\n'))
    with sse_server(hanging) as source:
        command = ("ingest", "sse", source.url, "--topic", "t", "--data")
        with Program(tmp_path, "ingest", *command, str(server.data)) as ingest:
            ingest.begin()
            ingest.wait_for_text("nothing listens there; waiting for it")
            server.start()
            ingest.wait_until_ready()
            ingest.wait_for(events=1, connected=1)
            assert ingest.stop() == 0
        log = ingest.log.read_text()

    assert [event.payload for event in stored(server, "t")] == [b'{"n": 1}']
    assert "Traceback" not in log
