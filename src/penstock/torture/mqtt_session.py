"""An MQTT client that keeps its session, as real ones do: no sockets, bytes in and out.

What it has to remember outlives its connections: publishes until they are answered, ids
of QoS 2 from PUBLISH to PUBREL in both directions, and what it subscribed to until that
was confirmed. It checks on the way what a client can see: that no id stands for two
messages, that it never has more unanswered than it asked for, and that its session is
there when it comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.model.topic_filter import matches
from penstock.torture.promise import PromiseBroken, holds
from penstock.wire.mqtt import (
    Ack,
    Acks,
    ClientParser,
    Connack,
    Connect,
    Disconnect,
    PacketKind,
    Pingresp,
    Properties,
    Property,
    Publishes,
    RequestedFilter,
    ServerPacket,
    Suback,
    SubscribePacket,
    Unsuback,
    UnsubscribePacket,
    render_acks,
    render_connect,
    render_publish,
    render_subscribe,
    render_unsubscribe,
)

FOREVER = 0xFFFFFFFF
MAX_PACKET = 1 << 24
MAX_ID = 0xFFFF


class Got(NamedTuple):
    """A message that reached the application."""

    topic: str
    payload: bytes
    qos: int
    retain: bool


@dataclass(slots=True)
class OutgoingPublish:
    """A publish that is not over."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    tried: bool = False
    released: bool = False


@dataclass(slots=True)
class Request:
    """A SUBSCRIBE or UNSUBSCRIBE that is not confirmed."""

    filter: str
    wanted: bool


@dataclass(slots=True, eq=False)
class SessionClient:
    name: str
    qos: int = 2
    """Of its subscriptions."""
    version: int = 5
    window: int = 0
    """How much it takes unanswered; 0: as much as may be."""

    out: bytearray = field(default_factory=bytearray)
    """What is to be sent."""
    answers: list[tuple[PacketKind, int]] = field(default_factory=list)
    """What it has yet to answer, in order; see ``answer``."""
    got: list[Got] = field(default_factory=list)
    confirmed: set[bytes] = field(default_factory=set)
    """Publishes that the server has taken over."""
    filters: set[str] = field(default_factory=set)
    """Subscriptions that were confirmed and not given up."""
    lasting: bool = False
    """Whether there is a session, as far as the client knows."""
    ready: bool = False
    """Whether CONNACK has come over this connection."""
    reasons: list[int] = field(default_factory=list)
    """Of the DISCONNECTs of the server, and of CONNACKs that refuse."""

    _parser: ClientParser | None = None
    _next: int = 0
    _sent: dict[int, OutgoingPublish] = field(default_factory=dict)
    _asked: dict[int, Request] = field(default_factory=dict)
    _received: dict[int, bytes] = field(default_factory=dict)
    """Ids of QoS 2 and their messages, from PUBLISH to PUBREL."""
    _unanswered: dict[int, bytes] = field(default_factory=dict)
    """Ids over this connection for which the last answer was not sent."""

    # Connections

    def opened(self) -> None:
        """There is a connection."""
        self._parser = ClientParser(MAX_PACKET, self.version)
        properties: Properties = {}
        if self.version == 5:
            properties[Property.SESSION_EXPIRY_INTERVAL] = FOREVER
            if self.window:
                properties[Property.RECEIVE_MAXIMUM] = self.window
        packet = Connect(
            version=self.version,
            client_id=self.name,
            clean_start=False,
            keep_alive=0,
            properties=properties,
        )
        self.out += render_connect(packet)

    def lost(self) -> None:
        """The connection is gone, with all that was on its way."""
        self._parser = None
        self.ready = False
        self.out.clear()
        self.answers.clear()
        self._unanswered.clear()

    @property
    def idle(self) -> bool:
        """Whether nothing is to be answered, and nothing waited for."""
        return not (self.answers or self._sent or self._asked or self._received)

    def state(self) -> str:
        """For the message when nothing moves."""
        return (
            f"{'ready' if self.ready else 'not let in'}, {len(self._sent)} publishes "
            f"and {len(self._asked)} requests open, {len(self._received)} received, "
            f"{len(self.answers)} to answer, {len(self.got)} got, told {self.reasons}"
        )

    # What the application wants

    def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool = False
    ) -> None:
        if not qos:
            if self.ready:
                self._say(OutgoingPublish(topic, payload, 0, retain), None)
            return
        id_ = self._free_id()
        self._sent[id_] = one = OutgoingPublish(topic, payload, qos, retain)
        if self.ready:
            self._say(one, id_)

    def subscribe(self, filter_: str) -> None:
        self._ask(Request(filter_, wanted=True))

    def unsubscribe(self, filter_: str) -> None:
        self.filters.discard(filter_)
        self._ask(Request(filter_, wanted=False))

    def hears(self, topic: str) -> bool:
        """Whether it has subscribed to the topic, for sure."""
        return any(matches(one, topic) for one in self.filters)

    @property
    def unsettled(self) -> bool:
        """Whether a subscription is asked for, or given up, and not confirmed."""
        return bool(self._asked)

    @property
    def publishing(self) -> int:
        """How many publishes are not over."""
        return len(self._sent)

    def answer(self, count: int | None = None) -> None:
        """Send the first answers that are due, or all of them."""
        count = len(self.answers) if count is None else count
        due, self.answers = self.answers[:count], self.answers[count:]
        for kind, id_ in due:
            self.out += render_acks(kind, [id_])
            if kind in (PacketKind.PUBACK, PacketKind.PUBCOMP):
                self._unanswered.pop(id_, None)

    # What the server says

    def received(self, data: bytes) -> None:
        if self._parser is None:
            raise ValueError(f"{self.name} has no connection")
        for packet in self._parser.feed(data):
            self._packet(packet)
        holds(self._parser.failed is None, self._parser.failed)

    def _packet(self, packet: ServerPacket) -> None:
        match packet:
            case Connack():
                self._connected(packet)
            case Publishes():
                for payload, id_ in _each(packet):
                    self._message(packet, payload, id_)
            case Acks(kind=kind, packet_ids=ids):
                for id_ in ids:
                    self._answered(kind, id_)
            case Ack(kind=kind, packet_id=id_, reason=reason):
                holds(reason == 0x92, f"{self.name}: {kind.name} {id_}: {reason:#x}")
                self._answered(kind, id_)
            case Suback(packet_id=id_, reasons=[reason]):
                self._subscribed(id_, reason)
            case Unsuback(packet_id=id_):
                self._asked.pop(id_, None)
            case Disconnect(reason=reason):
                self.reasons.append(reason)
            case Pingresp():
                pass
            case _:
                raise PromiseBroken(f"{self.name}: unexpected {packet}")

    def _connected(self, packet: Connack) -> None:
        if packet.reason:
            self.reasons.append(packet.reason)
            return
        present = packet.session_present
        holds(present or not self.lasting, f"{self.name}: the session is lost")
        self.lasting = self.ready = True
        for id_, one in self._sent.items():
            self._say(one, id_)
        for id_, request in self._asked.items():
            self._say_request(request, id_)

    def _message(self, packet: Publishes, payload: bytes, id_: int) -> None:
        got = Got(packet.topic, payload, packet.qos, packet.retain)
        if packet.qos:
            known = self._unanswered.get(id_, payload)
            holds(known == payload, f"{self.name}: {id_} is {known!r} and {payload!r}")
            self._unanswered[id_] = payload
            most = self.window or MAX_ID
            count = len(self._unanswered)
            holds(count <= most, f"{self.name}: {count} unanswered, not {most}")
        if packet.qos == 2:
            self.answers.append((PacketKind.PUBREC, id_))
            if id_ in self._received:  # the same message again
                known = self._received[id_]
                holds(known == payload, self.name, id_, "was", known, "is", payload)
                return
            self._received[id_] = payload
        elif packet.qos == 1:
            self.answers.append((PacketKind.PUBACK, id_))
        self.got.append(got)

    def _answered(self, kind: PacketKind, id_: int) -> None:
        one = self._sent.get(id_)
        if kind is PacketKind.PUBREL:
            self._received.pop(id_, None)
            self.answers.append((PacketKind.PUBCOMP, id_))
        elif kind is PacketKind.PUBCOMP:
            if one is not None and one.released:
                del self._sent[id_]
        elif one is None:
            return
        elif kind is PacketKind.PUBACK:
            holds(one.qos == 1, f"{self.name}: PUBACK {id_}")
            self.confirmed.add(one.payload)
            del self._sent[id_]
        else:
            holds(one.qos == 2, f"{self.name}: PUBREC {id_}")
            self.confirmed.add(one.payload)
            one.released = True
            self.out += render_acks(PacketKind.PUBREL, [id_])

    def _subscribed(self, id_: int, reason: int) -> None:
        request = self._asked.pop(id_, None)
        holds(reason <= 2, f"{self.name}: SUBACK {reason:#x}")
        if request is not None and not any(
            one.filter == request.filter and not one.wanted
            for one in self._asked.values()
        ):
            self.filters.add(request.filter)

    # Within

    def _say(self, one: OutgoingPublish, id_: int | None) -> None:
        if one.released:
            if id_ is None:
                raise ValueError("QoS 2 has an id")
            self.out += render_acks(PacketKind.PUBREL, [id_])
            return
        packet = Publishes(
            topic=one.topic,
            qos=one.qos,
            retain=one.retain,
            dup=one.tried and one.qos > 0,
            payloads=[one.payload],
            packet_ids=None if id_ is None else [id_],
        )
        one.tried = True
        self.out += render_publish(self.version, packet)

    def _ask(self, request: Request) -> None:
        id_ = self._free_id()
        self._asked[id_] = request
        if self.ready:
            self._say_request(request, id_)

    def _say_request(self, request: Request, id_: int) -> None:
        if request.wanted:
            wanted = SubscribePacket(
                packet_id=id_, filters=[RequestedFilter(request.filter, self.qos)]
            )
            self.out += render_subscribe(self.version, wanted)
        else:
            given_up = UnsubscribePacket(packet_id=id_, filters=[request.filter])
            self.out += render_unsubscribe(self.version, given_up)

    def _free_id(self) -> int:
        while True:
            self._next = self._next % MAX_ID + 1
            if self._next not in self._sent and self._next not in self._asked:
                return self._next


def in_order(got: list[bytes], stored: list[bytes]) -> bool:
    """Whether messages came as they are stored; of what came again the first counts.

    With QoS 1 a message may be stored more than once: any of its places will do.
    """
    rest = iter(stored)
    return all(one in rest for one in dict.fromkeys(got))


def _each(packet: Publishes) -> Iterator[tuple[bytes, int]]:
    ids = packet.packet_ids or [0] * len(packet.payloads)
    return zip(packet.payloads, ids, strict=True)
