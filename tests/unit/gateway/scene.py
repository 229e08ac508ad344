"""A broker and its gateways without sockets: what a server does, step by step.

Time is a ManualClock, ids come without randomness, and a commit happens whenever the
server would begin one, so that every byte of a conversation is known beforehand.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from penstock.access.grants import OPEN, Grants, Rule
from penstock.broker.broker import Broker
from penstock.broker.options import BrokerOptions
from penstock.clock import ManualClock
from penstock.desk.figures import Figures
from penstock.errors import WriteFailed
from penstock.gateway.control import ControlGateway
from penstock.gateway.gateway import Gateway
from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.gateway.json_publisher import JsonPublisherGateway
from penstock.gateway.line import LineGateway
from penstock.gateway.options import ControlOptions, JsonOptions, LineOptions
from penstock.log import Log, LogOptions
from tests.unit.log.faults import FaultyFiles

ROOM = 1 << 20


@dataclass(kw_only=True)
class Rules:
    """The settings of a scene. With ``passwords`` everybody has to log in.

    ``grants`` are those of users with rules; ``tokens`` are what else lets one in.
    """

    line: LineOptions = field(default_factory=LineOptions)
    control: ControlOptions = field(default_factory=ControlOptions)
    json: JsonOptions = field(default_factory=JsonOptions)
    broker: BrokerOptions = field(default_factory=BrokerOptions)
    log: LogOptions = field(default_factory=LogOptions)
    passwords: dict[str, str] = field(default_factory=dict)
    grants: dict[str, Grants] = field(default_factory=dict)
    tokens: dict[str, Grants] = field(default_factory=dict)


def limited(*rules: Rule, user: str = "anna") -> Rules:
    """Settings with a user who may do this and nothing else; the password is pw."""
    grants = Grants(user=user, rules=rules)
    return Rules(passwords={user: "pw"}, grants={user: grants})


class Scene:
    """A broker at work. ``commits`` False: nothing becomes durable meanwhile.

    ``files`` is its disk, which fails when it is told to.
    """

    def __init__(self, folder: Path, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.clock = ManualClock()
        self.commits = True
        self.files = FaultyFiles()
        self.peers: dict[Gateway, Peer] = {}
        self._folder = folder
        self._users: dict[str, JsonConsumerGateway] = {}
        self.broker = self._open()
        self.figures = Figures(self.broker)

    def connect(self, port: str) -> Peer:
        """A new connection to ``line``, ``consumer``, ``publisher`` or ``control``."""
        gateway = self._gateway(port)
        peer = self.peers[gateway] = Peer(self, gateway)
        gateway.connected(self.clock.now_s())
        peer.pull()
        return peer

    def restart(self, *, kill: bool = False) -> None:
        """All connections are gone, and the broker comes back from its files."""
        if kill:
            self.broker.log.abandon()
        for peer in list(self.peers.values()):
            peer.disconnect()
        self._users.clear()
        self.broker.log.close()
        self.broker = self._open()
        self.figures = Figures(self.broker)

    def close(self) -> None:
        self.broker.log.abandon()

    def fail_commit(self) -> None:
        """Have the disk refuse what is urgent now."""
        self.files.fail("write", "journal")
        self.commit()

    def commit(self) -> None:
        """Commit now, whatever ``commits`` says, and let everybody send."""
        with suppress(WriteFailed):
            self.broker.log.commit()
        self.pump()

    def advance(self, seconds: float) -> None:
        """Let time pass in one step."""
        self.clock.advance(seconds)
        self.broker.tick(self.clock.now_s())
        self.pump()

    def pump(self) -> None:
        """Commit what is urgent and let everybody send who was woken, until quiet."""
        broker = self.broker
        while broker.awake or (self.commits and broker.urgent):
            if self.commits and broker.urgent:
                with suppress(WriteFailed):
                    broker.log.commit()
            woken = list(broker.awake)
            broker.awake.clear()
            for gateway in woken:
                peer = self.peers.get(gateway)  # type: ignore[call-overload]
                if peer is not None:
                    peer.pull()

    def _open(self) -> Broker:
        rules = self.rules
        open_log = partial(
            Log.open,
            self._folder,
            rules.log,
            files=self.files,
            clock=self.clock,
            entropy=bytes,
        )
        return Broker(open_log, rules.broker)

    def _gateway(self, port: str) -> Gateway:
        broker, rules = self.broker, self.rules
        ask = bool(rules.passwords)
        if port == "line":
            return LineGateway(broker, rules.line, authenticate=ask)
        if port == "publisher":
            return JsonPublisherGateway(broker, rules.json, authenticate=ask)
        if port == "control":
            return ControlGateway(broker, rules.control, self.figures)
        assert port == "consumer", port
        return JsonConsumerGateway(broker, rules.json, self._users, authenticate=ask)


class Peer:
    """A client at the other end of a gateway: what it sends, and what it has got."""

    def __init__(self, scene: Scene, gateway: Gateway) -> None:
        self.gateway = gateway
        self.got = b""
        self._scene = scene

    def send(self, data: bytes) -> None:
        """One read of the server, and all that follows from it."""
        self.gateway.receive(data, self._now_s)
        while (login := self.gateway.login) is not None:
            rules = self._scene.rules
            ok = rules.passwords.get(login.user) == login.password
            if login.token is not None:
                ok = login.token in rules.tokens
                self.gateway.grants = rules.tokens.get(login.token, OPEN)
            elif ok:
                self.gateway.grants = rules.grants.get(login.user, OPEN)
            self.gateway.logged_in(ok, self._now_s)
        self.pull()
        self._scene.pump()
        while self.gateway.busy:
            self.gateway.go_on(self._now_s)
            self.pull()
            self._scene.pump()

    def say(self, *lines: str) -> list[str]:
        """Send lines in one read; what has come since, as lines."""
        self.send("".join(line + "\r\n" for line in lines).encode())
        return self.read()

    def read(self) -> list[str]:
        """What has come since, as lines."""
        got, self.got = self.got, b""
        assert not got or got.endswith(b"\r\n"), got
        return got.decode().split("\r\n")[:-1]

    def end(self) -> None:
        """The client sends no more."""
        self.gateway.eof(self._now_s)
        self.pull()
        self._scene.pump()

    def disconnect(self) -> None:
        """The connection is gone."""
        del self._scene.peers[self.gateway]
        self.gateway.disconnected(self._now_s)

    def pull(self) -> None:
        self.got += b"".join(self.gateway.output(self._now_s, ROOM))

    @property
    def closed(self) -> bool:
        """Whether the server closes the connection now."""
        waiting = self.gateway in self._scene.broker.waiting
        return self.gateway.closing and not waiting

    @property
    def _now_s(self) -> float:
        return self._scene.clock.now_s()
