"""Sessions that share a subscription, over crashes.

Whoever is in the group: with QoS 1 every message reaches one of them at least, and with
QoS 2 one of them exactly once, as long as all of them come back (MQTT-4.8.2-4).
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.torture.mqtt_session import SessionClient
from tests.properties.mqtt_world import World

GROUP = "$share/g/a/#"
TOPICS = ["a", "a/b"]
MEMBERS = 3
WHO = st.integers(0, MEMBERS - 1)


class SharedMachine(RuleBasedStateMachine):
    @initialize(qos=st.sampled_from([1, 2]))
    def everybody_joins(self, qos: int) -> None:
        self.qos = qos
        self.members = [
            SessionClient(f"member {number}", qos=qos, version=5, window=number)
            for number in range(MEMBERS)
        ]
        self.writer = SessionClient("writer")
        self.numbers = count()
        self.world = World([*self.members, self.writer])
        for client in self.world.clients:
            self.world.connect(client)
        for member in self.members:
            member.subscribe(GROUP)
        self.world.settle()

    @rule(who=WHO)
    def come(self, who: int) -> None:
        if self.members[who] not in self.world.lines:
            self.world.connect(self.members[who])

    @rule(who=WHO, heard=st.booleans())
    def go(self, who: int, *, heard: bool) -> None:
        self.world.drop(self.members[who], heard=heard)
        self.world.pump()

    @rule(topic=st.sampled_from(TOPICS), many=st.integers(1, 4))
    def publish(self, topic: str, many: int) -> None:
        for _ in range(many):
            self.writer.publish(topic, b"%d" % next(self.numbers), 2)
        if self.writer not in self.world.lines:
            self.world.connect(self.writer)
        self.world.carry(self.writer)

    @rule(who=WHO, part=st.none() | st.integers(1, 60))
    def read(self, who: int, part: int | None) -> None:
        self.world.read(self.members[who], part)

    @rule(who=WHO, part=st.none() | st.integers(1, 3))
    def answer(self, who: int, part: int | None) -> None:
        self.members[who].answer(part)
        self.world.carry(self.members[who])

    @rule()
    def commit(self) -> None:
        self.world.commit()
        self.world.read(self.writer)
        self.world.carry(self.writer)

    @rule()
    def fail_commit(self) -> None:
        self.world.fail_commit()

    @rule(seed=st.integers(0, 2**32), calls=st.none() | st.integers(1, 12))
    def crash(self, seed: int, calls: int | None) -> None:
        self.world.crash(Random(seed), calls=calls)

    @rule()
    def settle(self) -> None:
        self.world.settle()
        self.check()

    @invariant()
    def nothing_of_qos_2_reaches_two(self) -> None:
        if hasattr(self, "members") and self.qos == 2:
            twice = {one for one, copies in self.copies().items() if copies > 1}
            assert not twice, f"{twice} reached more than one"

    def copies(self) -> Counter[bytes]:
        return Counter(one.payload for each in self.members for one in each.got)

    def check(self) -> None:
        stored = {one for each in self.world.stored().values() for one in each}
        assert stored >= self.writer.confirmed
        missing = stored - self.copies().keys()
        assert not missing, f"{missing} reached nobody"

    def teardown(self) -> None:
        if hasattr(self, "members"):
            self.world.settle()
            self.check()


TestSharedSessions = SharedMachine.TestCase
