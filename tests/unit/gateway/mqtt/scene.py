"""MQTT clients of a broker without sockets; what they get is parsed for them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from penstock.access.grants import Grants
from penstock.broker.broker import Broker
from penstock.gateway.gateway import Gateway
from penstock.gateway.mqtt import MqttGateway, MqttHub
from penstock.gateway.options import MqttOptions
from penstock.wire.mqtt import (
    Ack,
    Acks,
    ClientParser,
    Connack,
    Connect,
    PacketKind,
    Properties,
    Publishes,
    RequestedFilter,
    ServerPacket,
    Suback,
    SubscribePacket,
    Unsuback,
    UnsubscribePacket,
    WillPacket,
    render_ack,
    render_acks,
    render_connect,
    render_disconnect,
    render_publish,
    render_subscribe,
    render_unsubscribe,
)
from tests.unit.gateway import scene

MAX_PACKET = 1 << 28


class Message(NamedTuple):
    """One PUBLISH that a client has got."""

    topic: str
    payload: bytes
    qos: int = 0
    packet_id: int = 0
    retain: bool = False
    dup: bool = False
    properties: Properties | None = None


class Scene(scene.Scene):
    """A broker with MQTT beside the other protocols."""

    def __init__(
        self,
        folder: Path,
        rules: scene.Rules | None = None,
        mqtt: MqttOptions | None = None,
    ) -> None:
        self.mqtt = mqtt or MqttOptions(sys_interval_s=0)
        super().__init__(folder, rules)

    def client(
        self,
        name: str = "ann",
        *,
        version: int = 5,
        clean: bool = True,
        properties: Properties | None = None,
        will: WillPacket | None = None,
        keep_alive: int = 0,
        user: str | None = None,
        password: bytes | None = None,
    ) -> Client:
        """A client that has sent CONNECT; see ``Client.connack``."""
        client = self.stranger(version)
        client.send(
            render_connect(
                Connect(
                    version=version,
                    client_id=name,
                    clean_start=clean,
                    keep_alive=keep_alive,
                    user=user,
                    password=password,
                    will=will,
                    properties=properties or {},
                )
            )
        )
        return client

    def stranger(self, version: int = 5) -> Client:
        """A connection over which nothing was said."""
        peer = self.connect("mqtt")
        assert isinstance(peer.gateway, MqttGateway)
        return Client(self, peer, peer.gateway, version)

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.broker.tick(self.clock.now_s())
        self.hub.tick(self.clock.now_s())
        self.pump()

    def _open(self) -> Broker:
        broker = super()._open()
        users = bool(self.rules.passwords)
        self.hub = MqttHub(broker, self.mqtt, self._rights if users else None)
        return broker

    def _rights(self, user: str) -> Grants | None:
        """What the rules say of a user now; None if there is none."""
        known = user in self.rules.passwords
        return self.rules.grants.get(user, Grants(user=user)) if known else None

    def _gateway(self, port: str) -> Gateway:
        if port == "mqtt":
            return MqttGateway(self.hub, authenticate=bool(self.rules.passwords))
        return super()._gateway(port)


class Client:
    """One MQTT connection; packets are what came since the last look."""

    def __init__(
        self, scene: Scene, peer: scene.Peer, gateway: MqttGateway, version: int
    ) -> None:
        self.peer = peer
        self.gateway = gateway
        self.version = version
        self._scene = scene
        self._parser = ClientParser(MAX_PACKET, version)

    # What it says

    def send(self, data: bytes) -> None:
        self.peer.send(data)

    def publish(
        self,
        topic: str,
        *payloads: bytes,
        qos: int = 0,
        ids: list[int] | None = None,
        retain: bool = False,
        dup: bool = False,
        properties: Properties | None = None,
    ) -> None:
        packet = Publishes(
            topic=topic,
            qos=qos,
            retain=retain,
            dup=dup,
            payloads=list(payloads),
            packet_ids=ids,
            properties=properties,
        )
        self.send(render_publish(self.version, packet))

    def subscribe(
        self,
        *wanted: str | RequestedFilter,
        qos: int = 0,
        properties: Properties | None = None,
    ) -> None:
        filters = [
            RequestedFilter(one, qos) if not isinstance(one, RequestedFilter) else one
            for one in wanted
        ]
        packet = SubscribePacket(
            packet_id=7, filters=filters, properties=properties or {}
        )
        self.send(render_subscribe(self.version, packet))

    def unsubscribe(self, *filters: str) -> None:
        packet = UnsubscribePacket(packet_id=8, filters=list(filters))
        self.send(render_unsubscribe(self.version, packet))

    def answer(self, kind: PacketKind, *ids: int) -> None:
        self.send(render_acks(kind, list(ids)))

    def refuse(self, kind: PacketKind, id_: int, reason: int = 0x80) -> None:
        self.send(render_ack(kind, id_, reason, {}, self.version))

    def bye(self, reason: int = 0, properties: Properties | None = None) -> None:
        """DISCONNECT, and the connection ends."""
        self.send(render_disconnect(self.version, reason, properties))
        self.drop()

    def drop(self) -> None:
        """The connection is gone."""
        if self.gateway in self._scene.peers:
            self.peer.disconnect()
        self._scene.pump()

    @property
    def closed(self) -> bool:
        return self.peer.closed

    # What it has got

    def packets(self) -> list[ServerPacket]:
        got, self.peer.got = self.peer.got, b""
        packets = self._parser.feed(got)
        assert self._parser.failed is None, self._parser.failed
        return packets

    def connack(self) -> Connack:
        first, *self.rest = self.packets()
        assert isinstance(first, Connack), first
        return first

    def suback(self) -> list[int]:
        (found,) = [one for one in self.packets() if isinstance(one, Suback)]
        return found.reasons

    def unsuback(self) -> list[int]:
        (found,) = [one for one in self.packets() if isinstance(one, Unsuback)]
        return found.reasons

    def messages(self) -> list[Message]:
        return messages(self.packets())

    def payloads(self) -> list[bytes]:
        return [one.payload for one in self.messages()]

    def acks(self) -> list[tuple[PacketKind, int, int]]:
        """Kind, id and reason of each."""
        return acks(self.packets())


def messages(packets: list[ServerPacket]) -> list[Message]:
    """Each PUBLISH of some packets by itself."""
    return [
        Message(
            run.topic,
            payload,
            run.qos,
            run.packet_ids[at] if run.packet_ids else 0,
            run.retain,
            run.dup,
            run.properties,
        )
        for run in packets
        if isinstance(run, Publishes)
        for at, payload in enumerate(run.payloads)
    ]


def acks(packets: list[ServerPacket]) -> list[tuple[PacketKind, int, int]]:
    found: list[tuple[PacketKind, int, int]] = []
    for one in packets:
        if isinstance(one, Acks):
            found += [(one.kind, id_, 0) for id_ in one.packet_ids]
        elif isinstance(one, Ack):
            found.append((one.kind, one.packet_id, one.reason))
    return found
