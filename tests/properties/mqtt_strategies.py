"""Packets of MQTT that are good, for every version and either side."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.wire.mqtt import (
    Ack,
    Acks,
    Auth,
    ClientPacket,
    Connack,
    Connect,
    Disconnect,
    PacketKind,
    Pingreq,
    Pingresp,
    Properties,
    Property,
    Publishes,
    Reason,
    RequestedFilter,
    ServerPacket,
    Suback,
    SubscribePacket,
    Unsuback,
    UnsubscribePacket,
    WillPacket,
    reasons,
)
from penstock.wire.mqtt.properties import PROPERTIES, WILL_PROPERTIES

two_bytes = st.integers(0, 0xFFFF)
four_bytes = st.integers(0, 0xFFFFFFFF)
packet_ids = st.integers(1, 0xFFFF)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
filters = texts.filter(bool)
topics = st.text(
    st.characters(codec="utf-8", exclude_characters="\0#+"), min_size=1, max_size=8
)
datas = st.binary(max_size=8)
identifiers = st.integers(1, 268_435_455)
switches = st.integers(0, 1)
# What each property may be; the others are one of these by their name below.
_VALUES: dict[Property, st.SearchStrategy] = {
    Property.PAYLOAD_FORMAT_INDICATOR: switches,
    Property.MESSAGE_EXPIRY_INTERVAL: four_bytes,
    Property.RESPONSE_TOPIC: topics,
    Property.CORRELATION_DATA: datas,
    Property.SUBSCRIPTION_IDENTIFIER: identifiers,
    Property.SESSION_EXPIRY_INTERVAL: four_bytes,
    Property.SERVER_KEEP_ALIVE: two_bytes,
    Property.AUTHENTICATION_DATA: datas,
    Property.REQUEST_PROBLEM_INFORMATION: switches,
    Property.WILL_DELAY_INTERVAL: four_bytes,
    Property.REQUEST_RESPONSE_INFORMATION: switches,
    Property.RECEIVE_MAXIMUM: packet_ids,
    Property.TOPIC_ALIAS_MAXIMUM: two_bytes,
    Property.TOPIC_ALIAS: packet_ids,
    Property.MAXIMUM_QOS: switches,
    Property.RETAIN_AVAILABLE: switches,
    Property.USER_PROPERTY: st.lists(st.tuples(texts, texts), min_size=1, max_size=3),
    Property.MAXIMUM_PACKET_SIZE: st.integers(1, 0xFFFFFFFF),
    Property.WILDCARD_SUBSCRIPTION_AVAILABLE: switches,
    Property.SUBSCRIPTION_IDENTIFIER_AVAILABLE: switches,
    Property.SHARED_SUBSCRIPTION_AVAILABLE: switches,
}


def _properties(
    version: int, allowed: frozenset[Property]
) -> st.SearchStrategy[Properties]:
    if version < 5:
        return st.just({})
    values = {name: _VALUES.get(name, texts) for name in sorted(allowed)}
    return st.fixed_dictionaries({}, optional=values).filter(_has_method)


def _has_method(properties: Properties) -> bool:
    """Authentication data comes with a method."""
    data = Property.AUTHENTICATION_DATA in properties
    return Property.AUTHENTICATION_METHOD in properties or not data


def connects(version: int) -> st.SearchStrategy[Connect]:
    wills = st.builds(
        WillPacket,
        topic=topics,
        payload=datas,
        qos=st.integers(0, 2),
        retain=st.booleans(),
        properties=_properties(version, WILL_PROPERTIES),
    )
    return st.builds(
        Connect,
        version=st.just(version),
        client_id=texts,
        clean_start=st.booleans(),
        keep_alive=two_bytes,
        user=st.none() | texts if version == 5 else texts,
        password=st.none() | datas,
        will=st.none() | wills,
        properties=_properties(version, PROPERTIES[PacketKind.CONNECT]),
    )


def _publishes(version: int, properties: frozenset[Property], many: bool):
    @st.composite
    def build(draw) -> Publishes:
        qos = draw(st.integers(0, 2))
        given = draw(_properties(version, properties)) or None
        if many and given and draw(st.booleans()):
            ids = draw(st.lists(identifiers, min_size=1, max_size=3))
            given[Property.SUBSCRIPTION_IDENTIFIER] = ids
        lengths = st.sampled_from((0, 3, 3, 3, 3, 130))
        size = st.integers(1, 1 if given else 20)
        count = draw(size)
        payloads = [b"x" * draw(lengths) for _ in range(count)]
        ids = st.lists(packet_ids, min_size=count, max_size=count)
        alias = given is not None and Property.TOPIC_ALIAS in given
        return Publishes(
            topic=draw(st.just("") | topics if alias else topics),
            qos=qos,
            retain=draw(st.booleans()),
            dup=bool(qos) and draw(st.booleans()),
            payloads=payloads,
            packet_ids=draw(ids) if qos else None,
            properties=given,
        )

    return build()


def _acks(version: int) -> st.SearchStrategy[Acks | Ack]:
    received = st.sampled_from((PacketKind.PUBACK, PacketKind.PUBREC))
    released = st.sampled_from((PacketKind.PUBREL, PacketKind.PUBCOMP))
    many = st.builds(
        Acks,
        kind=received | released,
        packet_ids=st.lists(packet_ids, min_size=1, max_size=20),
    )
    if version < 5:
        return many
    single = (
        st.builds(
            Ack,
            kind=kinds,
            packet_id=packet_ids,
            reason=st.sampled_from(sorted(allowed)),
            properties=_properties(5, PROPERTIES[PacketKind.PUBACK]),
        ).filter(lambda ack: ack.properties or ack.reason >= reasons.FIRST_FAILURE)
        for kinds, allowed in (
            (received, reasons.RECEIVED),
            (released, reasons.RELEASED),
        )
    )
    return st.one_of(many, *single)


def _wanted(version: int) -> st.SearchStrategy[RequestedFilter]:
    if version < 5:
        return st.tuples(filters, st.integers(0, 2)).map(
            lambda pair: RequestedFilter(*pair)
        )
    options = (st.integers(0, 2), st.booleans(), st.booleans(), st.integers(0, 2))
    return st.builds(RequestedFilter, filters, *options).filter(
        lambda wanted: not (wanted.no_local and wanted.filter.startswith("$share/"))
    )


def _told(version: int, kind: type, allowed: frozenset[Reason], where: set[Property]):
    if version < 5:
        return st.just(kind())
    return st.builds(
        kind,
        reason=st.sampled_from(sorted(allowed)),
        properties=_properties(version, frozenset(where)),
    )


def client_packets(version: int) -> st.SearchStrategy[ClientPacket]:
    """What a client may send behind CONNECT and before DISCONNECT."""
    message = PROPERTIES[PacketKind.PUBLISH] - {Property.SUBSCRIPTION_IDENTIFIER}
    packets: list[st.SearchStrategy] = [
        _publishes(version, message, False),
        _acks(version),
        st.builds(
            SubscribePacket,
            packet_id=packet_ids,
            filters=st.lists(_wanted(version), min_size=1, max_size=4),
            properties=_properties(version, PROPERTIES[PacketKind.SUBSCRIBE]),
        ),
        st.builds(
            UnsubscribePacket,
            packet_id=packet_ids,
            filters=st.lists(filters, min_size=1, max_size=4),
            properties=_properties(version, PROPERTIES[PacketKind.UNSUBSCRIBE]),
        ),
        st.just(Pingreq()),
    ]
    if version == 5:
        where = {*PROPERTIES[PacketKind.AUTH]}
        packets.append(_told(5, Auth, reasons.CLIENT_AUTH, where))
    return st.one_of(packets)


def client_disconnects(version: int) -> st.SearchStrategy[Disconnect]:
    where = {*PROPERTIES[PacketKind.DISCONNECT]} - {Property.SERVER_REFERENCE}
    return _told(version, Disconnect, reasons.CLIENT_DISCONNECT, where)


def connacks(version: int) -> st.SearchStrategy[Connack]:
    if version == 5:
        refused = st.sampled_from(sorted(reasons.CONNACK))
    else:
        refused = st.sampled_from(reasons.OLD_REASONS)
    properties = _properties(version, PROPERTIES[PacketKind.CONNACK])
    build = st.builds(
        Connack, session_present=st.just(False), reason=refused, properties=properties
    )
    present = st.booleans() if version > 3 else st.just(False)
    return build | st.builds(
        Connack, session_present=present, reason=st.just(0), properties=properties
    )


def server_packets(version: int) -> st.SearchStrategy[ServerPacket]:
    """What a server may send behind CONNACK and before DISCONNECT."""
    message = PROPERTIES[PacketKind.PUBLISH] - {Property.SUBSCRIPTION_IDENTIFIER}
    granted = reasons.SUBACK if version == 5 else frozenset((0, 1, 2, 0x80))
    left = st.sampled_from(sorted(reasons.UNSUBACK))
    packets: list[st.SearchStrategy] = [
        _publishes(version, message, version == 5),
        _acks(version),
        st.builds(
            Suback,
            packet_id=packet_ids,
            reasons=st.lists(st.sampled_from(sorted(granted)), max_size=4),
            properties=_properties(version, PROPERTIES[PacketKind.SUBACK]),
        ),
        st.builds(
            Unsuback,
            packet_id=packet_ids,
            reasons=st.lists(left, max_size=4) if version == 5 else st.just([]),
            properties=_properties(version, PROPERTIES[PacketKind.UNSUBACK]),
        ),
        st.just(Pingresp()),
    ]
    if version == 5:
        where = {*PROPERTIES[PacketKind.AUTH]}
        packets.append(_told(5, Auth, reasons.SERVER_AUTH, where))
    return st.one_of(packets)
