"""Data directories with something of everything, kept for the versions to come.

    python -m tests.kept_directory

writes ``<version>.tar.gz`` and ``<version>-killed.tar.gz`` to tests/data/directories:
of a server that was stopped, and of one that was killed. They are made once, when a
version is released, and never again: later ones have to open them as they are. They
come from a real server, so they hold what real clients leave behind.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from penstock import __version__
from penstock.client import Client, connect
from tests.serving import PENSTOCK, Serving, serving
from tests.wire_client import Wire

DIRECTORIES = Path(__file__).parent / "data" / "directories"
# Small files, so that there are several of each kind.
CONFIG = """
[log]
journal_file_bytes = 100_000
checkpoint_bytes = 50_000
write_out_bytes = 5_000
[topics]
segment_bytes = 5_000
"""
ORDERS = 300
SCHEMA = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["item"],
}
# Of the process that wrote it, or secrets of it: no part of what is kept.
LEFT_OUT = ("lock", "penstock.sock", "http-")


def payload(number: int) -> bytes:
    return json.dumps({"item": f"tea {number}", "n": number}).encode()


def fill(server: Serving) -> None:
    """Leave something of everything behind."""
    with connect(server.data) as client:
        client.ask("schemas.register", topic="orders", schema=SCHEMA)
        for start in range(0, ORDERS, 50):
            _orders(client, range(start, start + 50))
        client.publish("once", [b"a", b"b"], dedup_ids=["one", "two"])
        client.ask("topics.create", name="bøxes/2", durability="os")
        client.publish("bøxes/2", [b"\xff\x00", b""])
        _consume(client)
    with Wire(server.ports["publisher"]) as press:
        pub = '{"type":"PUB","topic":"news","msg":"pending"}'
        assert "PUBREC" in press.ask(pub)
    with Wire(server.ports["consumer"]) as reader:
        reader.line()
        reader.ask("log anna")
        reader.ask('{"type":"SUB","topic":"news"}')
    with Wire(server.ports["line"]) as line:
        line.line()
        line.ask("as lena")
        line.ask("sub orders")


def _orders(client: Client, numbers: range) -> None:
    client.publish(
        "orders",
        [payload(n) for n in numbers],
        ids=[f"o{n}" for n in numbers],
        keys=[None if n % 3 == 0 else b"k%d" % (n % 5) for n in numbers],
        priorities=[n % 4 for n in numbers],
        headers=[{"n": str(n)} if n % 2 else {} for n in numbers],
        parents=[f"o{n - 1}" if n % 10 == 5 else None for n in numbers],
    )


def _consume(client: Client) -> None:
    """Two are settled, one was refused twice and is a dead letter, one is owed."""
    with client.subscribe(
        "orders", "billing", start="earliest", window=1, tries=2
    ) as subscription:
        for number in range(4):
            delivery = subscription.next(30)
            assert delivery is not None
            if number < 2:
                subscription.ack(delivery)
            else:
                subscription.nack(delivery, "no such customer")


def retain(server: Serving) -> None:
    """An MQTT session that is kept, and a retained message."""
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    client = mqtt.Client(
        CallbackAPIVersion.VERSION2, client_id="sensor-7", clean_session=False
    )
    client.connect("127.0.0.1", server.ports["mqtt"])
    client.loop_start()
    client.subscribe("home/+/temp", qos=1)
    client.publish("home/kitchen/temp", b"21.5", qos=1, retain=True).wait_for_publish(
        30
    )
    client.disconnect()
    client.loop_stop()


def packed(directory: Path) -> bytes:
    """The directory as an archive that is the same for the same content."""
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w:gz", compresslevel=9) as archive:
        for path in sorted(directory.rglob("*")):
            if path.is_file() and not path.name.startswith(LEFT_OUT):
                info = tarfile.TarInfo(str(path.relative_to(directory)))
                info.size, info.mode = path.stat().st_size, 0o600
                archive.addfile(info, io.BytesIO(path.read_bytes()))
    return kept.getvalue()


def made(*, killed: bool) -> bytes:
    """The directory of a server that was stopped, or killed."""
    with tempfile.TemporaryDirectory() as name:
        config = Path(name, "penstock.toml")
        config.write_text(CONFIG)
        with serving(Path(name), "--config", str(config)) as server:
            fill(server)
            retain(server)
            if killed:
                server.kill()
            else:
                assert server.stop() == 0
        subprocess.run([*PENSTOCK, "log", "verify", str(server.data)], check=True)
        return packed(server.data)


def main() -> None:
    for suffix, killed in (("", False), ("-killed", True)):
        target = DIRECTORIES / f"{__version__}{suffix}.tar.gz"
        if target.exists():
            sys.exit(f"{target} is there: what was released does not change")
        target.write_bytes(made(killed=killed))


if __name__ == "__main__":
    main()
