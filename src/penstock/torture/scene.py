"""Clients of every kind at work on a few topics, and what has to be true of them.

The scene does not know what its clients talk to: a ``World`` carries their bytes. Over
sockets that is a server in its own process, in memory a broker on a disk that loses
power.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from penstock.torture.client import Announcer, LoadClient
from penstock.torture.http_clients import HttpConsumer, HttpPublisher
from penstock.torture.json_clients import JsonConsumer, JsonPublisher
from penstock.torture.line_clients import LineConsumer, LinePublisher
from penstock.torture.mqtt_clients import MqttConsumer, MqttPublisher
from penstock.torture.native_clients import NativeConsumer, NativePublisher
from penstock.torture.promise import holds
from penstock.torture.record import LoadRecord, Truth, check_priorities

ORDERS, BOXES, WEB = "orders", "bøxes/2", "web/shop"
ONE, TWO, STATE = "load/one", "load/two", [f"state/{number}" for number in range(3)]
LOAD = "load/"

Publisher = LinePublisher | JsonPublisher | NativePublisher | HttpPublisher
AnyConsumer = LineConsumer | JsonConsumer | NativeConsumer | HttpConsumer


class World(Protocol):
    """What clients talk to."""

    clients: list[LoadClient]

    def run(self, done: Callable[[], bool]) -> None:
        """Let the clients work; ``done`` is asked after every read."""
        ...

    def tear(self, client: LoadClient) -> None:
        """End a connection as if the client had been killed."""
        ...

    def leave(self, client: LoadClient) -> None:
        """It has nothing more to say."""
        ...

    def truth(self) -> Truth:
        """What is stored."""
        ...


class Scene:
    def __init__(
        self, random: Random, *, http: bool = True, max_lag: int = 400
    ) -> None:
        self.random = random
        self.record = record = LoadRecord(max_lag=max_lag)
        both = [ORDERS, BOXES]
        self.publishers: list[Publisher] = [
            LinePublisher("lena", [ORDERS], record, random),
            LinePublisher("luis", both, record, random),
            JsonPublisher("jana", BOXES, record, random),
            JsonPublisher("jens", BOXES, record, random),
            NativePublisher("nora", ORDERS, record, random),
        ]
        self._one_by_one = LineConsumer("ole", both, record, random, drop_rate=0.01)
        self.consumers: list[AnyConsumer] = [
            self._one_by_one,
            LineConsumer("mia", [ORDERS], record, random, window=20, drop_rate=0.01),
            JsonConsumer("kim", ORDERS, record),
            JsonConsumer("kai", BOXES, record),
            NativeConsumer("nils", BOXES, record, window=30),
        ]
        self.topics = both
        if http:
            self.topics = [*both, WEB]
            self.publishers.append(HttpPublisher("hugo", WEB, record, random))
            self.consumers += [
                HttpConsumer("hana", WEB, record),
                NativeConsumer("nele", WEB, record, window=30),
            ]
        self.mqtt_publishers = [
            MqttPublisher("one", [ONE, *STATE], random, qos=1, version=4),
            MqttPublisher("two", [TWO, *STATE], random, qos=2, version=5),
            MqttPublisher("both", [ONE, TWO], random, qos=2, version=4),
        ]
        self._away = MqttConsumer("away", "load/#", random, qos=2, version=5)
        self.mqtt_consumers = [
            MqttConsumer("old", "load/#", random, qos=1, version=4, drop_rate=0.01),
            MqttConsumer("new", "load/+", random, qos=2, version=5, window=20),
            MqttConsumer("shy", "load/#", random, qos=2, version=4, drop_rate=0.01),
            self._away,
        ]
        self._before: Truth | None = None

    @property
    def facts(self) -> int:
        """Promises that were made to clients."""
        return sum(client.facts for client in self._all_clients)

    @property
    def refusals(self) -> int:
        return sum(client.refusals for client in self._all_clients)

    @property
    def _all_clients(self) -> list[LoadClient]:
        plain = [*self.consumers, *self.publishers]
        return [*plain, *self.mqtt_consumers, *self.mqtt_publishers]

    # What happens

    def begin(self, world: World) -> None:
        """Have all consumers subscribe; then publishers may begin."""
        self._announce(world, "first")
        world.clients += self._all_clients
        consumers = [*self.consumers, *self.mqtt_consumers]
        world.run(lambda: all(one.subscribed for one in consumers))
        world.leave(self._away)  # until the end
        self._open(publishing=True)

    def work(self, world: World, facts: int) -> None:
        """Let so many promises be made; some connections are torn down meanwhile."""
        end = self.facts + facts
        while self.facts < end:
            some = min(self.facts + self.random.randint(20, 200), end)
            world.run(lambda some=some: self.facts >= some)  # type: ignore[misc]
            if self.facts < end:
                world.tear(self.random.choice(world.clients))

    def look(self, world: World) -> Truth:
        """Compare what clients were told with what is stored."""
        truth = world.truth()
        truth.check(self._before, self.topics)
        for client in [*self.publishers, *self.consumers, *self.mqtt_publishers]:
            client.check(truth)
        self._before = truth
        return truth

    def end(self, world: World, crash: Callable[[], None]) -> None:
        """Let everything come to its end, and look at all of it."""
        self._finish(world)
        self._nothing_comes_again(world, crash)
        self._check_retained(world)
        self._check_all(world)

    # Within

    def _finish(self, world: World) -> None:
        """Let publishers end what they began, and consumers get all of it."""
        self._open(publishing=False)
        publishers = [*self.publishers, *self.mqtt_publishers]
        world.run(lambda: all(one.idle for one in publishers))
        world.clients.append(self._away)
        self._announce(world, "last")
        wanted = set(world.truth().under(LOAD))
        world.run(lambda: self._drained("last") and self._mqtt_drained(wanted))

    def _nothing_comes_again(self, world: World, crash: Callable[[], None]) -> None:
        """What was settled stays settled over one more crash: only news is delivered.

        A line client is asked: it keeps no memory of what it had.
        """
        lines = [one for one in self.consumers if isinstance(one, LineConsumer)]
        for one in lines:
            one.drop_rate = 0.0
        before = [list(ids) for one in lines for ids in one.order.values()]
        crash()
        self._announce(world, "news")
        world.run(lambda: self._drained("news"))

        after = [ids for one in lines for ids in one.order.values()]
        for had, has in zip(before, after, strict=True):
            again = has[len(had) :]
            holds(again == ["news"], "only news was due, not", again[:5])

    def _check_all(self, world: World) -> None:
        """Every consumer has everything."""
        truth = self.look(world)
        starts = dict.fromkeys(self.topics, 1)
        for consumer in self.consumers:
            consumer.check_all(truth, starts)
        for mqtt in self.mqtt_consumers:
            mqtt.check(truth)
            missing = sorted(mqtt.missing(set(truth.under(LOAD))))
            holds(not missing, mqtt.name, "never got", missing[:5])
        for publisher in self.mqtt_publishers:
            unconfirmed = publisher.sent.keys() - publisher.session.confirmed
            holds(not unconfirmed, publisher.name, "has unconfirmed", unconfirmed)
        for topic, steps in self._one_by_one.steps.items():
            known = self.record.known[topic]
            check_priorities(steps, truth.topics[topic], known)

    def _check_retained(self, world: World) -> None:
        """A subscriber that comes now gets the last of each topic."""
        truth = world.truth()
        wanted = {one: truth.payloads(one)[-1] for one in STATE if truth.payloads(one)}
        late = MqttConsumer("late", "state/#", self.random, qos=1, version=5)
        world.clients.append(late)
        world.run(lambda: len(late.session.got) >= len(wanted) and late.idle)
        world.leave(late)
        found = {one.topic: one.payload for one in late.session.got}
        holds(found == wanted, "retained are", found, "not", wanted)

    def _open(self, *, publishing: bool) -> None:
        self.record.open = publishing
        for one in self.mqtt_publishers:
            one.open = publishing

    def _announce(self, world: World, text: str) -> None:
        announcer = Announcer(text, self.topics)
        world.clients.append(announcer)
        world.run(lambda: announcer.done)
        world.leave(announcer)

    def _drained(self, text: str) -> bool:
        """Whether all consumers have finished the event of that text, and all else."""
        return all(
            one.idle and set(one.last_text.values()) == {text} for one in self.consumers
        )

    def _mqtt_drained(self, wanted: set[bytes]) -> bool:
        return all(one.idle and not one.missing(wanted) for one in self.mqtt_consumers)
