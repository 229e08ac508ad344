"""A broker with MQTT clients over a disk that loses power: every step by hand."""

from __future__ import annotations

import errno
from contextlib import suppress
from functools import partial
from random import Random

from penstock.broker.broker import Broker
from penstock.clock import ManualClock
from penstock.errors import WriteFailed
from penstock.gateway.mqtt import MqttGateway, MqttHub
from penstock.gateway.options import MqttOptions
from penstock.log import Log, LogOptions
from penstock.testing.crashdisk import CrashDisk, PowerCut
from penstock.torture.mqtt_session import SessionClient
from penstock.wire.mqtt import Malformed

OPTIONS = MqttOptions(sys_interval_s=0)
# Checkpoints and write-outs after a few steps.
SMALL = LogOptions(journal_file_bytes=4096, checkpoint_bytes=2048, write_out_bytes=1024)


class Line:
    """A connection: the gateway, and what is on its way to the client."""

    def __init__(self, gateway: MqttGateway) -> None:
        self.gateway = gateway
        self.way = bytearray()


class HonestGateway(MqttGateway):
    """Serves clients that keep to the rules, and says so if it finds otherwise."""

    def _violated(self, error: Malformed) -> None:
        raise AssertionError(f"an honest client is sent away: {error}")


class World:
    def __init__(self, clients: list[SessionClient]) -> None:
        self.clients = clients
        self.disk = CrashDisk()
        self.clock = ManualClock(1000.0)
        self.lines: dict[SessionClient, Line] = {}
        self.broker, self.hub = self._open()

    # Connections

    def connect(self, client: SessionClient) -> None:
        gateway = HonestGateway(self.hub)
        self.lines[client] = Line(gateway)
        gateway.connected(self.clock.now_s())
        client.opened()
        self.carry(client)

    def drop(self, client: SessionClient, *, heard: bool = False) -> None:
        """The connection is gone; ``heard``: the client has got what was on its way."""
        line = self.lines.pop(client, None)
        if line is None:
            return
        if heard and line.way:
            client.received(bytes(line.way))
        line.gateway.disconnected(self.clock.now_s())
        client.lost()

    def carry(self, client: SessionClient, room: int = 1 << 20) -> None:
        """Bring what a client says to the server, and let that answer."""
        line = self.lines.get(client)
        if line is None:
            return
        if client.out:
            data = bytes(client.out)
            client.out.clear()
            line.gateway.receive(data, self.clock.now_s())
        self._pull(client, line, room)
        self.pump(room)

    def read(self, client: SessionClient, count: int | None = None) -> None:
        """Bring what the server has said to a client, or the first bytes of it."""
        line = self.lines.get(client)
        if line is not None and line.way:
            count = len(line.way) if count is None else count
            data = bytes(line.way[:count])
            del line.way[:count]
            client.received(data)

    def pump(self, room: int = 1 << 20) -> None:
        """Let everybody send who was woken."""
        awake = self.broker.awake
        for _ in range(1000):
            if not awake:
                return
            turn = list(awake)
            awake.clear()
            for gateway in turn:
                for client, line in list(self.lines.items()):
                    if line.gateway is gateway:
                        self._pull(client, line, room)
        raise AssertionError("nobody comes to rest")

    def _pull(self, client: SessionClient, line: Line, room: int) -> None:
        data = b"".join(line.gateway.output(self.clock.now_s(), room))
        line.way += data
        if len(data) >= room:
            self.broker.awake[line.gateway] = None
        gateway = line.gateway
        if gateway.closing and gateway not in self.broker.waiting:
            self.drop(client, heard=True)

    # The disk

    def commit(self) -> None:
        with suppress(WriteFailed):
            self.broker.log.commit()
            self.broker.log.store()
        self.pump()

    def fail_commit(self) -> None:
        """The disk is full for a moment."""
        self.disk.fail(lambda what, path: OSError(errno.ENOSPC, "simulated"))
        self.commit()
        self.disk.fail(None)

    def crash(self, random: Random, *, calls: int | None = None) -> None:
        """The power goes: now, or in the middle of a commit."""
        if calls is not None:
            self.disk.cut_power_in(calls)
            with suppress(PowerCut):
                self.commit()
        for client in list(self.lines):
            line = self.lines.pop(client)
            if line.way and random.random() < 0.5:
                client.received(bytes(line.way))
            client.lost()
        self.disk = self.disk.crashed(random)
        self.broker, self.hub = self._open()

    def restart(self) -> None:
        """The server ends in peace and comes back."""
        for client in list(self.lines):
            self.drop(client)
        self.broker.log.close()
        self.broker, self.hub = self._open()

    def stored(self) -> dict[str, list[bytes]]:
        """Everything in the topics of clients, in order."""
        log = self.broker.log
        found: dict[str, list[bytes]] = {}
        for name in log.topics():
            if name.startswith("$"):
                continue
            offset = log.topic(name).start_offset
            found[name] = []
            while batches := log.read(name, offset):
                found[name] += [one for batch in batches for one in batch.payloads()]
                offset = batches[-1].end_offset
        return found

    def _open(self) -> tuple[Broker, MqttHub]:
        open_log = partial(
            Log.open,
            "/data",
            SMALL,
            files=self.disk,
            clock=self.clock,
            entropy=bytes,
        )
        broker = Broker(open_log)
        return broker, MqttHub(broker, OPTIONS)

    def settle(self) -> None:
        """Everybody is there, answers everything, and waits until all is quiet."""
        for _ in range(200):
            for client in self.clients:
                if client not in self.lines:
                    self.connect(client)
            self.commit()
            for client in self.clients:
                self.read(client)
                client.answer()
                self.carry(client)
            self.commit()
            if self.quiet:
                return
        raise AssertionError("it never comes to an end")

    @property
    def quiet(self) -> bool:
        return not self.broker.dirty and all(
            client in self.lines
            and client.idle
            and not (client.out or self.lines[client].way)
            for client in self.clients
        )
