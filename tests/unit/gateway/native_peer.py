"""A client of the native gateway in a scene: messages in, messages out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from penstock.access.grants import OPEN, Grants
from penstock.desk.desk import Desk
from penstock.gateway.native import NativeGateway
from penstock.gateway.options import NativeOptions
from penstock.wire.native import (
    ClientMessage,
    Events,
    FrameSplitter,
    Hello,
    ServerMessage,
    decode_server,
    encode,
)
from tests.unit.gateway.scene import Peer, Scene

Message = TypeVar("Message")

HELLO = Hello(None, None, "")


class NativePeer:
    """``hello`` None: says nothing at first."""

    def __init__(
        self,
        scene: Scene,
        hello: Hello | None = HELLO,
        options: NativeOptions | None = None,
        grants: Grants = OPEN,
    ) -> None:
        self.gateway = NativeGateway(
            scene.broker,
            Desk(scene.broker),
            options or NativeOptions(),
            authenticate=bool(scene.rules.passwords),
            grants=grants,
        )
        self.peer = scene.peers[self.gateway] = Peer(scene, self.gateway)
        self._scene = scene
        self._splitter = FrameSplitter(1 << 30)
        if hello is not None:
            self.say(hello)

    def say(self, *messages: ClientMessage) -> list[ServerMessage]:
        """Send messages in one read; what has come since."""
        self.peer.send(b"".join(map(encode, messages)))
        return self.read()

    def read(self) -> list[ServerMessage]:
        """What has come since."""
        got, self.peer.got = self.peer.got, b""
        return [decode_server(body) for body in self._splitter.feed(got)]

    def events(self) -> list[Events]:
        return only(Events, self.read())


def only(kind: type[Message], messages: Iterable[object]) -> list[Message]:
    return [one for one in messages if isinstance(one, kind)]
