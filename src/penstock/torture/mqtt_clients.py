"""MQTT clients of a load that remember what they were promised."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from penstock.log import Reader
from tests.mqtt_session import SessionClient, in_order
from tests.process.broker_load import Client

MAX_IN_FLIGHT = 40


class MqttClient(Client):
    """A client of the MQTT gateway that keeps its session over connections."""

    port = "mqtt"

    def __init__(self, name: str, *, qos: int, version: int, window: int = 0) -> None:
        super().__init__(name)
        self.session = SessionClient(name, qos=qos, version=version, window=window)
        self.out = self.session.out

    def opened(self) -> None:
        self.session.opened()

    def received(self, data: bytes) -> None:
        self.session.received(data)
        self.facts = len(self.session.confirmed) + len(self.session.got)

    def lost(self) -> None:
        self.session.lost()

    @property
    def idle(self) -> bool:
        return self.session.ready and self.session.idle

    def state(self) -> str:
        return f"{super().state()}, {self.session.state()}"


class MqttPublisher(MqttClient):
    """Publishes numbers, each again until it is answered."""

    def __init__(
        self, name: str, topics: list[str], random: Random, *, qos: int, version: int
    ) -> None:
        super().__init__(name, qos=qos, version=version)
        self.open = False
        self.sent: dict[bytes, str] = {}
        """Topics of all payloads."""
        self._qos = qos
        self._topics = topics
        self._random = random
        self._numbers = Counter[str]()

    def work(self) -> None:
        if not self.open or self.session.publishing > MAX_IN_FLIGHT // 2:
            return
        for _ in range(self._random.choice([1, 5, MAX_IN_FLIGHT // 2])):
            topic = self._random.choice(self._topics)
            self._numbers[topic] += 1
            payload = f"{self.name} {topic} {self._numbers[topic]}".encode()
            self.sent[payload] = topic
            retain = topic.startswith("state/")
            self.session.publish(topic, payload, self._qos, retain=retain)

    def check(self, truth: Truth) -> None:
        """What was confirmed is stored, in order, and with QoS 2 nothing twice."""
        stored = truth.copies
        lost = [one for one in self.session.confirmed if not stored[one]]
        assert not lost, f"{self.name}: {lost[:5]} of {len(lost)} are lost"
        if self._qos == 2:
            twice = [one for one in self.sent if stored[one] > 1]
            assert not twice, f"{self.name}: {twice[:5]} of {len(twice)} are doubled"
        for topic in self._topics:
            mine = [
                one
                for one in truth.topics.get(topic, [])
                if self.sent.get(one) == topic
            ]
            numbers = [number_of(one) for one in dict.fromkeys(mine)]
            assert numbers == sorted(numbers), f"{self.name}: order of {topic}"


class MqttConsumer(MqttClient):
    """Subscribes once and answers everything; now and then it breaks off."""

    def __init__(
        self,
        name: str,
        filter_: str,
        random: Random,
        *,
        qos: int,
        version: int,
        window: int = 0,
        drop_rate: float = 0.0,
    ) -> None:
        super().__init__(name, qos=qos, version=version, window=window)
        self._random = random
        self._drop_rate = drop_rate
        self.session.subscribe(filter_)

    @property
    def subscribed(self) -> bool:
        return bool(self.session.filters)

    def received(self, data: bytes) -> None:
        super().received(data)
        self.session.answer()
        self.drops_out = self._random.random() < self._drop_rate

    def missing(self, truth: Truth, filter_: str) -> set[bytes]:
        got = {one.payload for one in self.session.got}
        return set(truth.of(filter_)) - got

    def check(self, truth: Truth) -> None:
        """Everything once at least; exactly once where both sides have QoS 2."""
        copies = Counter(one.payload for one in self.session.got)
        for one in self.session.got:
            assert one.qos == min(self.session.qos, truth.qos(one.payload))
            if one.qos == 2:
                assert copies[one.payload] == 1, f"{self.name} got {one} twice"
        for topic, payloads in truth.topics.items():
            for qos in (1, 2):
                mine = [
                    one.payload
                    for one in self.session.got
                    if one.topic == topic and one.qos == qos
                ]
                assert in_order(mine, payloads), f"{self.name}: order of {topic}"


class Truth:
    """What is stored, read beside the server."""

    def __init__(self, data: Path, two: set[str]) -> None:
        self.topics: dict[str, list[bytes]] = {}
        self._two = two
        """Names of publishers with QoS 2."""
        with Reader.open(data) as reader:
            for topic in reader.topics():
                if not topic.startswith("$"):
                    self.topics[topic] = payloads_of(reader, topic)
        self.copies = Counter(one for all_ in self.topics.values() for one in all_)

    def qos(self, payload: bytes) -> int:
        return 2 if payload.decode().split(" ")[0] in self._two else 1

    def of(self, prefix: str) -> list[bytes]:
        """Everything in topics that begin like this."""
        return [
            one
            for topic, payloads in self.topics.items()
            if topic.startswith(prefix)
            for one in payloads
        ]


def payloads_of(reader: Reader, topic: str) -> list[bytes]:
    found: list[bytes] = []
    offset = 0
    while batches := reader.read(topic, offset):
        found += [one for batch in batches for one in batch.payloads()]
        offset = batches[-1].end_offset
    return found


def number_of(payload: bytes) -> int:
    return int(payload.rsplit(b" ", 1)[1])
