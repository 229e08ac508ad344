"""Sessions over crashes, against what clients were promised and what they have got.

Nothing of QoS 1 is lost, nothing of QoS 2 is lost or doubled, what has one topic and
QoS keeps its order, and no packet id stands for two messages at once. Clients see some
of that themselves: tests/interop/peers.py.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from penstock.delivery.packet_ids import PacketIds
from penstock.gateway.outbox import Outbox
from penstock.torture.mqtt_session import SessionClient, in_order
from tests.properties.mqtt_world import World

TOPICS = ["a", "a/b", "c"]
FILTERS = ["a", "a/b", "a/#", "+", "#"]
# Each is another kind of client: old or new, with or without a small window.
KINDS = [
    ("ann", 1, 4, 0),
    ("bob", 2, 5, 0),
    ("cleo", 2, 5, 2),
    ("dan", 1, 5, 1),
]
WHO = st.integers(0, len(KINDS) - 1)
# The first failure will do.
ANY = settings(max_examples=500, phases=[Phase.generate], database=None)


class SessionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clients = [
            SessionClient(name, qos=qos, version=version, window=window)
            for name, qos, version, window in KINDS
        ]
        self.world = World(self.clients)
        self.numbers = count()
        self.crashes = 0
        self.sent: dict[bytes, tuple[str, int]] = {}
        """Topic and QoS of everything that was published with an answer."""
        self.must: dict[str, set[bytes]] = {one.name: set() for one in self.clients}
        """What each has to get, as it had subscribed before it was published."""

    @initialize()
    def everybody_comes(self) -> None:
        for client in self.clients[:3]:
            self.world.connect(client)
            client.subscribe("a/#")
        for client in self.clients[:3]:
            self.world.carry(client)
        self.world.commit()
        for client in self.clients[:3]:
            self.world.read(client)

    # What clients do

    @rule(who=WHO)
    def come(self, who: int) -> None:
        client = self.clients[who]
        if client not in self.world.lines:
            self.world.connect(client)

    @rule(who=WHO, heard=st.booleans())
    def go(self, who: int, *, heard: bool) -> None:
        self.world.drop(self.clients[who], heard=heard)
        self.world.pump()

    @rule(who=WHO, filter_=st.sampled_from(FILTERS))
    def subscribe(self, who: int, filter_: str) -> None:
        client = self.clients[who]
        if not client.unsettled:
            client.subscribe(filter_)
            self.world.carry(client)

    @rule(who=WHO, filter_=st.sampled_from(FILTERS))
    def unsubscribe(self, who: int, filter_: str) -> None:
        client = self.clients[who]
        if client.unsettled:
            return
        client.unsubscribe(filter_)
        must = self.must[client.name]
        must -= {one for one in must if not client.hears(self.sent[one][0])}
        self.world.carry(client)

    @rule(
        who=WHO,
        topic=st.sampled_from(TOPICS),
        qos=st.sampled_from([0, 1, 2, 2]),
        many=st.integers(1, 3),
    )
    def publish(self, who: int, topic: str, qos: int, many: int) -> None:
        client = self.clients[who]
        for _ in range(many):
            payload = b"%d" % next(self.numbers)
            self.sent[payload] = topic, qos
            for other in self.clients:
                if other.hears(topic):
                    self.must[other.name].add(payload)
            client.publish(topic, payload, qos)
        self.world.carry(client)

    @rule(who=WHO, part=st.none() | st.integers(1, 60))
    def read(self, who: int, part: int | None) -> None:
        self.world.read(self.clients[who], part)

    @rule(who=WHO, part=st.none() | st.integers(1, 3))
    def answer(self, who: int, part: int | None) -> None:
        client = self.clients[who]
        client.answer(part)
        self.world.carry(client)

    @rule(who=WHO, room=st.sampled_from([1, 50, 1 << 20]))
    def carry(self, who: int, room: int) -> None:
        self.world.carry(self.clients[who], room)

    # What happens to the server

    @rule()
    def commit(self) -> None:
        self.world.commit()

    @rule()
    def fail_commit(self) -> None:
        self.world.fail_commit()

    @rule(seed=st.integers(0, 2**32), calls=st.none() | st.integers(1, 12))
    def crash(self, seed: int, calls: int | None) -> None:
        self.world.crash(Random(seed), calls=calls)
        self.crashes += 1
        self.check_stored()

    @rule()
    def restart(self) -> None:
        self.world.restart()
        self.check_stored()

    @rule()
    def settle(self) -> None:
        self.world.settle()
        self.check_everything()

    # What has to be so

    def check_stored(self) -> None:
        """What was confirmed is there, and nothing of QoS 2 twice."""
        stored = self.world.stored()
        known = Counter(one for payloads in stored.values() for one in payloads)
        for client in self.clients:
            lost = client.confirmed - known.keys()
            assert not lost, f"{client.name} was told that {lost} were stored"
        for payload, copies in known.items():
            topic, qos = self.sent[payload]
            assert payload in stored[topic]
            assert copies == 1 or qos == 1, f"{payload!r} is stored {copies} times"

    @invariant()
    def nothing_comes_too_often(self) -> None:
        for client in self.clients:
            copies = Counter(one.payload for one in client.got)
            for one in client.got:
                topic, qos = self.sent[one.payload]
                assert one.topic == topic
                assert one.qos == min(qos, client.qos)
                if one.qos != 1:
                    # What nobody answers for may come again after a crash: whether it
                    # was sent is not known.
                    most = 1 if one.qos else 1 + self.crashes
                    text = f"{client.name} has got {one.payload!r} too often"
                    assert copies[one.payload] <= most, text

    def check_everything(self) -> None:
        self.check_stored()
        stored = self.world.stored()
        for client in self.clients:
            got = {one.payload for one in client.got}
            there = {one for payloads in stored.values() for one in payloads}
            wanted = {
                one
                for one in self.must[client.name] & there
                if min(self.sent[one][1], client.qos)
            }
            assert wanted <= got, f"{client.name} has not got {wanted - got}"
            for topic in TOPICS:
                for qos in (1, 2):
                    self.check_order(client, topic, qos, stored.get(topic, []))

    def check_order(
        self, client: SessionClient, topic: str, qos: int, stored: list[bytes]
    ) -> None:
        mine = [
            one.payload for one in client.got if one.topic == topic and one.qos == qos
        ]
        assert in_order(mine, stored), f"{client.name} has got {mine} of {stored}"

    def teardown(self) -> None:
        self.world.settle()
        self.check_everything()


TestSessions = SessionMachine.TestCase


def test_a_server_that_forgets_ids_of_publishes_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or the machine would show nothing."""
    monkeypatch.setattr(PacketIds, "receive", lambda packet_ids, ids: None)

    with pytest.raises(AssertionError, match="stored 2 times"):
        run_state_machine_as_test(SessionMachine, settings=ANY)


def test_a_server_that_answers_before_the_disk_does_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def after(
        outbox: Outbox[int], group: int, data: bytes, lost: object = None, mark: int = 0
    ) -> None:
        outbox.now(data, mark)

    monkeypatch.setattr(Outbox, "after", after)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(SessionMachine, settings=ANY)
