"""Publishes as a client gets them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from penstock.delivery.pages import Page
from penstock.gateway.mqtt.system import PacketCounts
from penstock.gateway.mqtt.writing import Form, PacketWriter
from penstock.log import Columns
from penstock.wire.mqtt import ClientParser, Property, connack
from tests.unit.delivery.scene import Scene
from tests.unit.gateway.mqtt.scene import Message, messages

V3 = Form("t", 0, False, None)
V5 = Form("t", 0, False, {})


def writer(
    version: int = 5, *, aliases: int = 0, max_packet: int | None = None
) -> PacketWriter:
    return PacketWriter(
        version, aliases=aliases, max_packet=max_packet, counts=PacketCounts()
    )


def parsed(data: bytes, version: int = 5) -> list[Message]:
    parser = ClientParser(1 << 20, version)
    packets = parser.feed(connack(version, 0, False, {}) + data)
    assert parser.failed is None, parser.failed
    return messages(packets)


def page_of(*payloads: bytes) -> Page:
    scene = Scene()
    scene.broker.publish("t", Columns(list(payloads)))
    scene.commit()
    page = scene.broker.pages.at("t", 0)
    assert page is not None
    return page


@pytest.mark.parametrize(("version", "form"), [(4, V3), (5, V5)])
def test_a_run_is_one_packet_for_each_payload(version: int, form: Form) -> None:
    data = writer(version).publishes(replace(form, qos=1), [b"a", b"b"], [3, 4])

    found = parsed(data, version)

    assert [(one.payload, one.packet_id) for one in found] == [(b"a", 3), (b"b", 4)]


def test_an_alias_is_told_with_the_first_packet_and_stands_for_the_topic_then() -> None:
    one = writer(aliases=1)

    found = parsed(one.publishes(V5, [b"a", b"b"]) + one.publishes(V5, [b"c"]))

    assert [(one.topic, one.properties) for one in found] == [
        ("t", {Property.TOPIC_ALIAS: 1}),
        ("", {Property.TOPIC_ALIAS: 1}),
        ("", {Property.TOPIC_ALIAS: 1}),
    ]


def test_an_alias_keeps_packet_ids_with_their_payloads() -> None:
    data = writer(aliases=1).publishes(replace(V5, qos=2), [b"a", b"b"], [5, 9])

    assert [(one.payload, one.packet_id) for one in parsed(data)] == [
        (b"a", 5),
        (b"b", 9),
    ]


def test_topics_beyond_the_last_alias_are_said_in_full() -> None:
    one = writer(aliases=1)
    one.publishes(V5, [b"a"])

    (found,) = parsed(one.publishes(replace(V5, topic="u"), [b"b"]))

    assert (found.topic, found.properties) == ("u", None)


def test_before_version_5_there_are_no_aliases() -> None:
    (found,) = parsed(writer(4, aliases=9).publishes(V3, [b"a"]), 4)

    assert (found.topic, found.properties) == ("t", None)


def test_a_page_is_rendered_once_for_all_who_get_it_alike() -> None:
    page = page_of(b"a", b"b")

    first, second = writer(4).page(V3, page), writer(4).page(V3, page)

    assert first is second
    assert [one.payload for one in parsed(first, 4)] == [b"a", b"b"]


def test_a_page_differs_by_version_and_by_retain() -> None:
    page = page_of(b"a")
    forms = [V3, replace(V3, retain=True), V5, replace(V5, retain=True)]

    found = [
        parsed(writer(version).page(form, page), version)
        for version, form in zip((4, 4, 5, 5), forms, strict=True)
    ]

    assert [one.retain for (one,) in found] == [False, True, False, True]


def test_a_page_with_aliases_or_properties_is_for_one_client_alone() -> None:
    page = page_of(b"a", b"b")
    marked = replace(V5, properties={Property.CONTENT_TYPE: "x"})

    aliased = writer(aliases=1).page(V5, page)
    special = writer().page(marked, page)

    assert [one.topic for one in parsed(aliased)] == ["t", ""]
    assert [one.properties for one in parsed(special)] == [marked.properties] * 2
    assert not page.rendered


def test_what_was_sent_is_counted_in_every_way() -> None:
    counts = PacketCounts()
    one = PacketWriter(5, aliases=2, max_packet=None, counts=counts)

    one.publishes(V5, [b"a", b"b"])
    one.publishes(V5, [b"c"])
    one.page(V5, page_of(b"d"))
    PacketWriter(4, aliases=0, max_packet=None, counts=counts).page(
        V3, page_of(b"e", b"f")
    )

    assert counts.messages_out == 6


@pytest.mark.parametrize(
    ("limit", "size", "fits"),
    [(None, 1_000_000, True), (100, 10, True), (100, 100, False), (100, 95, False)],
)
def test_a_packet_larger_than_a_client_takes_does_not_fit(
    limit: int | None, size: int, *, fits: bool
) -> None:
    one = writer(max_packet=limit)

    assert one.fits(replace(V5, qos=1), bytes(size)) is fits


@pytest.mark.parametrize("size", range(80, 100))
def test_what_fits_is_never_larger_than_that_even_with_an_alias(size: int) -> None:
    one = writer(max_packet=100, aliases=5)
    form = Form("t", 1, False, {})

    if one.fits(form, bytes(size)):
        assert len(one.publishes(form, [bytes(size)], [1])) <= 100
        assert len(one.publishes(form, [bytes(size)], [1])) <= 100
