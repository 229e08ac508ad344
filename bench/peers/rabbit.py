"""RabbitMQ: durable queues, persistent messages, publisher confirms.

``classic`` queues write and sync in the background and confirm when that is done;
``quorum`` queues are replicated logs, here with one replica. The node has a name, a
folder, a cookie, a port mapper and ports of its own. It takes seconds to start, so one
node serves a whole run, both kinds of queue, and topics carry a prefix per case.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from bench.peers import amqp
from bench.peers.adapter import (
    Adapter,
    Consumer,
    Dialogue,
    Ends,
    Place,
    Refused,
    fence,
)
from bench.peers.processes import Missing, Server, accepts, free_port, spawn

# Debian's own start script wants to become the rabbitmq user; this one does not.
SCRIPTS = ("/usr/lib/rabbitmq/bin", "/usr/local/lib/rabbitmq/bin")
MAX_PREFETCH = 65_535


def start(folder: Path, variant: str) -> Server:
    server, mapper = program()
    ports = {"amqp": free_port(), "mapper": free_port(), "node": free_port()}
    (folder / "plugins").write_text("[].\n")
    (folder / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{ports['amqp']}\n"
        "disk_free_limit.absolute = 50MB\n"
    )
    epmd = spawn(
        [mapper, "-port", str(ports["mapper"]), "-address", "127.0.0.1"],
        folder,
        lambda: accepts(ports["mapper"]),
    )
    try:
        node = spawn(
            [server], folder, lambda: _speaks(ports["amqp"]), _settings(folder, ports)
        )
    except BaseException:
        Server(place=Place(ports={}, pids=[]), processes=[epmd]).stop()
        raise
    place = Place(ports=ports, pids=[node.pid], variant=variant)
    return Server(place=place, processes=[node, epmd])


def program() -> tuple[Path, Path]:
    path = os.pathsep.join((*SCRIPTS, os.environ.get("PATH", "")))
    server = shutil.which("rabbitmq-server", path=path)
    mapper = shutil.which("epmd")
    if server is None or mapper is None:
        raise Missing("rabbitmq-server is not installed (Debian: rabbitmq-server)")
    return Path(server), Path(mapper)


def _settings(folder: Path, ports: dict[str, int]) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(ports["mapper"]),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": "bench@localhost",
        "RABBITMQ_DIST_PORT": str(ports["node"]),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        # No busy waiting: an idle node must not take time from the others.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none "
        "+sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}",
    }


def _speaks(port: int) -> bool:
    """Listening is not enough: the node answers a little later."""
    try:
        dialogue = Dialogue(port)
        dialogue.ask(amqp.handshake(), amqp.CHANNEL_OPENED)
    except (OSError, Refused):
        return False
    dialogue.sock.close()
    return True


class Rabbit(Adapter):
    """Queues over AMQP 0-9-1."""

    def prepare(self, topics: int) -> None:
        self._prefix = self.place.prefix.encode()
        self._exchange = b""
        self._confirms = Confirms()
        self._admin = self._connect()
        self._queues: list[bytes] = []
        self._declare([self._prefix + b"q%d" % number for number in range(topics)])
        self._topics = list(self._queues)

    def publisher(self) -> socket.socket:
        dialogue = self._connect()
        dialogue.ask(amqp.confirm(), amqp.CONFIRMING)
        return dialogue.sock

    def request(self, number: int, topic: int, payload: bytes) -> bytes:
        if self.place.facts.get("workload") == "fan-out":
            return amqp.publish(self._prefix + b"fan", b"", payload)
        return amqp.publish(b"", self._topics[topic], payload)

    def confirmed(self, data: bytes) -> int:
        return self._confirms.feed(data)

    def consumer(self, window: int, topic: int = 0) -> Consumer:
        return self._consume(self._topics[topic], min(2 * window, MAX_PREFETCH))

    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        exchange = self._prefix + b"fan"
        if number == 0:
            self._admin.ask(amqp.declare_fanout(exchange), amqp.EXCHANGE_DECLARED)
        queue = self._prefix + b"r%d" % number
        self._declare([queue])
        self._admin.ask(amqp.bind(queue, exchange), amqp.QUEUE_BOUND)
        prefetch = min(2 * window, MAX_PREFETCH)
        return self._consume(queue, prefetch, acknowledged=acknowledged)

    def settle(self, consumers: Sequence[Consumer]) -> None:
        # The answer to a synchronous method comes after all before it is done.
        fence(consumers, amqp.qos(1), amqp.QOS_SET)

    def reset(self) -> None:
        topic_filters = b"".join(map(amqp.purge, self._topics))
        self._admin.ask(topic_filters, amqp.QUEUE_PURGED, len(self._topics))

    def close(self) -> None:
        topic_filters = b"".join(map(amqp.delete, self._queues))
        self._admin.ask(topic_filters, amqp.QUEUE_DELETED, len(self._queues))

    def _connect(self) -> Dialogue:
        dialogue = Dialogue(self.place.ports["amqp"])
        dialogue.ask(amqp.handshake(), amqp.CHANNEL_OPENED)
        return dialogue

    def _declare(self, names: list[bytes]) -> None:
        kind = self.place.variant.encode()
        topic_filters = b"".join(amqp.declare_queue(name, kind) for name in names)
        self._admin.ask(topic_filters, amqp.QUEUE_DECLARED, len(names))
        self._queues += names

    def _consume(
        self, queue: bytes, prefetch: int, *, acknowledged: bool = True
    ) -> Consumer:
        dialogue = self._connect()
        dialogue.ask(amqp.qos(prefetch), amqp.QOS_SET)
        dialogue.ask(amqp.consume(queue, acknowledged=acknowledged), amqp.CONSUMING)
        return Delivered(dialogue.sock, acknowledged=acknowledged)


class Confirms:
    """Counts confirmed publishes; one confirmation may cover many."""

    def __init__(self) -> None:
        self._rest = b""
        self._up_to = 0
        self._beyond: set[int] = set()

    def feed(self, data: bytes) -> int:
        data = self._rest + data
        whole = len(data) - len(data) % amqp.ACK_FRAME.size
        self._rest = data[whole:]
        before = self._up_to + len(self._beyond)
        for head, tag, multiple, _ in amqp.ACK_FRAME.iter_unpack(data[:whole]):
            if head != amqp.ACK:
                raise Refused(f"not a confirmation: {data[:200]!r}")
            self._confirm(tag, multiple=bool(multiple))
        return self._up_to + len(self._beyond) - before

    def _confirm(self, tag: int, *, multiple: bool) -> None:
        if multiple:
            self._up_to = max(tag, self._up_to)
            self._beyond = {one for one in self._beyond if one > self._up_to}
        elif tag == self._up_to + 1:
            self._up_to = tag
        else:
            self._beyond.add(tag)
        while self._up_to + 1 in self._beyond:
            self._up_to += 1
            self._beyond.remove(self._up_to)


class Delivered(Consumer):
    """Delivery tags count from 1, so the number of events is the tag to answer."""

    def __init__(self, sock: socket.socket, *, acknowledged: bool) -> None:
        super().__init__(sock)
        self._tag = 0
        self._acknowledged = acknowledged
        self._ends = Ends()

    def feed(self, data: bytes) -> tuple[int, Sequence[bytes]]:
        got = self._ends.count(data)
        self._tag += got
        if not got or not self._acknowledged:
            return got, ()
        return got, (amqp.ack_up_to(self._tag),)
