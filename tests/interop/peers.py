"""Three MQTT libraries behind one face, so that a test is written once for all.

    peer = Paho(broker.port, client_id="a", version=5)
    peer.connect()                        # True if the broker had a session
    peer.subscribe("a/#", qos=1)
    peer.publish("a/b", b"x", qos=2)      # returns when the handshake is over
    peer.receive()                        # the next message, or an error after a while

paho-mqtt is here; aiomqtt and gmqtt, which live in a loop, are in ``loop_peers``.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import ssl
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

ANSWER_S = 20.0
# How long nothing has to come for a test to believe that nothing comes.
QUIET_S = 0.3
PAHO_VERSIONS = {31: paho.MQTTv31, 311: paho.MQTTv311, 5: paho.MQTTv5}
# A session that outlives its connection.
KEPT_S = 3600


@dataclass(frozen=True, kw_only=True)
class Message:
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    # Of version 5 only.
    user_properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TopicFilter:
    """How a peer is to connect."""

    port: int
    client_id: str = ""
    # 31, 311 or 5.
    version: int = 5
    # A session of before is forgotten, and this one ends with the connection.
    clean: bool = True
    will: Message | None = None
    will_delay_s: int = 0
    tls: ssl.SSLContext | None = None
    # The path of a WebSocket, if it is one.
    path: str = ""
    user: str | None = None
    password: str | None = None
    properties: dict[str, Any] = field(default_factory=dict)


class Refused(Exception):
    """The broker said no, or nothing."""


class Peer(ABC):
    """One client; it may connect again after it has disconnected or was cut off."""

    def __init__(self, port: int, **topic_filter: Any) -> None:
        self.topic_filter = TopicFilter(port=port, **topic_filter)
        self.connected = False
        self._arrived: queue.SimpleQueue[Message] = queue.SimpleQueue()

    @abstractmethod
    def connect(self) -> bool:
        """Connect; whether the broker had a session."""

    @abstractmethod
    def subscribe(self, topic_filter: str, qos: int) -> int:
        """What the broker granted."""

    @abstractmethod
    def unsubscribe(self, topic_filter: str) -> None: ...

    @abstractmethod
    def publish(
        self,
        topic: str,
        payload: bytes,
        qos: int,
        *,
        retain: bool = False,
        user_properties: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Publish, and wait for the end of the handshake."""

    @abstractmethod
    def disconnect(self) -> None:
        """Say goodbye."""

    @abstractmethod
    def drop(self) -> None:
        """Cut the connection without a word."""

    def close(self) -> None:
        """Give back threads and loops."""
        if self.connected:
            self.drop()

    def receive(self, timeout_s: float = ANSWER_S) -> Message:
        try:
            return self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            raise Refused(f"no message in {timeout_s} s") from None

    def receive_all(self, count: int) -> list[Message]:
        return [self.receive() for _ in range(count)]

    def receive_rest(self) -> list[Message]:
        """What has come, and what comes until nothing comes for a moment."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._arrived.get(timeout=QUIET_S))
        return found

    def is_quiet(self) -> bool:
        """Nothing has come, and nothing comes for a moment."""
        return not self.receive_rest()


class Paho(Peer):
    """paho-mqtt 2, with its own thread."""

    def __init__(self, port: int, **topic_filter: Any) -> None:
        super().__init__(port, **topic_filter)
        self._client = client_of(self.topic_filter)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message
        self._client.on_subscribe = self._on_answer
        self._client.on_unsubscribe = self._on_answer
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._connected: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def connect(self) -> bool:
        self._client.connect(
            "127.0.0.1", self.topic_filter.port, **start_of(self.topic_filter)
        )
        self._client.loop_start()
        try:
            present, reason = self._connected.get(timeout=ANSWER_S)
        except queue.Empty:
            raise Refused("no CONNACK") from None
        if reason.is_failure:
            self._end_thread(at_once=True)
            self._client._sock_close()
            raise Refused(str(reason))
        self.connected = True
        return present

    def subscribe(self, topic_filter: str, qos: int) -> int:
        if self.topic_filter.version == 5:
            self._client.subscribe(topic_filter, options=SubscribeOptions(qos))
        else:
            self._client.subscribe(topic_filter, qos)
        return int(self._answers.get(timeout=ANSWER_S)[0].value)

    def unsubscribe(self, topic_filter: str) -> None:
        self._client.unsubscribe(topic_filter)
        self._answers.get(timeout=ANSWER_S)

    def publish(
        self,
        topic: str,
        payload: bytes,
        qos: int,
        *,
        retain: bool = False,
        user_properties: Sequence[tuple[str, str]] = (),
    ) -> None:
        properties = publish_properties(user_properties)
        info = self._client.publish(topic, payload, qos, retain, properties)
        info.wait_for_publish(ANSWER_S)
        if not info.is_published():
            raise Refused(f"no acknowledgement in {ANSWER_S} s")

    def disconnect(self) -> None:
        self.connected = False
        self._client.disconnect()
        self._end_thread()

    def drop(self) -> None:
        self.connected = False
        # Its thread ends first: it would close the socket in its own way.
        self._end_thread(at_once=True)
        if (sock := self._client.socket()) is not None:
            reset_at_close(sock)
        self._client._sock_close()

    def _end_thread(self, *, at_once: bool = False) -> None:
        if at_once and (waker := self._client._sockpairW) is not None:
            # Else it sleeps for up to a second before it looks.
            self._client._thread_terminate = True
            waker.send(b"0")
        self._client.loop_stop()
        # It makes a new pair at every start, and forgets the old one.
        self._client._reset_sockets(sockpair_only=True)

    def _on_connect(self, _: Any, __: Any, flags: Any, reason: Any, ___: Any) -> None:
        self._connected.put((flags.session_present, reason))

    def _on_disconnect(self, _: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
        if not self.connected and reason.is_failure:
            self._connected.put((False, reason))

    def _on_message(self, _: Any, __: Any, message: Any) -> None:
        self._arrived.put(message_of(message))

    def _on_answer(self, _: Any, __: Any, ___: Any, reasons: Any, ____: Any) -> None:
        self._answers.put(reasons)


def client_of(topic_filter: TopicFilter) -> paho.Client:
    """A paho client that has been told everything but where to."""
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=topic_filter.client_id,
        clean_session=None if topic_filter.version == 5 else topic_filter.clean,
        protocol=PAHO_VERSIONS[topic_filter.version],
        transport="websockets" if topic_filter.path else "tcp",
        reconnect_on_failure=False,
    )
    client.suppress_exceptions = False
    if topic_filter.path:
        client.ws_set_options(path=topic_filter.path)
    if topic_filter.tls is not None:
        client.tls_set_context(topic_filter.tls)
    if topic_filter.user is not None:
        client.username_pw_set(topic_filter.user, topic_filter.password)
    if (will := topic_filter.will) is not None:
        client.will_set(
            will.topic,
            will.payload,
            will.qos,
            will.retain,
            will_properties(topic_filter),
        )
    return client


def start_of(topic_filter: TopicFilter) -> dict[str, Any]:
    """What connect is told: a clean start and an expiry, in version 5."""
    if topic_filter.version != 5:
        return {}
    return {
        "clean_start": topic_filter.clean,
        "properties": connect_properties(topic_filter),
    }


def connect_properties(topic_filter: TopicFilter) -> Properties:
    properties = Properties(PacketTypes.CONNECT)
    if not topic_filter.clean:
        properties.SessionExpiryInterval = KEPT_S
    for name, value in topic_filter.properties.items():
        setattr(properties, name, value)
    return properties


def publish_properties(pairs: Sequence[tuple[str, str]]) -> Properties | None:
    if not pairs:
        return None
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = list(pairs)
    return properties


def will_properties(topic_filter: TopicFilter) -> Properties | None:
    if not topic_filter.will_delay_s:
        return None
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.WillDelayInterval = topic_filter.will_delay_s
    return properties


def message_of(message: Any) -> Message:
    pairs = getattr(message.properties, "UserProperty", ())
    return Message(
        topic=str(message.topic),
        payload=message.payload,
        qos=message.qos,
        retain=bool(message.retain),
        user_properties=tuple(pairs),
    )


def reset_at_close(sock: Any) -> None:
    """Let a connection end as a lost one ends: with a reset."""
    sock = getattr(sock, "_socket", sock)  # inside a WebSocket
    linger = struct.pack("ii", 1, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
