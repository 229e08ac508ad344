"""Schemas of a real server: over the native protocol, lines and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.client import connect
from penstock.errors import ServerRefused
from tests.command import command
from tests.serving import Serving, serving
from tests.wire_client import Wire

ORDER = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"price": {"type": "number"}},
                "required": ["price"],
            },
        }
    },
    "required": ["items"],
}
GOOD = b'{"items":[{"price":1.5}]}'
BAD = b'{"items":[{"price":1},{"price":2},{"price":"free"}]}'
REASON = '$.items[2].price: "free" is not of type "number"'


def test_a_schema_holds_for_every_protocol_and_survives_a_kill(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        registered = command(
            server,
            *("schemas", "register", "orders", "-"),
            input=json.dumps(ORDER).encode(),
        )
        assert registered.returncode == 0, registered.stderr
        noted = command(server, "topics", "describe", "orders", "-", input=b"# Orders")
        assert noted.returncode == 0, noted.stderr
        server.kill()
        server.start()

        refused_by_native(server)
        refused_by_line(server)
        made_up_data_is_published(server)

        described = command(server, "topics", "describe", "orders")
        assert described.stdout == b"# Orders\n"
        assert server.stop() == 0


def refused_by_native(server: Serving) -> None:
    with connect(server.data) as client:
        with pytest.raises(ServerRefused) as caught:
            client.publish("orders", [GOOD, BAD])
        offsets = client.publish("orders", [GOOD])

    assert caught.value.error == "InvalidPayload"
    assert REASON in str(caught.value)
    assert list(offsets) == [0]


def refused_by_line(server: Serving) -> None:
    lines = [
        f'pub orders {{"id":"{number}","msg":{payload.decode()}}}'
        for number, payload in enumerate([GOOD, BAD, GOOD])
    ]
    with Wire(server.ports["line"]) as wire:
        wire.line()
        wire.ask("confirm on")
        wire.say(*lines)
        said = wire.lines(3)

    assert said[0] == "published orders 0 1"
    assert said[1].startswith("error: ") and said[1].endswith(REASON)
    assert said[2] == "published orders 2 2"


def made_up_data_is_published(server: Serving) -> None:
    made = command(
        server,
        *("schemas", "mock", "orders", "--count", "5", "--seed", "1", "--publish"),
    )

    assert made.returncode == 0, made.stderr
    assert len(made.stdout.splitlines()) == 5
    shown = command(server, "topics", "show", "orders", "--json")
    topic = json.loads(shown.stdout)
    assert (topic["events"], topic["schema_version"]) == (8, 1)
