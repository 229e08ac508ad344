"""``$SYS`` topics: how the broker does, for those who subscribe to them.

They are not stored: every round is sent to its subscribers, with QoS 0, and the last
one to a client that subscribes. Names are those that Mosquitto made usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from penstock import __version__
from penstock.broker.broker import Broker
from penstock.desk.letter_book import LetterCount
from penstock.gateway.options import MqttOptions
from penstock.model.moment import is_due
from penstock.sessions.filters import TopicTree

ROOT = "$SYS/"


class SystemListener(Protocol):
    """A connection that may filter for ``$SYS`` topics."""

    @property
    def system_filters(self) -> Iterable[str]: ...

    def tell(self, topic: str, payload: bytes, *, retain: bool) -> None: ...


class PacketCounts:
    """What connections count together."""

    __slots__ = ("messages_in", "messages_out")

    def __init__(self) -> None:
        self.messages_in = 0
        self.messages_out = 0


class System:
    def __init__(self, broker: Broker, options: MqttOptions) -> None:
        self.counts = PacketCounts()
        self.listeners: dict[SystemListener, None] = {}
        """Connections that stand."""
        self._broker = broker
        self._interval_s = options.sys_interval_s
        self._since_s = broker.log.now_ms() / 1000
        self._due_s = self._since_s + self._interval_s
        self._names = TopicTree()
        self._values: dict[str, Callable[[], object]] = {
            "broker/version": lambda: f"Penstock {__version__}",
            "broker/uptime": self._uptime,
            "broker/clients/connected": lambda: len(self.listeners),
            "broker/clients/total": lambda: len(broker.sessions),
            "broker/clients/disconnected": self._away,
            "broker/messages/received": lambda: self.counts.messages_in,
            "broker/messages/sent": lambda: self.counts.messages_out,
            "broker/retained messages/count": lambda: len(broker.retained),
            "broker/subscriptions/count": self._topic_filters,
            "broker/topics/count": lambda: broker.log.topic_count,
            "broker/dead letters/count": lambda: LetterCount(broker).open(),
        }
        for name in self._values:
            if not broker.sessions.routes.withholds(ROOT + name):
                self._names.add(ROOT + name)

    def tick(self, now_s: float) -> None:
        """A round, if one is due."""
        interval_s = self._interval_s
        if not interval_s or not is_due(self._due_s, interval_s, now_s):
            return
        self._due_s = now_s + self._interval_s
        values: dict[str, bytes] = {}
        for listener in list(self.listeners):
            for topic in self._wanted_by(listener.system_filters):
                if topic not in values:
                    values[topic] = self._value(topic)
                listener.tell(topic, values[topic], retain=False)

    def knows(self, filter_: str) -> bool:
        """Whether a filter is about any of the topics: there are not many such."""
        return filter_.startswith(ROOT) and any(
            True for _ in self._names.match(filter_)
        )

    def now(self, filters: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """How things stand, for who subscribes to filters."""
        values: dict[str, bytes] = {}
        for filter_ in filters:
            for topic in self._names.match(filter_):
                if topic not in values:
                    values[topic] = self._value(topic)
                yield topic, values[topic]

    def _wanted_by(self, filters: Iterable[str]) -> dict[str, None]:
        return {
            topic: None for filter_ in filters for topic in self._names.match(filter_)
        }

    def _value(self, topic: str) -> bytes:
        return str(self._values[topic.removeprefix(ROOT)]()).encode()

    def _uptime(self) -> str:
        return f"{int(self._broker.log.now_ms() / 1000 - self._since_s)} seconds"

    def _away(self) -> int:
        return len(self._broker.sessions) - len(self.listeners)

    def _topic_filters(self) -> int:
        return sum(len(session.topic_filters) for session in self._broker.sessions)
