"""What clients publish: into topics, and answered when it is on disk.

Small publishes are stored with those of other connections when the group closes
(broker/gathering.py); whatever has to come behind them has that done first.

QoS 0 is not answered and not synced for. QoS 1 is acknowledged, and QoS 2
received, when its group is committed. The id of a QoS 2 publish is kept, in the same
group as its event, until its PUBREL: whatever comes under that id before is the same
message again (MQTT-4.3.3-10).

A message that a topic does not take is refused with a reason (version 5). Older clients
have no word for that: it is acknowledged and kept as a dead letter, or the client would
send it for ever. What exceeds a user's quota is not kept: the client keeps it, and is
disconnected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from penstock.access.grants import Grants
from penstock.broker.gathering import GatheringPublisher, SmallPublish, is_small
from penstock.broker.publishing import Accepted, StoredPiece
from penstock.errors import (
    BeingDeleted,
    InvalidBatch,
    InvalidName,
    InvalidPayload,
    LimitReached,
    NotAllowed,
    PenstockError,
    QuotaReached,
    ReservedName,
)
from penstock.gateway.mqtt.headers import (
    common,
    fields_of,
    messages,
    to_headers,
)
from penstock.gateway.mqtt.hub import MqttHub, publish
from penstock.gateway.mqtt.writing import PacketWriter, PublishMark
from penstock.gateway.outbox import Outbox
from penstock.sessions import Session
from penstock.wire.mqtt import (
    Malformed,
    PacketKind,
    Properties,
    Property,
    Publishes,
    Reason,
    number,
    render_ack,
    render_acks,
    user_properties,
)

# What a refusal is called in an acknowledgement of version 5.
REASONS: dict[type[PenstockError], Reason] = {
    NotAllowed: Reason.NOT_AUTHORIZED,
    ReservedName: Reason.TOPIC_NAME_INVALID,
    InvalidName: Reason.TOPIC_NAME_INVALID,
    InvalidPayload: Reason.PAYLOAD_FORMAT_INVALID,
    InvalidBatch: Reason.IMPLEMENTATION_SPECIFIC_ERROR,
    BeingDeleted: Reason.IMPLEMENTATION_SPECIFIC_ERROR,
    LimitReached: Reason.QUOTA_EXCEEDED,
}
_NO_FIELDS: Mapping[str, object] = {}
# Those that say all there is to say.
PLAIN_REASONS = (Reason.NOT_AUTHORIZED, Reason.TOPIC_NAME_INVALID)


class Gathered(msgspec.Struct, frozen=True, gc=False):
    """A run of publishes that is to be stored with those of other connections."""

    packet: Publishes
    ids: list[int]
    """Of QoS 2, none of which is known."""


class PublishingConnection(GatheringPublisher, Protocol):
    """The connection, as far as its publishing half needs it."""

    def lost(self) -> bytes:
        """The last word, as a write of what was to be acknowledged has failed."""


class Inbound:
    """The publishing half of a connection."""

    __slots__ = (
        "_aliases",
        "_explains",
        "_gathered",
        "_gathered_ids",
        "_hub",
        "_lost",
        "_outbox",
        "_publisher",
        "_session",
        "_unanswered",
        "_version",
        "_writer",
    )

    def __init__(
        self,
        hub: MqttHub,
        session: Session,
        outbox: Outbox[PublishMark],
        writer: PacketWriter,
        publisher: PublishingConnection,
        *,
        explains: bool,
    ) -> None:
        self._hub = hub
        self._session = session
        self._outbox = outbox
        self._writer = writer
        self._version = writer.version
        self._publisher = publisher
        self._lost = publisher.lost
        self._explains = explains
        """Whether the client wants to be told why, beyond a reason code."""
        self._aliases: dict[int, str] = {}
        self._unanswered = 0
        self._gathered = 0
        """How many runs are gathered and not stored."""
        self._gathered_ids: set[int] = set()
        """Those of them with QoS 2."""

    def publish(self, packet: Publishes, grants: Grants, now_s: float) -> None:
        """Take in a run of publishes; raises Malformed if the client has to go."""
        self._hub.system.counts.messages_in += len(packet.payloads)
        if packet.packet_ids:
            self._check_room(len(packet.packet_ids))
        topic = self._topic(packet) if packet.properties else packet.topic
        if not self._gather(topic, packet, grants, now_s):
            self.store()
            self._take(topic, packet, grants, now_s)

    # Publishes that go with those of others

    def store(self) -> None:
        """Have stored what was gathered: something comes behind it."""
        if self._gathered:
            self._hub.broker.gathering.store()

    def _gather(
        self, topic: str, packet: Publishes, grants: Grants, now_s: float
    ) -> bool:
        """Lay a run beside those of others, if it is small and nothing special."""
        broker, payloads, ids = self._hub.broker, packet.payloads, packet.packet_ids
        if (
            packet.retain
            or broker.accounts.payer is not None
            or not broker.sessions.routes.is_led(topic)
            or not grants.may_publish(topic)
        ):
            return False
        twice = packet.qos == 2
        if twice:
            known, waiting = self._session.packet_ids.received, self._gathered_ids
            assert ids is not None, "QoS 2 has ids"
            if len(ids) > 1 and len(set(ids)) < len(ids):
                return False
            if not (known.isdisjoint(ids) and waiting.isdisjoint(ids)):
                return False
        headers, fields = self._said(packet, int(now_s * 1000))
        if fields or not is_small(payloads, headers):
            return False
        if twice:
            self._gathered_ids.update(ids or ())
        self._gathered += 1
        broker.gathering.add(
            SmallPublish(
                self._publisher,
                Gathered(packet, ids or []),
                topic,
                payloads,
                int(now_s * 1000),
                self._session.producer,
                headers,
                relaxed=not packet.qos,
                noted=twice,
            )
        )
        return True

    def in_group(self, said: Gathered, events: Sequence[int]) -> None:
        """Publishes of QoS 2 are stored: so are their ids."""
        received = [said.ids[number] for number in events]
        self._hub.broker.sessions.received(self._session, received)

    def stored(
        self, said: Gathered, group: int, refused: Mapping[int, PenstockError]
    ) -> None:
        """Answer what was gathered; raises what ``publish`` raises."""
        self._gathered -= 1
        if said.packet.qos == 2:
            self._gathered_ids.difference_update(said.ids)
        self._answer(said.packet, said.ids, group, refused)

    # The others

    def _take(
        self, topic: str, packet: Publishes, grants: Grants, now_s: float
    ) -> None:
        payloads, ids = packet.payloads, packet.packet_ids or []
        if packet.qos == 2:
            known = self._session.packet_ids.received
            if not known.isdisjoint(ids) or len(set(ids)) < len(ids):
                payloads, ids = _new(packet, known)
        refused: dict[int, PenstockError] = {}
        group = self._hub.broker.promised
        if payloads:
            try:
                grants.check_publish(topic)
                outcome = self._store(topic, packet, payloads, ids, now_s)
                group, refused = outcome.group or group, outcome.refused
            except PenstockError as error:
                refused = dict.fromkeys(range(len(payloads)), error)
        self._answer(packet, ids, group, refused)

    def _answer(
        self,
        packet: Publishes,
        ids: list[int],
        group: int,
        refused: Mapping[int, PenstockError],
    ) -> None:
        """``ids`` are those that are new."""
        if not refused:
            self._taken(packet, ids, group)
        elif len(packet.payloads) == 1:
            self._refuse(packet, ids, refused[0])
        else:
            self._one_by_one(packet, ids, refused, group)

    def _one_by_one(
        self,
        packet: Publishes,
        ids: list[int],
        refused: Mapping[int, PenstockError],
        group: int,
    ) -> None:
        """Answer a run of which some are refused; ``ids`` are those that are new."""
        trouble = next((e for e in refused.values() if _reason(e) is None), None)
        if trouble is not None:
            raise trouble  # the broker is in trouble, not the messages
        places = {id_: place for place, id_ in enumerate(ids)}
        left = set(ids)
        for at, one in enumerate(_singles(packet)):
            mine, new = one.packet_ids or [], True
            place: int | None = at
            if packet.qos == 2:  # others are all new, and stand at their places
                place, new = places.get(mine[0]), mine[0] in left
                left.discard(mine[0])
            error = None if place is None else refused.get(place)
            if error is None or not (new or self._version == 5):
                self._taken(one, mine if new else [], group)
            else:
                self._refuse(one, mine, error)

    def _taken(self, packet: Publishes, new: list[int], group: int) -> None:
        """Acknowledge publishes; those that are not new were stored before."""
        if packet.qos == 2:
            self._unanswered -= len(packet.payloads) - len(new)
        self._acknowledge(packet, group)

    def release(self, ids: list[int]) -> None:
        """PUBREL: these ids may be used for other messages now."""
        if self._gathered_ids:  # its PUBLISH may be among them: it is early
            self.store()
        known = self._hub.broker.sessions.completed(self._session, ids)
        if self._version == 5 and len(known) < len(ids):
            found = set(known)
            answer = b"".join(
                render_acks(PacketKind.PUBCOMP, [id_])
                if id_ in found
                else render_ack(
                    PacketKind.PUBCOMP, id_, Reason.PACKET_IDENTIFIER_NOT_FOUND, {}, 5
                )
                for id_ in ids
            )
        else:
            answer = render_acks(PacketKind.PUBCOMP, ids)
        self._promise(answer, len(known))

    def answered(self, count: int) -> None:
        """So many publishes were answered."""
        self._unanswered -= count

    def _check_room(self, count: int) -> None:
        """MQTT-3.3.4-9: more at once than the client was told."""
        self._unanswered += count
        most = self._hub.options.receive_maximum
        if self._version == 5 and self._unanswered > most:
            text = f"{self._unanswered} publishes unanswered, limit {most}"
            raise Malformed(Reason.RECEIVE_MAXIMUM_EXCEEDED, text)

    def _topic(self, packet: Publishes) -> str:
        alias = number(packet.properties or {}, Property.TOPIC_ALIAS)
        if alias is None:
            return packet.topic
        most = self._hub.options.topic_alias_maximum
        if alias > most:  # MQTT-3.3.2-9
            text = f"topic alias is {alias}, limit {most}"
            raise Malformed(Reason.TOPIC_ALIAS_INVALID, text)
        if packet.topic:
            self._aliases[alias] = packet.topic
            return packet.topic
        known = self._aliases.get(alias)
        if known is None:
            text = f"topic alias {alias} stands for nothing yet"
            raise Malformed(Reason.PROTOCOL_ERROR, text)
        return known

    def _store(
        self,
        topic: str,
        packet: Publishes,
        payloads: list[bytes],
        ids: list[int],
        now_s: float,
    ) -> Accepted:
        qos, now_ms = packet.qos, int(now_s * 1000)
        headers, fields = self._said(packet, now_ms)
        producer = self._session.producer
        events = messages(payloads, now_ms, producer, headers, fields)
        broker = self._hub.broker

        def stored(piece: StoredPiece) -> None:
            # In the group of the events, whatever becomes of the rest of the run.
            broker.sessions.received(self._session, [ids[unit] for unit in piece.units])

        outcome = publish(
            broker,
            topic,
            events,
            retain=packet.retain,
            relaxed=not qos,
            stored=stored if qos == 2 else None,
        )
        broker.sessions.routes.lead(topic)
        return outcome

    def _said(
        self, packet: Publishes, now_ms: int
    ) -> tuple[Mapping[str, str], Mapping[str, object]]:
        """What a run says beside its payloads: as headers, and as fields."""
        properties = packet.properties
        if not properties:
            return common(packet.qos, retain=packet.retain), _NO_FIELDS
        headers = to_headers(properties, packet.qos, retain=packet.retain)
        lifetime_s = number(properties, Property.MESSAGE_EXPIRY_INTERVAL)
        return headers, fields_of(user_properties(properties), lifetime_s, now_ms)

    def _acknowledge(self, packet: Publishes, group: int) -> None:
        if not packet.packet_ids:
            return
        kind = PacketKind.PUBACK if packet.qos == 1 else PacketKind.PUBREC
        answered = len(packet.packet_ids) if packet.qos == 1 else 0
        data = render_acks(kind, packet.packet_ids)
        self._outbox.after(group, data, self._lost, answered)

    def _refuse(self, packet: Publishes, new: list[int], error: PenstockError) -> None:
        reason = _reason(error)
        if reason is None:
            raise error  # the broker is in trouble, not the message
        if not packet.packet_ids:
            return
        kind = PacketKind.PUBACK if packet.qos == 1 else PacketKind.PUBREC
        if self._version < 5 and isinstance(error, InvalidName):
            raise Malformed(reason, error.for_client)  # such a topic cannot be
        if self._version < 5 and isinstance(error, QuotaReached):
            raise error  # kept as a dead letter it would take the room all the same
        if self._version < 5:
            for payload in packet.payloads:
                self._keep(packet, payload, error)
            if packet.qos == 2:
                self._hub.broker.sessions.received(self._session, new)
            self._acknowledge(packet, self._hub.broker.promised)
            return
        properties: Properties = {}
        if reason not in PLAIN_REASONS:
            properties = self._explained(kind, reason, error.for_client)
        refused = set(new)
        answer = b"".join(
            render_ack(kind, id_, reason, properties, 5)
            if packet.qos == 1 or id_ in refused
            else render_acks(kind, [id_])
            for id_ in packet.packet_ids
        )
        # A QoS 2 publish that was refused is over (MQTT-4.3.3-9).
        over = len(packet.packet_ids) if packet.qos == 1 else len(new)
        self._outbox.after(self._hub.broker.promised, answer, self._lost, over)

    def _explained(self, kind: PacketKind, reason: Reason, text: str) -> Properties:
        """A text that says why, if the client wants one and can take it."""
        properties: Properties = {Property.REASON_STRING: text}
        if self._explains and self._writer.allows(
            render_ack(kind, 1, reason, properties, 5)
        ):
            return properties  # MQTT-3.1.2-29, MQTT-3.4.2-2, MQTT-3.5.2-2
        return {}

    def _keep(self, packet: Publishes, payload: bytes, error: PenstockError) -> None:
        """What an old client cannot be told of is not lost, unless it may not be."""
        if not isinstance(error, NotAllowed):
            reason = f"{packet.topic}: {error.for_client}"
            self._hub.broker.dead_letter(gateway="mqtt", reason=reason, raw=payload)

    def _promise(self, data: bytes, answered: int) -> None:
        if self._session.durable:
            self._outbox.after(self._hub.broker.promised, data, self._lost, answered)
        else:
            self._outbox.now(data, answered)


def _reason(error: PenstockError) -> Reason | None:
    for kind, reason in REASONS.items():
        if isinstance(error, kind):
            return reason
    return None


def _new(packet: Publishes, known: set[int]) -> tuple[list[bytes], list[int]]:
    """What was not received before."""
    assert packet.packet_ids is not None, "QoS 2 has ids"
    fresh: dict[int, bytes] = {}
    for id_, payload in zip(packet.packet_ids, packet.payloads, strict=True):
        if id_ not in known:
            fresh.setdefault(id_, payload)
    return list(fresh.values()), list(fresh)


def _singles(packet: Publishes) -> Iterator[Publishes]:
    """The publishes of a run, each for itself."""
    for at, payload in enumerate(packet.payloads):
        ids = None if packet.packet_ids is None else [packet.packet_ids[at]]
        yield replace(packet, payloads=[payload], packet_ids=ids)
