"""Which protocol is spoken at which port.

The maze's protocol has no answer to a client's id, so a client may have sent it before
the source sent an event, and the server may see both at the same time. Whatever the
source sent is therefore held for a few turns of the loop, and for more as long as
clients arrive in them. While the log does not take what came before, nothing more is
read; with each turn of the engine that finds room it is tried again.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable
from typing import TypedDict

from penstock.access.grants import ADMINISTRATOR
from penstock.broker.broker import Broker
from penstock.desk.desk import Desk
from penstock.gateway.control import ControlGateway
from penstock.gateway.gateway import Gateway
from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.gateway.json_publisher import JsonPublisherGateway
from penstock.gateway.line import LineGateway
from penstock.gateway.maze import MazeClient, MazeHub, MazeSource, MazeState
from penstock.gateway.mqtt import MqttGateway, MqttHub
from penstock.gateway.mqtt.hub import Rights
from penstock.gateway.native import NativeGateway
from penstock.log import TopicOptions
from penstock.server.accepting import no_tls
from penstock.server.connection import Connection
from penstock.server.listeners import Port
from penstock.server.options import ALWAYS_TLS
from penstock.server.settings import Settings
from penstock.server.tls import Certificates

# Turns of the loop from a connection in the backlog to its id: accepted, begun, made,
# read, and some that a loop may take in between.
TURNS = 8
# Clients that keep arriving must not hold up the events for ever.
MAX_TURNS = 10_000


class MazeSourceConnection(Connection):
    def arrived(self, data: bytes) -> None:
        self._held.append(data)
        self._stop_reading()
        self._turn(TURNS, MAX_TURNS, self._arrivals())

    def _turn(self, left: int, most: int, seen: int) -> None:
        arrivals = self._arrivals()
        if arrivals != seen:
            left = TURNS
        if left and most:
            self.engine.loop.call_soon(self._turn, left - 1, most - 1, arrivals)
        else:
            self.resume()

    def resume(self) -> None:
        if self._source.backlogged and not super()._blocked():
            self._guarded(lambda: self._source.catch_up(self.engine.now_s()))
        super().resume()

    def _blocked(self) -> bool:
        return super()._blocked() or self._source.backlogged

    def _hold_up(self) -> None:
        super()._hold_up()
        if self._source.backlogged:
            self.engine.pause(self)

    def _arrivals(self) -> int:
        return self._source.arrivals

    @property
    def _source(self) -> MazeSource:
        assert isinstance(self.gateway, MazeSource)
        return self.gateway


logger = logging.getLogger(__name__)

# The socket in the data directory: a client that may open it administers.
LOCAL = "local"
# Spoken by an application of its own: http.py.
HTTP = "http"
# Spoken over TLS.
SECURE = (ALWAYS_TLS,)

_CONNECTIONS: dict[str, type[Connection]] = {"maze_event": MazeSourceConnection}
# Protocols of lines: what a page in a browser sends there would be lines too.
_LINES = ("line", "consumer", "publisher", "maze_event", "maze_client", "control")
# Protocols that have no word for a login.
_WITHOUT_LOGIN = ("maze_event", "maze_client", "control")
_NO_LOGIN = "this port has no login, so it is open to this machine only"
_NO_TLS = "this port is without TLS, so it is open to this machine only (see tls.plain)"


class _Login(TypedDict):
    """How gateways meet those whom they do not know."""

    authenticate: bool
    login_bytes: int


class Ports:
    """``desk`` is the one that all clients ask, whatever they ask through."""

    def __init__(
        self,
        settings: Settings,
        broker: Broker,
        desk: Desk,
        state: MazeState,
        sockets: dict[str, socket.socket],
        certificates: Certificates | None = None,
        rights: Rights | None = None,
    ) -> None:
        self._settings = settings
        self._certificates = certificates
        self._broker = broker
        self._desk = desk
        self._sockets = sockets
        self._hub = _maze_hub(settings, broker, state)
        self._mqtt = MqttHub(broker, settings.mqtt, rights)

    def ports(self, *, authenticate: bool) -> list[Port]:
        """All listeners that have a socket, and a gateway behind it."""
        makers = self._makers(authenticate=authenticate)
        return [
            Port(
                name=name,
                sock=sock,
                make_gateway=makers[name],
                connection=_CONNECTIONS.get(name, Connection),
                local_only=self._confined(name, authenticate=authenticate),
                tls=self._tls(name),
                http_answer=self._http_answer(name) if name in _LINES else None,
            )
            for name, sock in self._sockets.items()
            if name != HTTP
        ]

    def _tls(self, name: str) -> Callable[[], ssl.SSLContext | None]:
        """What a port's connections are encrypted by."""
        if self._certificates is None or not self._settings.tls.covers(name):
            return no_tls
        return self._certificates

    def _confined(self, name: str, *, authenticate: bool) -> str:
        """Why a port answers this machine only; nothing if it does not."""
        if authenticate and name in _WITHOUT_LOGIN:
            return _NO_LOGIN
        return _NO_TLS if self._settings.tls.confines(name) else ""

    def _http_answer(self, name: str) -> bytes:
        """To who speaks HTTP at a port of lines."""
        where = "is off"
        if HTTP in self._sockets:
            where = f"is at port {self._sockets[HTTP].getsockname()[1]}"
        body = f"This is the {name} port of Penstock. HTTP {where}.\n"
        return (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}"
        ).encode()

    def tick(self, now_s: float) -> None:
        """What time brings to the gateways themselves."""
        for hub in (self._hub, self._mqtt):
            try:
                hub.tick(now_s)
            except Exception:
                # A mistake of ours, or a log that refuses: others must not suffer.
                logger.exception("a tick failed", extra={"action": "tick_failed"})

    def mqtt(self, *, authenticate: bool) -> MqttGateway:
        """One more MQTT connection, however its bytes come."""
        login_bytes = self._settings.server.login_bytes
        return MqttGateway(
            self._mqtt, authenticate=authenticate, login_bytes=login_bytes
        )

    def _makers(self, *, authenticate: bool) -> dict[str, Callable[[], Gateway]]:
        settings, broker, hub = self._settings, self._broker, self._hub
        users: dict[str, JsonConsumerGateway] = {}
        desk = self._desk
        native = settings.native
        login: _Login = {
            "authenticate": authenticate,
            "login_bytes": settings.server.login_bytes,
        }
        return {
            "line": lambda: LineGateway(broker, settings.line, **login),
            "consumer": lambda: JsonConsumerGateway(
                broker, settings.json, users, **login
            ),
            "publisher": lambda: JsonPublisherGateway(broker, settings.json, **login),
            "mqtt": lambda: self.mqtt(authenticate=authenticate),
            "mqtts": lambda: self.mqtt(authenticate=authenticate),
            "maze_event": lambda: MazeSource(hub),
            "maze_client": lambda: MazeClient(hub),
            "control": lambda: ControlGateway(broker, settings.control, desk.figures),
            "native": lambda: NativeGateway(broker, desk, native, **login),
            LOCAL: lambda: NativeGateway(broker, desk, native, grants=ADMINISTRATOR),
        }


def _maze_hub(settings: Settings, broker: Broker, state: MazeState) -> MazeHub:
    """The maze, caught up with what its topic holds."""
    options, log = settings.maze, broker.log

    def topic_id() -> int:
        return log.topic(options.topic).id if log.has_topic(options.topic) else 0

    state.belongs_to(topic_id)
    if log.has_topic(options.topic):
        topic = log.topic(options.topic)
        offset = min(max(state.applied, topic.start_offset), topic.end_offset)
        while batches := log.read(options.topic, offset):
            state.catch_up(batches)
            offset = batches[-1].end_offset
    elif settings.listen.maze_event_port is not None:
        broker.create_topic(options.topic, TopicOptions(durability=options.durability))
    return MazeHub(broker, state, options)
