"""Chapter 4.7: names of topics and filters."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off
from tests.conformance.packets import SUBACK, TOPIC_ALIAS, TopicFilter
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311

BAD = ["a/b#", "a/#/b", "#/", "##", "a/##", "a+", "+a", "a/+b/c", "++", "a/#+"]


@pytest.mark.parametrize("filter", BAD)
@statement("MQTT-4.7.1-1", "MQTT-4.7.1-2")
@statement311("MQTT-4.7.1-2", "MQTT-4.7.1-3")
def test_a_filter_with_a_wildcard_in_the_wrong_place_is_refused(
    join: Join, version: int, filter: str
) -> None:
    refuse_filter(join, version, filter)


@statement("MQTT-4.7.3-1")
@statement311("MQTT-4.7.3-1")
def test_an_empty_filter_is_refused(join: Join, version: int) -> None:
    refuse_filter(join, version, "")


@statement("MQTT-4.7.3-1")
@statement311("MQTT-4.7.3-1")
def test_an_empty_topic_ends_the_connection(join: Join, version: int) -> None:
    peer = join(version)

    peer.send(packets.publish("", version=version))

    broken_off(peer, 0x81, 0x82, 0x90)


def refuse_filter(join: Join, version: int, filter: str) -> None:
    """One filter of a SUBSCRIBE is refused, or the connection is ended."""
    peer = join(version)

    peer.send(
        packets.subscribe(1, [TopicFilter(filter=filter, qos=1)], version=version)
    )

    peer.send(packets.disconnect(version=version))
    said = peer.closed()
    if said and said[0].kind == SUBACK:
        assert said.pop(0).reasons == [0x8F if version == 5 else 0x80]
    assert all(one.reason in (0x81, 0x82, 0x8F) for one in said)


MATCHES = [
    ("a/b/c", "a/b/c", True),
    ("a/b/c", "a/b", False),
    ("a/b", "a/b/", False),
    ("a/b", "A/b", False),
    ("a/#", "a", True),
    ("a/#", "a/", True),
    ("a/#", "a/b/c", True),
    ("a/#", "ab", False),
    ("a/+", "a", False),
    ("a/+", "a/", True),
    ("a/+", "a/b", True),
    ("a/+", "a/b/c", False),
    ("a/+/c", "a//c", True),
    ("a/+/+", "a/b/c", True),
    ("a/+/#", "a/b", True),
    ("a/+/#", "a", False),
    ("a//c", "a//c", True),
    ("a//c", "a/c", False),
    ("a/b c/\u00e9", "a/b c/\u00e9", True),
    ("a/\u00e9", "a/e\u0301", False),
    ("a/ ", "a/", False),
]


@pytest.mark.parametrize(("filter", "name", "fits"), MATCHES)
@statement("MQTT-4.7.3-4", "MQTT-4.7.1-2", "MQTT-4.7.1-1", "MQTT-3.3.2-3")
@statement311("MQTT-4.7.3-4", "MQTT-4.7.1-2", "MQTT-4.7.1-3", "MQTT-3.3.2-3")
def test_a_filter_matches_as_it_is_written(
    join: Join, version: int, topic: str, filter: str, name: str, fits: bool
) -> None:
    peer = join(version)
    peer.subscribe(f"{topic}/{filter}", f"{topic}/{name}/end", qos=1)

    peer.publish(f"{topic}/{name}", b"x", qos=1)
    peer.publish(f"{topic}/{name}/end", b"end", qos=1)

    assert [one.payload for one in peer.until(b"end")] == [b"x"] * fits


@pytest.mark.parametrize(
    ("filter", "name", "fits"),
    [
        ("/+", "/{0}", True),
        ("+/+", "/{0}", True),
        ("+", "/{0}", False),
        ("/#", "/{0}", True),
        ("#", "/{0}", True),
        ("+", "{0}", True),
        ("+/{0}", "a/{0}", True),
    ],
)
@statement("MQTT-4.7.1-2", "MQTT-4.7.1-1")
@statement311("MQTT-4.7.1-2", "MQTT-4.7.1-3")
def test_a_leading_slash_makes_a_level(
    join: Join, version: int, topic: str, filter: str, name: str, fits: bool
) -> None:
    peer = join(version)
    peer.subscribe(filter.format(topic), f"{topic}/end", qos=1)

    peer.publish(name.format(topic), b"x", qos=1)
    peer.publish(f"{topic}/end", b"end", qos=1)

    assert {one.payload for one in peer.until(b"end")} == ({b"x"} if fits else set())


@pytest.mark.parametrize("filter", ["#", "+/{0}", "+/#"])
@statement("MQTT-4.7.2-1")
@statement311("MQTT-4.7.2-1")
def test_a_leading_wildcard_does_not_match_a_dollar(
    join: Join, version: int, topic: str, filter: str
) -> None:
    peer = join(version)
    peer.subscribe(filter.format(topic), qos=1)

    peer.publish(f"$own/{topic}", b"hidden")
    peer.publish(f"a/{topic}", b"end", qos=1)

    assert [one.topic for one in peer.until(b"end") if one.topic[0] == "$"] == []


@statement("MQTT-4.7.2-1")
@statement311("MQTT-4.7.2-1")
def test_statistics_of_the_server_are_found_by_their_name_alone(
    join: Join, version: int, topic: str
) -> None:
    peer, other = join(version), join(version)
    peer.subscribe("$SYS/#")
    other.subscribe("#")

    assert peer.receive().topic.startswith("$SYS/")
    other.publish(topic, b"end")
    assert [one for one in other.until(b"end") if one.topic[0] == "$"] == []


@statement("MQTT-4.7.3-3")
@statement311("MQTT-4.7.3-3")
def test_a_long_topic_is_passed_on_or_refused_as_such(
    join: Join, version: int, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(f"{topic}/#", qos=1)
    for size in (200, 1000, 65535):
        peer = join(version)
        name = f"{topic}/".ljust(size, "x")
        data = packets.publish(name, b"x", qos=1, packet_id=1, version=version)
        peer.send(data + packets.disconnect(version=version))
        answers = [one for one in peer.closed() if one.kind == packets.PUBACK]
        if answers and answers[0].reason < 0x80:
            assert watcher.receive().topic == name
        else:
            assert [one.reason for one in answers] in ([], [0x90], [0x97])


@statement("MQTT-4.7.0-1", "MQTT-4.7.3-1", "MQTT-4.13.1-1")
def test_an_empty_topic_with_an_alias_nobody_set_ends_the_connection(
    join: Join,
) -> None:
    peer = join()

    peer.send(packets.publish("", pairs=[(TOPIC_ALIAS, 1)]))

    broken_off(peer, 0x82, 0x94)
