"""CONNECT: who may come in, which session is theirs, and what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import LimitReached, NotAllowed
from penstock.gateway.mqtt.headers import fields_of, to_headers
from penstock.gateway.mqtt.hub import MqttHub, subscriber_of
from penstock.gateway.mqtt.inbound import Inbound
from penstock.gateway.mqtt.outbound import Outbound
from penstock.gateway.mqtt.writing import PacketWriter, PublishMark
from penstock.gateway.outbox import Outbox
from penstock.model.printable import has_controls
from penstock.sessions import Session, Will
from penstock.wire.mqtt import (
    Connect,
    Properties,
    Property,
    Reason,
    WillPacket,
    connack,
    number,
    user_properties,
)

if TYPE_CHECKING:
    from penstock.gateway.mqtt.gateway import MqttGateway

# MQTT 3.1 allows no longer ones; clients of it have been seen with longer ones.
MOST = 0xFFFF


class OpenedConnection:
    """A connection whose client was let in."""

    __slots__ = ("inbound", "keep_alive_s", "outbound", "session", "waiting")

    def __init__(
        self,
        session: Session,
        inbound: Inbound,
        outbound: Outbound,
        keep_alive_s: int,
    ) -> None:
        self.session = session
        self.inbound = inbound
        self.outbound = outbound
        self.keep_alive_s = keep_alive_s
        self.waiting = True
        """Whether CONNACK has yet to go, in front of all else (MQTT-3.2.0-1)."""


def refusal(
    connect: Connect, *, authenticate: bool, controls: bool = True
) -> Reason | None:
    """Why a client may not come in, before a password is looked at.

    ``controls``: names may have control characters.
    """
    if Property.AUTHENTICATION_METHOD in connect.properties:
        return Reason.BAD_AUTHENTICATION_METHOD  # MQTT-4.12.0-1
    if not connect.client_id and (
        connect.version == 3 or (connect.version == 4 and not connect.clean_start)
    ):
        return Reason.CLIENT_IDENTIFIER_NOT_VALID  # MQTT-3.1.3-8 (3.1.1)
    if not controls and has_controls(connect.client_id):  # MAY, by 1.5.4
        return Reason.CLIENT_IDENTIFIER_NOT_VALID
    will = connect.will
    if not controls and will is not None and has_controls(will.topic):
        return Reason.TOPIC_NAME_INVALID
    if authenticate and (connect.user is None or connect.password is None):
        return Reason.NOT_AUTHORIZED
    return None


def open_session(
    hub: MqttHub,
    gateway: MqttGateway,
    connect: Connect,
    outbox: Outbox[PublishMark],
    now_s: float,
) -> OpenedConnection:
    """Let a client in; raises LimitReached, NotAllowed."""
    if connect.will is not None:
        gateway.grants.check_publish(connect.will.topic)
    properties: Properties = {}
    client = connect.client_id
    if not client:
        client = hub.assigned_id()
        properties[Property.ASSIGNED_CLIENT_IDENTIFIER] = client  # MQTT-3.2.2-16
    user = gateway.grants.user
    hub.expire(client, now_s)
    known = hub.broker.sessions.get(client)
    if known is not None and known.user != user:
        if not hub.is_left(known, gateway.grants):
            raise NotAllowed(user, "take the session of", client)
        hub.end(known)
        known = None
    made_up = subscriber_of(client) is None and client == connect.client_id
    if made_up and known is None and gateway.grants.rules is not None:
        raise NotAllowed(user, "begin a session as", client)
    name = subscriber_of(client)
    kept = gateway.grants.may_keep(name)
    session, present = _session(hub, connect, client, properties, now_s, kept=kept)
    session.user = user
    may = gateway.grants.may_subscribe
    if gone := [
        one for one in session.topic_filters if not may(one, name)
    ]:  # not any more
        for _ in hub.broker.sessions.unsubscribe_all(session, gone):
            pass
        hub.broker.sessions.routes.drop_retained(session)
    session.will = None if connect.will is None else _will(connect.will)
    sessions = hub.broker.sessions
    sessions.attach(session, gateway)
    keep_alive_s = _keep_alive(hub, connect, properties)
    window = number(connect.properties, Property.RECEIVE_MAXIMUM) or MOST
    aliases = number(connect.properties, Property.TOPIC_ALIAS_MAXIMUM) or 0
    writer = PacketWriter(
        connect.version,
        aliases=min(aliases, hub.options.send_aliases),
        max_packet=number(connect.properties, Property.MAXIMUM_PACKET_SIZE),
        counts=hub.system.counts,
    )
    outbound = Outbound(hub, session, outbox, writer, min(window, hub.options.window))
    _tell_limits(hub, properties)
    answer = connack(connect.version, Reason.SUCCESS, present, properties)
    if session.durable:
        outbox.after(hub.broker.promised, answer)
    else:
        outbox.now(answer)
    outbound.resume()
    asked = number(connect.properties, Property.REQUEST_PROBLEM_INFORMATION)
    inbound = Inbound(hub, session, outbox, writer, gateway, explains=asked != 0)
    return OpenedConnection(session, inbound, outbound, keep_alive_s)


def _session(
    hub: MqttHub,
    connect: Connect,
    client: str,
    properties: Properties,
    now_s: float,
    *,
    kept: bool,
) -> tuple[Session, bool]:
    """The session, and whether it was there; ``kept``: it may outlive connections."""
    sessions = hub.broker.sessions
    if connect.version == 5:
        asked = number(connect.properties, Property.SESSION_EXPIRY_INTERVAL) or 0
        expiry_s = hub.expiry(asked) if kept else 0.0
        if asked and expiry_s is not None and expiry_s != asked:
            properties[Property.SESSION_EXPIRY_INTERVAL] = int(expiry_s)
    else:
        lasting = kept and not connect.clean_start
        expiry_s = hub.expiry(0xFFFFFFFF) if lasting else 0.0
    known = sessions.get(client)
    if known is not None and (other := hub.connected(known)) is not None:
        other.taken_over(now_s)
        known = sessions.get(client)
    if known is not None and connect.clean_start:
        hub.end(known)  # MQTT-3.1.2-4
        known = None
    if known is None and len(sessions) >= hub.options.max_clients:
        raise LimitReached("sessions", hub.options.max_clients, "max_clients")
    return sessions.open(client, clean=connect.clean_start, expiry_s=expiry_s)


def _will(packet: WillPacket) -> Will:
    properties = packet.properties
    delay_s = number(properties, Property.WILL_DELAY_INTERVAL) or 0
    lifetime_s = number(properties, Property.MESSAGE_EXPIRY_INTERVAL)
    headers = to_headers(properties, packet.qos, retain=packet.retain)
    fields = fields_of(user_properties(properties), None, 0)
    return Will(
        packet.topic,
        packet.payload,
        packet.qos,
        packet.retain,
        headers,
        float(delay_s),
        None if lifetime_s is None else float(lifetime_s),
        fields.get("priorities", 0),
    )


def _keep_alive(hub: MqttHub, connect: Connect, properties: Properties) -> int:
    """The silence that is put up with; 0 for any (MQTT-3.2.2-21)."""
    most = hub.options.max_keep_alive_s
    asked = connect.keep_alive
    if most and (not asked or asked > most) and connect.version == 5:
        properties[Property.SERVER_KEEP_ALIVE] = most
        return most
    return asked


def _tell_limits(hub: MqttHub, properties: Properties) -> None:
    options = hub.options
    if options.receive_maximum < MOST:
        properties[Property.RECEIVE_MAXIMUM] = options.receive_maximum
    if options.topic_alias_maximum:
        properties[Property.TOPIC_ALIAS_MAXIMUM] = options.topic_alias_maximum
    properties[Property.MAXIMUM_PACKET_SIZE] = options.max_packet_bytes
