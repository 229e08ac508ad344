"""JSON that was made to break its reader: an error at every door, and nothing else.

Whoever sends it is told so and goes on, on the same connection; the server's log has
neither a traceback nor a connection that failed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.client import connect
from penstock.errors import ServerRefused
from tests.conformance.peer import Peer
from tests.http_client import Http
from tests.serving import Serving, serving
from tests.wire_client import Wire

pytestmark = pytest.mark.slow

DEEP = 50_000
BOMBS = {
    "deep array": b"[" * DEEP + b"]" * DEEP,
    "deep object": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "open end": b"[" * DEEP,
    "long integer": b"1" * 100_000,
    "large number": b"1e999999999",
    "half a pair": b'"\\ud800"',
    "not UTF-8": b'"\xff\xfe"',
    "a NUL": b'"\x00"',
    "nothing": b"",
    "not a number": b"NaN",
}
GOOD = b'{"a":1}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("json")) as server:
        with connect(server.data) as client:
            client.ask("schemas.register", topic="t", schema={"type": "object"})
        yield server
        log = server.log.read_text()
        assert "Traceback" not in log
        assert "connection_failed" not in log


def stored(server: Serving) -> int:
    with connect(server.data) as client:
        row = client.ask("topics.show", name="t")
    assert isinstance(row, dict)
    return int(row["events"])


@pytest.mark.parametrize("name", BOMBS)
def test_over_the_line_protocol(server: Serving, name: str) -> None:
    before = stored(server)
    with Wire(server.ports["line"]) as wire:
        wire.line()
        wire.ask("confirm on")
        wire.sock.sendall(b'pub t {"id":"a","msg":' + BOMBS[name] + b"}\n")
        refused = wire.line()
        wire.sock.sendall(b"pub t " + BOMBS[name] + b"\n")
        bare = wire.line()
        fine = wire.ask('pub t {"id":"b","msg":{}}')

    assert refused.startswith("error: ")
    assert bare.startswith("error: ")
    assert fine.startswith("published t ")
    assert stored(server) == before + 1


@pytest.mark.parametrize("name", BOMBS)
def test_over_the_json_protocol(server: Serving, name: str) -> None:
    before = stored(server)
    with Wire(server.ports["publisher"]) as wire:
        start = b'{"type":"PUB","topic":"t","msg":'
        wire.sock.sendall(start + BOMBS[name] + b"}\n" + start + b"{}}\n")
        refused, fine = wire.lines(2)

    assert refused == "INVALID JSON" or refused.startswith("ERROR ")
    assert '"PUBREC"' in fine
    assert stored(server) == before


@pytest.mark.parametrize("name", BOMBS)
def test_over_the_native_protocol(server: Serving, name: str) -> None:
    with connect(server.data) as client:
        with pytest.raises(ServerRefused) as published:
            client.publish("t", [BOMBS[name]])
        with pytest.raises(ServerRefused) as registered:
            client.ask("schemas.register", topic="new", schema=BOMBS[name])
        misfits = client.ask("schemas.check", topic="t", payloads=[BOMBS[name]])
        client.publish("t", [GOOD])

    assert published.value.error == "InvalidPayload"
    assert registered.value.error in ("InvalidSchema", "TooLarge")
    assert isinstance(misfits, dict)
    assert len(misfits["misfits"]) == 1


@pytest.mark.parametrize("name", BOMBS)
def test_over_http(server: Serving, name: str) -> None:
    http, bomb = Http(server), BOMBS[name]
    json = {"Content-Type": "application/json"}
    lines = {"Content-Type": "application/x-ndjson"}
    events = "/v1/topics/t/events"
    before = stored(server)

    answers = [
        http.ask("POST", events, bomb, json),
        http.ask("POST", events, b'{"payload":' + bomb + b"}", json),
        http.ask("POST", events, b'[{"payload":' + bomb + b"}]", json),
        http.ask("PUT", "/v1/topics/new/schema", b'{"schema":' + bomb + b"}", json),
        http.ask(
            "POST", "/v1/topics/t/schema/check", b'{"schema":' + bomb + b"}", json
        ),
        http.ask("POST", "/v1/topics", b'{"name":' + bomb + b"}", json),
    ]
    told = http.ask("POST", events, b'{"payload":' + bomb + b"}\n", lines)

    assert {one.status for one in answers} <= {400, 422}
    assert told.status in (200, 400, 422)
    assert b"InternalError" not in told.body
    assert stored(server) == before


@pytest.mark.parametrize("name", BOMBS)
def test_over_mqtt(server: Serving, name: str) -> None:
    before = stored(server)
    peer = Peer(server.ports["mqtt"])
    try:
        peer.connect()
        refused = peer.publish("t", BOMBS[name], qos=1)
        fine = peer.publish("t", GOOD, qos=1)
    finally:
        peer.drop()

    assert refused is not None and fine is not None
    assert refused.reason >= 0x80
    assert fine.reason < 0x80
    assert stored(server) == before + 1


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_stored_elsewhere_is_searched_and_shown(
    server: Serving, name: str
) -> None:
    http, topic = Http(server), f"free-{name}".replace(" ", "-")
    with connect(server.data) as client:
        client.publish(topic, [BOMBS[name], b'{"a":7}'])

    shown = http.ask("GET", f"/v1/topics/{topic}/events")
    found = http.ask("GET", f"/v1/topics/{topic}/events?search=a%3D7")
    with Wire(server.ports["line"]) as wire:
        wire.line()
        wire.ask("confirm on")
        wire.say(f"sub {topic} 0")
        seen = wire.line()

    assert len(shown.json()["events"]) == 2
    assert [one["offset"] for one in found.json()["events"]] == [1]
    assert seen


def test_a_document_of_many_lists_is_searched_in_bounded_time(server: Serving) -> None:
    leaves = b",".join([b"1"] * 400_000)
    with connect(server.data) as client:
        client.publish("lists", [b"[" * 400 + leaves + b"]" * 400, b'{"x":2}'])

    terms = "+".join(f"x.y{n}!%3D{n}" for n in range(15))
    found = Http(server).ask("GET", f"/v1/topics/lists/events?search=x%3D2+{terms}")

    assert [one["offset"] for one in found.json()["events"]] == [1]
