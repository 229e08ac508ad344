"""Data directories of every version that was released are opened, and lost nothing."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from penstock import __version__
from penstock.client import connect
from tests.kept_directory import DIRECTORIES, ORDERS, payload
from tests.serving import Serving, serving
from tests.wire_client import Wire

pytestmark = pytest.mark.slow

KEPT = sorted(DIRECTORIES.glob("*.tar.gz"))
# Both are forgotten after a while, and what is kept is older than that.
CONFIG = "[broker]\ndedup_age_s = 1e10\npending_ttl_s = 1e10\n"


def test_this_version_is_kept() -> None:
    names = {path.name for path in KEPT}

    assert {f"{__version__}.tar.gz", f"{__version__}-killed.tar.gz"} <= names


@pytest.fixture(params=KEPT, ids=lambda path: path.name, scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(request.param) as archive:
        archive.extractall(folder / "data", filter="data")
    config = folder / "penstock.toml"
    config.write_text(CONFIG)
    with serving(folder, "--config", str(config)) as server:
        yield server


def ask(server: Serving, verb: str, **arguments: object) -> Any:
    with connect(server.data) as client:
        return client.ask(verb, **arguments)


def test_all_of_it_is_intact(server: Serving) -> None:
    verified = server.run("log", "verify", str(server.data))

    assert verified.returncode == 0, verified.stdout


def test_events_are_as_they_were_published(server: Serving) -> None:
    with connect(server.data) as client:
        events = [
            event
            for part in client.fetch_all("orders", 0, ORDERS)
            for event in part.events()
        ]
        boxes = client.fetch("bøxes/2", 0, 10).events()

        assert [(one.offset, one.id, one.payload) for one in events] == [
            (n, f"o{n}", payload(n)) for n in range(ORDERS)
        ]
        assert [one.payload for one in boxes] == [b"\xff\x00", b""]
    five = events[5]
    assert (five.key, five.priority, five.parent) == (b"k0", 1, "o4")
    assert (events[3].key, dict(events[7].headers)) == (None, {"n": "7"})
    assert ask(server, "topics.show", name="bøxes/2")["durability"] == "os"


def test_subscriptions_stand_where_they_stood(server: Serving) -> None:
    one = ask(server, "subscriptions.show", subscriber="billing", topic="orders")

    assert (one["position"], one["lag"]) == (3, ORDERS - 3)
    with (
        connect(server.data) as client,
        client.subscribe("orders", "billing") as subscription,
    ):
        delivery = subscription.next(30)
        assert delivery is not None
        assert delivery.offset == 3


def test_letters_schemas_and_chains_are_there(server: Serving) -> None:
    (letter,) = ask(server, "dead-letters")["letters"]
    schema = ask(server, "schemas.show", topic="orders")
    chain = ask(server, "chains.show", id="o5")

    assert (letter["subscriber"], letter["topic"]) == ("billing", "orders")
    assert "no such customer" in str(letter)
    assert '"item"' in schema["schema"]
    assert "o4" in str(chain)


def test_a_dedup_id_is_known(server: Serving) -> None:
    with connect(server.data) as client:
        again = client.publish("once", [b"other"], dedup_ids=["two"])

    assert list(again) == [1]


def test_what_was_pending_is_published_and_pushed(server: Serving) -> None:
    with (
        Wire(server.ports["consumer"]) as reader,
        Wire(server.ports["publisher"]) as press,
    ):
        reader.line()
        assert reader.ask("log anna") == "Succesfully logged in!"
        assert "PUBCOMP" in press.ask('{"type":"PUBREL","msgId":1}')
        pushed = reader.line()

    assert '"msg":"pending"' in pushed


def test_sessions_and_retained_messages_of_mqtt_are_there(server: Serving) -> None:
    client = mqtt.Client(
        CallbackAPIVersion.VERSION2, client_id="sensor-7", clean_session=False
    )
    present: list[bool] = []
    got: list[bytes] = []
    client.on_connect = lambda _c, _u, flags, *_: present.append(flags.session_present)
    client.on_message = lambda _c, _u, message: got.append(bytes(message.payload))

    client.connect("127.0.0.1", server.ports["mqtt"])
    while not present:
        client.loop(1)
    client.subscribe("home/kitchen/temp")
    while not got:
        client.loop(1)
    client.disconnect()

    assert present == [True]
    assert got[-1] == b"21.5"
