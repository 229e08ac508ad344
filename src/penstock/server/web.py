"""HTTP as a part of the server: the house, its application and its listener.

What it takes is loaded when a server listens for HTTP, and not before.

Handlers of HTTP wait for the engine: one future per group that any of them waits for;
the engine's turn after a commit settles them all.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from penstock.access.grants import Grants
from penstock.access.peer import Peer
from penstock.broker.promised import Promised, carrier, has_ended, is_lost
from penstock.clock import Clock
from penstock.delivery.consumer import Member
from penstock.desk.desk import Desk
from penstock.errors import InDoubt, PenstockError, WriteFailed
from penstock.gateway.gateway import Gateway, LoginRequest
from penstock.http.key_file import KeyFile
from penstock.http.links import login_link
from penstock.server.accepting import no_tls
from penstock.server.connection import Connection, PeerCertificate
from penstock.server.engine import TICK_S, Engine
from penstock.server.listeners import Listeners
from penstock.server.logins import LoginResult
from penstock.server.settings import Settings
from penstock.server.tls import Certificates
from penstock.server.users_file import UserEntry

if TYPE_CHECKING:
    from penstock.http.opened import OpenStreams
    from penstock.server.http import HttpServer


class EnginePromises:
    """A member of the engine; see penstock.http.house for what it promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._broker = engine.broker
        self._log = engine.broker.log
        self._groups: dict[int, asyncio.Future[None]] = {}
        self._ends: Promised[int] = Promised(self._log)
        self._room: asyncio.Future[None] | None = None
        engine.members[self] = self

    @property
    def members(self) -> dict[object, Member]:
        return self._engine.members

    async def kept(self, group: int) -> None:
        await self._ended(group)
        if is_lost(self._log, group):
            failure = self._log.failure
            assert failure is not None, "a commit has failed"
            raise failure

    async def kept_at_last(self, group: int) -> None:
        await self._ended(group)
        while is_lost(self._log, group):
            group = carrier(self._log, group)
            await self._ended(group)

    async def room(self) -> None:
        while self._engine.congested:
            if self._room is None:
                self._room = self._engine.loop.create_future()
                self._engine.pause(self)
            # The pause after a failed commit ends without anything happening.
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._room), TICK_S)

    def kick(self) -> None:
        self._engine.kick()

    def now_s(self) -> float:
        return self._engine.now_s()

    def trouble(self) -> InDoubt | WriteFailed | None:
        if self._engine.paused_until_s is None:
            return None
        return self._log.doubt or self._log.failure

    # Called by the engine

    def flush(self, now_s: float) -> None:
        """A commit has ended: tell those who waited for it."""
        for group, _ in self._ends.take_any():
            future = self._groups.pop(group)
            if not future.done():
                future.set_result(None)
        if self._ends:
            self._broker.waiting[self] = None

    def resume(self) -> None:
        """There is room again."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    async def _ended(self, group: int) -> None:
        self._engine.kick()
        if has_ended(self._log, group):
            return
        future = self._groups.get(group)
        if future is None:
            future = self._groups[group] = self._engine.loop.create_future()
            self._ends.put(group, group)
            self._broker.waiting[self] = None
        # Shielded: one who gives up does not take it from the others.
        await asyncio.shield(future)


class Web:
    """Nothing until it is prepared and started.

    Then ``tick``, ``close``, ``drain``, ``abort``.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        desk: Desk,
        clock: Clock,
        listeners: Listeners,
        certificates: Certificates | None = None,
    ) -> None:
        self._certificates = certificates
        self.login: str | None = None
        """An address that logs a browser in, if the admin token can be shown."""
        self._settings = settings
        self._engine = engine
        self._desk = desk
        self._clock = clock
        self._listeners = listeners
        self._server: HttpServer | None = None
        self._sock: socket.socket | None = None
        self._opened: OpenStreams | None = None

    def prepare(
        self, sock: socket.socket, mqtt: Callable[[], Gateway] | None = None
    ) -> None:
        """Have all that it takes to accept there; raises BadTokenFile, OSError.

        ``mqtt`` makes gateways for who speaks MQTT over WebSocket.
        """
        from penstock.http.app import make_app
        from penstock.http.guard import Guard
        from penstock.http.host_check import HostCheck
        from penstock.http.house import House
        from penstock.http.keys import Tokens
        from penstock.server.http import HttpServer
        from penstock.server.mqtt_socket import PATH, MqttSockets
        from penstock.server.questions import QuestionProcesses

        settings = self._settings
        file = KeyFile(settings.server.data)
        made = file.begin(int(self._clock.now_s() * 1000))
        token = made or file.admin_token()
        tls = settings.tls.covers("http")
        if token is not None:
            port: int = sock.getsockname()[1]
            self.login = login_link(settings.server.host, port, token, tls=tls)
        has_users = settings.server.users_file is not None
        house = House(
            broker=self._engine.broker,
            desk=self._desk,
            options=settings.http,
            promises=EnginePromises(self._engine),
            keys=Tokens(file),
            clock=self._clock,
            figures=self._desk.figures,
            check_user=self._check if has_users else None,
            find_user=self._listeners.find_user if has_users else None,
            wrong_token=self._wrong_token,
            vouched=self._vouched,
            questions=QuestionProcesses(settings.server.data, settings.http),
        )
        app = make_app(house)
        if mqtt is not None:
            make = partial(self._beside, mqtt)
            app = MqttSockets(app, Guard(house).check_origin, make)
        app = HostCheck(app, settings.http, settings.server.host)
        self._server = HttpServer(
            app,
            settings.http,
            self._listeners,
            house.opened.end,
            login_inside=(PATH,),
            login_bytes=settings.server.login_bytes,
        )
        self._sock = sock
        self._opened = house.opened

    def _beside(self, mqtt: Callable[[], Gateway]) -> Connection:
        return self._listeners.beside(mqtt(), "mqtt websocket")

    async def start(self) -> None:
        """Accept, if that was prepared."""
        if self._server is not None and self._sock is not None:
            tls = no_tls
            if self._certificates and self._settings.tls.covers("http"):
                tls = self._certificates
            await self._server.start(self._sock, tls)

    async def tick(self) -> None:
        """What time brings; called every second."""
        if self._server is not None:
            await self._server.tick()
        if self._opened is not None:
            self._opened.check()

    def close(self) -> None:
        """Accept no more."""
        if self._server is not None:
            self._server.close()

    async def drain(self) -> None:
        """Answer what was begun and end streams; return when all have gone."""
        if self._server is None:
            return
        draining = asyncio.ensure_future(self._server.drain())
        try:
            while not draining.done():
                self._engine.kick()  # a commit that failed is tried again
                await asyncio.wait([draining], timeout=0.1)
        finally:
            draining.cancel()

    async def abort(self) -> None:
        """Cut off every client that is left."""
        if self._server is not None:
            await self._server.abort()

    async def _check(self, user: str, password: str, address: str) -> Grants:
        """What a user may do; raises as the answer to a login says."""
        loop = self._engine.loop
        answered: asyncio.Future[LoginResult] = loop.create_future()

        def answer(found: LoginResult) -> None:
            if not answered.done():
                answered.set_result(found)

        request = LoginRequest(user, password)
        self._listeners.check(request, answer, self._peer(address))
        found = await answered
        if isinstance(found, PenstockError):
            raise found
        return found.grants if isinstance(found, UserEntry) else found

    def _vouched(self, peercert: PeerCertificate, address: str) -> Grants | None:
        """What a user may do whom a certificate names; raises LoginRefused."""
        user = self._listeners.named(peercert, self._peer(address))
        return None if user is None else user.grants

    def _wrong_token(self, address: str) -> PenstockError:
        return self._listeners.logins.wrong_token(self._peer(address))

    def _peer(self, address: str) -> Peer:
        return Peer("http", self._engine.now_s(), address)
