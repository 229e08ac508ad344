"""One MQTT connection: packets in, answers when their promises hold, events out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import assert_never

from penstock.delivery.consumer import Consumer
from penstock.delivery.handshake import Reply
from penstock.delivery.owed import Owed
from penstock.errors import Busy, NotAllowed, PenstockError
from penstock.gateway.gateway import LOGIN_BYTES, Gateway, LoginRequest
from penstock.gateway.mqtt.hub import MqttHub
from penstock.gateway.mqtt.inbound import Gathered
from penstock.gateway.mqtt.opening import OpenedConnection, open_session, refusal
from penstock.gateway.mqtt.subscribing import Subscribing
from penstock.gateway.mqtt.writing import PublishMark
from penstock.gateway.outbox import Outbox
from penstock.sessions.routes import PIECE_STEPS
from penstock.wire.mqtt import (
    PINGRESP,
    Ack,
    Acks,
    Auth,
    ClientPacket,
    ClientPacketParser,
    Connect,
    Disconnect,
    Malformed,
    PacketKind,
    Pingreq,
    Properties,
    Property,
    Publishes,
    Reason,
    SubscribePacket,
    UnsubscribePacket,
    connack,
    disconnect,
    number,
)

# A client that is silent for one and a half times what it said is gone (MQTT-3.1.2-22).
PATIENCE = 1.5
_ANSWERS = {PacketKind.PUBACK: Reply.ACK, PacketKind.PUBREC: Reply.PUBREC}


class MqttGateway(Gateway):
    """One connection of a client; ``hub`` is what all of them have in common."""

    lingers = True

    def __init__(
        self,
        hub: MqttHub,
        *,
        authenticate: bool = False,
        login_bytes: int = LOGIN_BYTES,
    ) -> None:
        self.settled = False
        self.patience_s = 0.0
        self._hub = hub
        self._authenticate = authenticate
        options = hub.options
        self._parser = ClientPacketParser(
            options.max_packet_bytes, login_bytes, options.max_packet_filters
        )
        self._outbox: Outbox[PublishMark] = Outbox(hub.broker.log)
        self._connect: Connect | None = None
        self._opened: OpenedConnection | None = None
        self._subscribing: Subscribing | None = None
        self._held: Sequence[ClientPacket] = ()
        """What waits for a login, or for its turn."""
        self._work: Iterator[None] | None = None
        """What the packet in front of them still takes."""
        self._last_word: bytes | None = None
        self._over = False
        """Whether the last word was said, because a write failed."""
        self._will = True
        """Whether the will is to be published when the connection ends."""

    # Called by the server

    def receive(self, data: bytes, now_s: float) -> None:
        if self.closing:
            return  # nothing counts behind the last word
        try:
            packets = self._parser.feed(data)
        except Malformed as error:
            self._violated(error)
            return
        waits = self._held or self._work is not None
        if len(packets) == 1 and self._opened is not None and not waits:
            # The way of those who send one at a time.
            try:
                self._packet(packets[0], now_s)
            except PenstockError as error:
                self._failed(error)
            if self._work is None and self._parser.failed is None:
                return
            packets = []
        held, self._held = self._held, ()
        self._packets([*held, *packets] if held else packets, now_s)

    @property
    def busy(self) -> bool:
        waits = self._work is not None or bool(self._held)
        return waits and self.login is None and not self.closing

    def go_on(self, now_s: float) -> None:
        held, self._held = self._held, ()
        self._packets(held, now_s)

    def eof(self, now_s: float) -> None:
        self.closing = True

    def logged_in(self, ok: bool, now_s: float) -> None:
        connect, self.login = self._connect, None
        assert connect is not None, "it is called after a login was asked for"
        if ok:
            self._open(connect, now_s)
        elif self.refusal is not None:
            self._put_off(self.refusal)
        else:
            self._refuse_connect(Reason.BAD_USER_NAME_OR_PASSWORD)
        held, self._held = self._held, ()
        self._packets(held, now_s)

    def turned_away(self, error: PenstockError, now_s: float) -> None:
        self.login = None
        self._put_off(error)

    def timed_out(self, now_s: float) -> None:
        self._bye(Reason.KEEP_ALIVE_TIMEOUT)

    def cut_off(self, reason: str, now_s: float) -> None:
        if not self.closing:
            self._bye(Reason.NOT_AUTHORIZED, reason)

    def part(self, now_s: float) -> None:
        if not self.closing:
            self._bye(Reason.SERVER_SHUTTING_DOWN)

    @property
    def has_output(self) -> bool:
        if self.closing or self._outbox:
            return True
        opened, subscribing = self._opened, self._subscribing
        return opened is not None and (
            opened.outbound.busy or (subscribing is not None and subscribing.busy)
        )

    def output(self, now_s: float, room: int) -> list[bytes]:
        out: list[bytes] = []
        opened, outbox = self._opened, self._outbox
        if self.closing and opened is not None:
            opened.inbound.store()  # and is answered, in front of the last word
        if outbox:
            self._drain(out)
        if opened is not None and not self.closing and not opened.waiting:
            if out:
                room -= sum(map(len, out))
            subscribing = self._subscribing
            if subscribing is not None and subscribing.busy:
                shown = subscribing.retained(now_s, room)
                room -= sum(map(len, shown))
                out += shown
            if opened.outbound.busy:
                out += opened.outbound.push(now_s, room)
                if outbox:
                    self._drain(out)
        if outbox or (not self.closing and self._waits):
            self._hub.broker.waiting[self] = None
        elif self.closing:
            self._hub.broker.waiting.pop(self, None)
        return out

    @property
    def _waits(self) -> bool:
        """Whether what was retained is to be looked up after a commit."""
        return self._subscribing is not None and self._subscribing.waits

    def _drain(self, out: list[bytes]) -> None:
        """Answers whose time has come."""
        opened = self._opened
        for data, mark in self._outbox.take():
            if self._over:
                continue  # nothing follows a DISCONNECT: MQTT-3.14.4-1
            out.append(data)
            self._over = data is self._last_word
            if opened is not None:
                opened.waiting = False
                if isinstance(mark, list):
                    opened.outbound.said_released(mark)
                elif mark:
                    opened.inbound.answered(mark)

    def disconnected(self, now_s: float) -> None:
        if self._opened is not None:
            self._opened.inbound.store()
        opened, self._opened = self._opened, None
        if opened is not None:
            self._give_up(opened)
            self._hub.system.listeners.pop(self, None)
            if opened.session.outlet is self:
                self._hub.leave(opened.session, now_s, will=self._will)

    def taken_over(self, now_s: float) -> None:
        """The client has come over another connection (MQTT-3.1.4-3)."""
        self._let_go(Reason.SESSION_TAKEN_OVER, now_s)

    def sent_away(self, now_s: float) -> None:
        """A user ends the session, which has no time left without a connection."""
        self._let_go(Reason.ADMINISTRATIVE_ACTION, now_s)

    def _let_go(self, reason: Reason, now_s: float) -> None:
        """Leave the session to others at once; the connection ends when it can."""
        self._bye(reason)
        self.disconnected(now_s)
        self._hub.broker.awake[self] = None

    # Called by the broker

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        raise AssertionError("PUBRELs are with the packet ids")

    def moved(self, consumer: Consumer) -> None:
        """What comes next is sent as if nothing had been."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        """The topic is gone: nothing is said, and its next event begins anew."""
        if self._opened is not None:
            share = self._opened.session.share_of(consumer)
            if share is not None:
                self._opened.outbound.lose(share)

    # Publishes that were gathered

    def in_group(self, said: Gathered, events: Sequence[int]) -> None:
        if self._opened is not None:
            self._opened.inbound.in_group(said, events)

    def stored(
        self, said: Gathered, group: int, refused: Mapping[int, PenstockError]
    ) -> None:
        assert self._opened is not None, "it has them stored before it ends"
        try:
            self._opened.inbound.stored(said, group, refused)
        except PenstockError as error:
            self._failed(error)
        if refused:
            self._hub.broker.awake[self] = None
        elif said.packet.qos:
            self._hub.broker.waiting[self] = None

    def dropped(self, said: Gathered) -> None:
        self.closing = True
        self._hub.broker.awake[self] = None

    # $SYS

    @property
    def system_filters(self) -> Iterable[str]:
        return self._subscribing.system_filters if self._subscribing else ()

    def tell(self, topic: str, payload: bytes, *, retain: bool) -> None:
        """A value of a ``$SYS`` topic."""
        if self._opened is not None:
            writer = self._opened.outbound.writer
            self._outbox.now(writer.value(topic, payload, retain=retain))
            self._hub.broker.awake[self] = None

    # Packets

    def _packets(self, packets: Sequence[ClientPacket], now_s: float) -> None:
        routes = self._hub.broker.sessions.routes
        begun, at = routes.steps, 0
        while self._work is not None or at < len(packets):
            if self.closing:
                return
            if self.login is not None or routes.steps - begun >= PIECE_STEPS:
                self._held = packets[at:]
                return
            try:
                if self._work is not None:
                    self._work = _went_on(self._work)
                else:
                    at += 1
                    self._packet(packets[at - 1], now_s)
            except PenstockError as error:
                self._failed(error)
        if self.login is None and not self.closing and self._parser.failed is not None:
            self._violated(self._parser.failed)

    def _packet(self, packet: ClientPacket, now_s: float) -> None:
        if isinstance(packet, Connect):
            self._connected(packet, now_s)
            return
        opened, subscribing = self._opened, self._subscribing
        assert opened is not None and subscribing is not None, "CONNECT comes first"
        match packet:
            case Publishes():
                opened.inbound.publish(packet, self.grants, now_s)
            case Acks():
                self._answers(opened, packet.kind, packet.packet_ids)
            case Ack(kind=kind, packet_id=id_, reason=reason):
                if reason >= Reason.UNSPECIFIED_ERROR and kind <= PacketKind.PUBREC:
                    opened.outbound.refused(id_, _ANSWERS[kind])
                else:
                    self._answers(opened, kind, [id_])
            case SubscribePacket():
                self._hub.broker.gathering.store()  # what is older is not for these
                self._work = subscribing.subscribe(packet, self.grants)
            case UnsubscribePacket():
                self._hub.broker.gathering.store()
                self._work = subscribing.unsubscribe(packet)
            case Pingreq():
                self._outbox.now(PINGRESP)  # MQTT-3.12.4-1
            case Disconnect():
                self._leave(packet, opened)
            case Auth():  # MQTT-4.12.0-7: no method was agreed upon
                raise Malformed(Reason.PROTOCOL_ERROR, "AUTH without a method")
            case _:
                assert_never(packet)

    def _answers(
        self, opened: OpenedConnection, kind: PacketKind, ids: list[int]
    ) -> None:
        if kind is PacketKind.PUBACK:
            opened.outbound.acked(ids)
        elif kind is PacketKind.PUBREC:
            opened.outbound.received(ids)
        elif kind is PacketKind.PUBREL:
            opened.inbound.release(ids)
        else:
            opened.outbound.completed(ids)

    # The beginning and the end

    def _connected(self, connect: Connect, now_s: float) -> None:
        self._connect = connect
        named = connect.password is None and self.is_vouched(connect.user)
        authenticate = self._authenticate and not named
        controls = self._hub.broker.options.control_characters
        reason = refusal(connect, authenticate=authenticate, controls=controls)
        if reason is not None:
            self._refuse_connect(reason)
        elif authenticate:
            assert connect.user is not None and connect.password is not None, "checked"
            password = connect.password.decode(errors="replace")
            self.login = LoginRequest(connect.user, password)
        else:
            self._open(connect, now_s)

    def _open(self, connect: Connect, now_s: float) -> None:
        try:
            opened = open_session(self._hub, self, connect, self._outbox, now_s)
        except NotAllowed:
            self._refuse_connect(Reason.NOT_AUTHORIZED)
            return
        except PenstockError:
            self._refuse_connect(Reason.SERVER_UNAVAILABLE)
            return
        self._opened = opened
        self.settled = True
        self.who = opened.session.client
        self.patience_s = PATIENCE * opened.keep_alive_s
        self._subscribing = Subscribing(
            self._hub, opened.session, self._outbox, connect.version, opened.outbound
        )
        self._hub.system.listeners[self] = None

    def _leave(self, packet: Disconnect, opened: OpenedConnection) -> None:
        expiry_s = number(packet.properties, Property.SESSION_EXPIRY_INTERVAL)
        if expiry_s is not None:
            assert self._connect is not None, "it is open"
            asked = number(self._connect.properties, Property.SESSION_EXPIRY_INTERVAL)
            if expiry_s and not asked:
                text = "DISCONNECT gives a session time that had none"
                raise Malformed(Reason.PROTOCOL_ERROR, text)
            if (
                opened.session.expiry_s != 0
            ):  # CONNACK may have said that it is not kept
                opened.session.expiry_s = self._hub.expiry(expiry_s)
                self._hub.broker.sessions.changed(opened.session)
        # MQTT-3.14.4-3
        self._will = (
            packet.reason == Reason.DISCONNECT_WITH_WILL or packet.reason >= 0x80
        )
        self.closing = True

    def _give_up(self, opened: OpenedConnection) -> None:
        """What waits for its turn has none any more; but a last word counts."""
        held, self._held, self._work = self._held, (), None
        if self._subscribing is not None:
            self._subscribing.leave()
        for packet in held:
            if isinstance(packet, Disconnect) and not self.closing:
                with suppress(Malformed):
                    self._leave(packet, opened)

    def lost(self) -> bytes:
        """The write of what was to be acknowledged failed: the client shall repeat."""
        self.closing = True
        if self._last_word is None:
            properties: Properties = {
                Property.REASON_STRING: "not stored: the write failed, send it again"
            }
            five = self._parser.version == 5
            self._last_word = (
                disconnect(Reason.QUOTA_EXCEEDED, properties) if five else b""
            )
        return self._last_word

    def _failed(self, error: PenstockError) -> None:
        """A packet was not carried out; what comes behind it is not, either."""
        if self.closing:
            return
        if isinstance(error, Malformed):
            self._violated(error)
        else:
            # The broker cannot do it now: not acknowledged, so it comes again.
            self._bye(Reason.QUOTA_EXCEEDED, error.for_client)

    def _violated(self, error: Malformed) -> None:
        if self._opened is not None:
            self._bye(error.reason, error.text)
        elif self._parser.version:
            self._refuse_connect(error.reason)
        else:
            self.closing = True

    def _put_off(self, error: PenstockError) -> None:
        """The client is not let in for now, and may try again later."""
        busy = isinstance(error, Busy)
        reason = Reason.SERVER_BUSY if busy else Reason.QUOTA_EXCEEDED
        if self._parser.version == 5:
            self._refuse_connect(reason, str(error))
        else:
            self._refuse_connect(Reason.SERVER_UNAVAILABLE)

    def _refuse_connect(self, reason: Reason, text: str = "") -> None:
        """MQTT-3.2.2-7: a refusal, and the connection is closed."""
        version = self._parser.version
        known = version == 5 or reason in (
            Reason.UNSUPPORTED_PROTOCOL_VERSION,
            Reason.CLIENT_IDENTIFIER_NOT_VALID,
            Reason.SERVER_UNAVAILABLE,
            Reason.BAD_USER_NAME_OR_PASSWORD,
            Reason.NOT_AUTHORIZED,
        )
        if known:  # MQTT-3.2.2-6 (3.1.1): otherwise nothing is said
            data = connack(version, reason, False, _reason_string(text))
            if text and not self._fits(data):  # MQTT-3.2.2-19
                data = connack(version, reason, False, {})
            self._outbox.now(data)
        self.closing = True

    def _fits(self, data: bytes) -> bool:
        """Whether the client takes so much at once."""
        connect = self._connect
        known = {} if connect is None else connect.properties
        most = number(known, Property.MAXIMUM_PACKET_SIZE)
        return most is None or len(data) <= most

    def _bye(self, reason: Reason, text: str = "") -> None:
        """End the connection for a reason of ours: version 5 is told, MQTT-4.13.1-1."""
        opened = self._opened
        if opened is not None and self._parser.version == 5:
            data = disconnect(reason, _reason_string(text))
            if not opened.outbound.writer.allows(data):  # MQTT-3.14.2-3
                data = disconnect(reason, {})
            self._outbox.now(data)
        self.closing = True


def _went_on(work: Iterator[None]) -> Iterator[None] | None:
    """Do a piece of it; what is left, if anything is."""
    for _ in work:
        return work
    return None


def _reason_string(text: str) -> Properties:
    return {Property.REASON_STRING: text} if text else {}
