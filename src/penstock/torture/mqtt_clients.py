"""MQTT clients of a load that remember what they were promised."""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.torture.client import LoadClient
from penstock.torture.mqtt_session import SessionClient, in_order
from penstock.torture.promise import holds
from penstock.torture.record import Truth

MAX_IN_FLIGHT = 40


class MqttClient(LoadClient):
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
        self.refusals = len(self.session.reasons)

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
            number = self._numbers[topic]
            payload = f"{self._qos} {self.name} {topic} {number}".encode()
            self.sent[payload] = topic
            retain = topic.startswith("state/")
            self.session.publish(topic, payload, self._qos, retain=retain)

    def check(self, truth: Truth) -> None:
        """What was confirmed is stored, in order, and with QoS 2 nothing twice."""
        stored = Counter(truth.under(""))
        lost = [one for one in self.session.confirmed if not stored[one]]
        holds(not lost, f"{self.name}: {lost[:5]} of {len(lost)} are lost")
        if self._qos == 2:
            twice = [one for one in self.sent if stored[one] > 1]
            holds(not twice, f"{self.name}: {twice[:5]} of {len(twice)} are doubled")
        for topic in self._topics:
            mine = [one for one in truth.payloads(topic) if self.sent.get(one) == topic]
            numbers = [number_of(one) for one in dict.fromkeys(mine)]
            holds(numbers == sorted(numbers), f"{self.name}: order of {topic}")


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
        self._payloads: set[bytes] = set()
        self.session.subscribe(filter_)

    @property
    def subscribed(self) -> bool:
        return bool(self.session.filters)

    def received(self, data: bytes) -> None:
        had = len(self.session.got)
        super().received(data)
        self._payloads.update(one.payload for one in self.session.got[had:])
        self.session.answer()
        self.drops_out = self._random.random() < self._drop_rate

    def missing(self, wanted: set[bytes]) -> set[bytes]:
        return wanted - self._payloads

    def check(self, truth: Truth) -> None:
        """Everything once at least; exactly once where both sides have QoS 2."""
        copies = Counter(one.payload for one in self.session.got)
        for one in self.session.got:
            holds(one.qos == min(self.session.qos, qos_of(one.payload)), self.name)
            if one.qos == 2:
                holds(copies[one.payload] == 1, f"{self.name} got {one} twice")
        for topic in truth.topics:
            for qos in (1, 2):
                mine = [
                    one.payload
                    for one in self.session.got
                    if one.topic == topic and one.qos == qos
                ]
                fits = in_order(mine, truth.payloads(topic))
                holds(fits, self.name, "got", topic, "out of order")


def number_of(payload: bytes) -> int:
    return int(payload.rsplit(b" ", 1)[1])


def qos_of(payload: bytes) -> int:
    """The one that it was published with."""
    return int(payload.split(b" ")[0])
