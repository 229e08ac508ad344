"""Publishes as a client gets them: its version, its topic aliases, its limits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from penstock.delivery.pages import Page
from penstock.gateway.mqtt.system import PacketCounts
from penstock.wire.mqtt import (
    NO_PROPERTIES,
    Properties,
    Property,
    render_properties,
    render_publishes,
)

PublishMark = int | list[int]
"""On an answer: publishes that it is the last word on; or ids that it releases."""

# What a topic alias adds to a packet; the length may need a byte more.
ALIAS_BYTES = 4


class Form(msgspec.Struct, frozen=True, gc=False):
    """What packets of one run have in common."""

    topic: str
    qos: int
    retain: bool
    properties: Properties | None
    """None before version 5."""


class PacketWriter:
    __slots__ = ("_alias_limit", "_aliases", "_counts", "max_packet", "version")

    def __init__(
        self,
        version: int,
        *,
        aliases: int,
        max_packet: int | None,
        counts: PacketCounts,
    ) -> None:
        self.version = version
        self.max_packet = max_packet
        """The largest packet that the client takes."""
        self._alias_limit = aliases
        self._aliases: dict[str, int] = {}
        self._counts = counts

    def publishes(
        self,
        form: Form,
        payloads: Sequence[bytes],
        ids: Sequence[int] | None = None,
        *,
        dup: bool = False,
        held: bool = False,
    ) -> bytes:
        """A run of packets; a topic alias stands for the topic where there is one.

        ``held``: others may leave before, so they say nothing that those would need.
        """
        self._counts.messages_out += len(payloads)
        properties = form.properties
        if properties is None or not self._alias_limit:
            return _rendered(form, payloads, ids, dup=dup)
        alias = self._aliases.get(form.topic)
        first = b""
        if alias is None:
            if held or len(self._aliases) >= self._alias_limit:
                return _rendered(form, payloads, ids, dup=dup)
            alias = self._aliases[form.topic] = len(self._aliases) + 1
            named = replace(
                form, properties={**properties, Property.TOPIC_ALIAS: alias}
            )
            first = _rendered(
                named, payloads[:1], None if ids is None else ids[:1], dup=dup
            )
            payloads, ids = payloads[1:], None if ids is None else ids[1:]
            if not payloads:
                return first
        short = replace(
            form, topic="", properties={**properties, Property.TOPIC_ALIAS: alias}
        )
        return first + _rendered(short, payloads, ids, dup=dup)

    def value(self, topic: str, payload: bytes, *, retain: bool) -> bytes:
        """One message with QoS 0 and nothing else to say."""
        form = Form(topic, 0, retain, {} if self.version == 5 else None)
        return self.publishes(form, [payload])

    def page(self, form: Form, page: Page) -> bytes:
        """A whole page with QoS 0: the same for all clients that get it like this."""
        if form.properties or (form.properties is not None and self._alias_limit):
            return self.publishes(form, page.payloads)
        key = f"mqtt {form.properties is None} {form.retain}"
        known = page.rendered.get(key)
        if known is None:
            known = page.rendered[key] = [_rendered(form, page.payloads, None)]
        self._counts.messages_out += len(page)
        return known[0]

    def fits(self, form: Form, payload: bytes) -> bool:
        """Whether the client takes a packet so large (MQTT-3.1.2-24)."""
        if self.max_packet is None:
            return True
        ids = [1] if form.qos else None
        alias = ALIAS_BYTES if self._alias_limit and form.properties is not None else 0
        return len(_rendered(form, [payload], ids)) + alias <= self.max_packet

    def allows(self, packet: bytes) -> bool:
        """Whether the client takes a packet so large."""
        return self.max_packet is None or len(packet) <= self.max_packet


def _rendered(
    form: Form,
    payloads: Sequence[bytes],
    ids: Sequence[int] | None,
    *,
    dup: bool = False,
) -> bytes:
    encoded: bytes | None = None
    if form.properties is not None:
        encoded = (
            render_properties(form.properties) if form.properties else NO_PROPERTIES
        )
    return render_publishes(
        form.topic.encode(),
        payloads,
        qos=form.qos,
        retain=form.retain,
        dup=dup,
        packet_ids=ids,
        properties=encoded,
    )
