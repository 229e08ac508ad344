"""Kafka 4 in KRaft mode, one node: it comes through Maven, by name.

A publish asks for ``acks=all``. ``flushed`` topics have ``flush.messages=1``: what they
confirm is on disk. The others leave that to the system, as is usual for Kafka.

A connection works on one request at a time, so events travel in batches, as with its
own clients: a quarter of what is in flight is one request. One node takes seconds to
start, and serves a whole run; topics carry a prefix per case.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from bench.peers import kafka_bytes as wire
from bench.peers.adapter import SETUP_S, Adapter, Consumer, Dialogue, Place, Refused
from bench.peers.processes import Missing, Server, accepts, free_port, spawn

VERSION = "4.3.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
HOME = CACHE / "penstock-bench" / f"kafka-{VERSION}"
HEAP = "-Xmx1g"
FORMAT_S = 60
POM = f"""
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""
CONFIG = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{kafka},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{kafka}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/log
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
min.insync.replicas=1
"""
# A topic has no leader for a moment after it was made.
NOT_YET = {3, 5, 6}
# So many requests at most are under way in a full window.
PARTS = 4


def start(folder: Path, variant: str) -> Server:
    java, jars = program()
    ports = {"kafka": free_port(), "controller": free_port()}
    config = folder / "kafka.properties"
    config.write_text(CONFIG.format(folder=folder, **ports))
    run: list[str | Path] = [java, HEAP, "-cp", f"{jars}/*"]
    name = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    steps: list[str | Path] = [
        "kafka.tools.StorageTool",
        "format",
        "-t",
        name,
        "-c",
        config,
    ]
    try:
        made = subprocess.run(
            [*run, *steps], cwd=folder, capture_output=True, text=True, timeout=FORMAT_S
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"Kafka did not make its folder in {FORMAT_S} s") from None
    if made.returncode:
        raise Missing(f"Kafka did not make its folder: {made.stderr.strip()[-300:]}")
    process = spawn(
        [*run, "kafka.Kafka", config], folder, lambda: accepts(ports["kafka"])
    )
    place = Place(ports=ports, pids=[process.pid], variant=variant)
    return Server(place=place, processes=[process])


def program() -> tuple[Path, Path]:
    """Java, and where the jars are."""
    java = shutil.which("java")
    if java is None:
        raise Missing("java is not installed, and Kafka needs it")
    if not (HOME / "lib" / f"kafka_2.13-{VERSION}.jar").exists():
        raise Missing("Kafka is not installed: python -m bench.peers --install")
    return Path(java), HOME / "lib"


def steps() -> list[list[str]]:
    """What installs it, through whatever Maven is told to ask; nothing without both."""
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        print("no mvn or no java here: Kafka cannot be installed")
        return []
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "pom.xml").write_text(POM.lstrip())
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    where = [f"-DoutputDirectory={HOME / 'lib'}", "-f", str(HOME / "pom.xml")]
    return [[maven, "-q", "-B", "--strict-checksums", *where, *copy]]


class Kafka(Adapter):
    """Produce, in batches for all topics that got events."""

    def prepare(self, topics: int) -> None:
        in_flight = int(self.place.facts.get("in_flight", "1"))
        self.batch = max(in_flight // PARTS, 1)
        self._names = [
            f"{self.place.prefix}t{number}".encode() for number in range(topics)
        ]
        self._waiting: dict[bytes, list[bytes]] = {}
        self._count = 0
        self._rest = b""
        self._admin = Dialogue(self.place.ports["kafka"])
        flushed = self.place.variant == "flushed"
        settings = {b"flush.messages": b"1"} if flushed else {}
        self._ask(wire.create_topics(self._names, settings))
        self._wait_for_leaders()

    def publisher(self) -> socket.socket:
        return Dialogue(self.place.ports["kafka"]).sock

    def request(self, number: int, topic: int, payload: bytes) -> bytes:
        self._waiting.setdefault(self._names[topic], []).append(payload)
        self._count += 1
        if self._count % self.batch:
            return b""
        events, self._waiting = self._waiting, {}
        return wire.produce(events)

    def confirmed(self, data: bytes) -> int:
        data = self._rest + data
        at = confirmed = 0
        while len(data) - at >= wire.SIZE.size:
            end = at + wire.SIZE.size + wire.SIZE.unpack_from(data, at)[0]
            if end > len(data):
                break
            if any(errors := wire.produced(data[at + wire.SIZE.size : end])):
                raise Refused(f"errors {sorted(set(errors))}")
            confirmed += self.batch
            at = end
        self._rest = data[at:]
        return confirmed

    def consumer(self, window: int, topic: int = 0) -> Consumer:
        raise NotImplementedError

    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        raise NotImplementedError

    def close(self) -> None:
        self._ask(wire.delete_topics(self._names))

    def _wait_for_leaders(self) -> None:
        first = wire.produce({name: [b"first"] for name in self._names})
        deadline = time.monotonic() + SETUP_S
        while any(errors := set(wire.produced(self._ask(first)))):
            if errors - NOT_YET - {0} or time.monotonic() > deadline:
                raise Refused(f"errors {sorted(errors)}")
            time.sleep(0.1)

    def _ask(self, question: bytes) -> bytes:
        """The body of the answer, from its correlation on."""
        sock = self._admin.sock
        sock.sendall(question)
        answer = b""
        while (
            len(answer) < wire.SIZE.size
            or len(answer) - wire.SIZE.size < wire.SIZE.unpack_from(answer)[0]
        ):
            if not (more := sock.recv(1 << 16)):
                raise Refused("Kafka closed the connection")
            answer += more
        return answer[wire.SIZE.size :]
