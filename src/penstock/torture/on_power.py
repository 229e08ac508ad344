"""A broker in memory on a disk that loses power, with real gateways, step by step.

Kills cannot show that something was confirmed before it was synced: what a process has
written outlives it. Here everything that was not synced may be gone, in whole or in
part. All of it follows from the seed.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random

from penstock.broker.broker import Broker
from penstock.broker.options import BrokerOptions
from penstock.clock import ManualClock
from penstock.desk.desk import Desk
from penstock.errors import WriteFailed
from penstock.gateway.gateway import Gateway
from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.gateway.json_publisher import JsonPublisherGateway
from penstock.gateway.line import LineGateway
from penstock.gateway.mqtt import MqttGateway, MqttHub
from penstock.gateway.native import NativeGateway
from penstock.gateway.options import (
    JsonOptions,
    LineOptions,
    MqttOptions,
    NativeOptions,
)
from penstock.log import Log, LogOptions, TopicOptions
from penstock.testing.crashdisk import CrashDisk, PowerCut
from penstock.torture.client import LoadClient
from penstock.torture.promise import PromiseBroken
from penstock.torture.record import Truth

DIRECTORY = "/data"
# Checkpoints, new files and new segments after a few steps.
LOG = LogOptions(
    journal_file_bytes=50_000,
    checkpoint_bytes=25_000,
    write_out_bytes=10_000,
    tail_cache_bytes=5000,
)
BROKER = BrokerOptions(dedup_age_s=1e9, pending_ttl_s=1e9)
TOPICS = TopicOptions(segment_bytes=10_000)
ROOM = 1 << 16
STEPS = 20_000


class Wire:
    """A connection: its gateway, and what is on its way to the client."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.way = bytearray()


class OnPower:
    """The world of clients that talk to a broker in memory."""

    def __init__(self, random: Random) -> None:
        self.clients: list[LoadClient] = []
        self._random = random
        self._disk = CrashDisk()
        self._clock = ManualClock()
        self._wires: dict[LoadClient, Wire] = {}
        self._open()

    # The world of a scene

    def run(self, done: Callable[[], bool]) -> None:
        for _ in range(STEPS):
            if done():
                return
            self._step()
        states = "\n".join(one.state() for one in self.clients)
        raise PromiseBroken(f"nothing moves:\n{states}")

    def tear(self, client: LoadClient) -> None:
        if (wire := self._wires.pop(client, None)) is not None:
            wire.gateway.disconnected(self._clock.now_s())
            client.drops_out = False
            client.lost()

    def leave(self, client: LoadClient) -> None:
        self.clients.remove(client)
        self.tear(client)

    def truth(self) -> Truth:
        return Truth(self._broker.log)

    # Accidents

    def cut_power(self) -> None:
        """At a random call of the file system, soon; then the power is back."""
        self._disk.cut_power_in(self._random.randint(1, 60))
        with suppress(PowerCut):
            for _ in range(STEPS):
                self._step()
        for client, wire in self._wires.items():
            if wire.way:  # it was on its way, and arrives
                client.received(bytes(wire.way))
            client.drops_out = False
            client.lost()
        self._wires.clear()
        self._disk = self._disk.crashed(self._random)
        self._open()

    def fill_disk(self) -> None:
        """Some writes fail."""
        places = self._random.choice([(".jnl",), (".jnl", ".seg", ".tmp")])
        error = OSError(errno.ENOSPC, "the disk is full")
        actions = self._random.sample(["write", "sync", "create"], 2)
        self._disk.fail(
            lambda what, path: (
                error if what in actions and path.endswith(places) else None
            )
        )
        for _ in range(self._random.randint(1, 20)):
            self._step()
        self._disk.fail(None)

    # Within

    def _open(self) -> None:
        open_log = partial(
            Log.open,
            DIRECTORY,
            LOG,
            files=self._disk,
            clock=self._clock,
            entropy=self._random.randbytes,
        )
        self._broker = Broker(open_log, BROKER, TOPICS)
        self._hub = MqttHub(self._broker, MqttOptions(sys_interval_s=0))
        self._desk = Desk(self._broker)
        self._users: dict[str, JsonConsumerGateway] = {}

    def _step(self) -> None:
        """A moment: all clients speak and listen, and the broker writes, or not yet."""
        self._clock.advance(self._random.random() * 0.1)
        for client in list(self.clients):
            self._carry(client)
        self._commit()
        self._broker.tick(self._clock.now_s())
        for client in list(self.clients):
            self._hear(client)

    def _carry(self, client: LoadClient) -> None:
        """Bring what a client says to its gateway."""
        now_s = self._clock.now_s()
        wire = self._wires.get(client) or self._connect(client)
        client.work()
        data = bytes(client.out)
        client.out.clear()
        if data:
            wire.gateway.receive(data, now_s)
        while wire.gateway.busy:
            wire.gateway.go_on(now_s)

    def _connect(self, client: LoadClient) -> Wire:
        wire = self._wires[client] = Wire(self._gateway(client.port))
        wire.gateway.connected(self._clock.now_s())
        client.out.clear()
        client.opened()
        return wire

    def _gateway(self, port: str) -> Gateway:
        match port:
            case "line":
                return LineGateway(self._broker, LineOptions())
            case "publisher":
                return JsonPublisherGateway(self._broker, JsonOptions())
            case "consumer":
                return JsonConsumerGateway(self._broker, JsonOptions(), self._users)
            case "native":
                return NativeGateway(self._broker, self._desk, NativeOptions())
            case "mqtt":
                return MqttGateway(self._hub)
        raise ValueError(port)

    def _commit(self) -> None:
        if self._random.random() < 0.5:
            return
        with suppress(WriteFailed):
            self._broker.log.commit()
            self._broker.log.store()

    def _hear(self, client: LoadClient) -> None:
        """Bring what the gateway says to its client, now or later."""
        wire = self._wires[client]
        self._broker.awake.pop(wire.gateway, None)
        wire.way += b"".join(wire.gateway.output(self._clock.now_s(), ROOM))
        if wire.way and self._random.random() < 0.8:
            data = bytes(wire.way)
            wire.way.clear()
            client.received(data)
        ends = wire.gateway.closing and wire.gateway not in self._broker.waiting
        if client.drops_out or (ends and not wire.way):
            self.tear(client)
