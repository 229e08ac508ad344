"""The life of a server: bind, open, listen, run, drain, close.

Everything that can be refused is refused before anything is started: ports are bound
first, then the data directory is opened, then the listeners accept.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import uvloop

from penstock.broker.broker import Broker
from penstock.clock import SystemClock
from penstock.desk.desk import Desk
from penstock.desk.figures import Figures
from penstock.errors import DirectoryLocked, InvalidOption
from penstock.files import replace_file
from penstock.gateway.maze import MazeState
from penstock.http.key_file import KeyFile, PrivateFiles
from penstock.http.keys import Tokens
from penstock.log import Layout, Log, holder_pid, is_held, is_locked
from penstock.server.descriptors import raise_limit
from penstock.server.engine import TICK_S, Engine
from penstock.server.garbage import Garbage
from penstock.server.listeners import Listeners, bind, bind_local
from penstock.server.ports import HTTP, LOCAL, SECURE, Ports
from penstock.server.process_info import ServerProcessInfo
from penstock.server.ready import ROLE, Ready
from penstock.server.settings import Settings
from penstock.server.tls import Certificates
from penstock.server.upkeep import Upkeep
from penstock.server.users import Users
from penstock.server.web import Web
from penstock.tracing import of_options

logger = logging.getLogger(__name__)

# A thread that has synced wants the interpreter back at once, not after 5 ms.
SWITCH_INTERVAL_S = 0.0005

Announce = Callable[[Ready], None]


def serve(settings: Settings, *, ready_file: str | None, announce: Announce) -> int:
    """Run until told to stop; the exit code.

    Raises PenstockError or OSError if it cannot start; then nothing was started.
    """
    _check_place(ready_file)
    tracing = of_options(settings.tracing)
    _check_users(settings)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    raise_limit(settings.server.max_connections)
    with ExitStack() as stack:
        sockets = _bind(settings, stack)
        state = MazeState()
        broker = Broker(
            partial(Log.open, settings.server.data, settings.log, role=ROLE),
            settings.broker,
            settings.topics,
            kept=[state],
        )
        stack.callback(broker.log.abandon)  # nothing, once it is closed
        if tracing is not None:
            broker.traffic.tracing = tracing
            stack.callback(tracing.close)
        sockets[LOCAL] = stack.enter_context(bind_local(settings.server.data))
        server = Server(settings, broker, state, sockets)
        if ready_file is not None:
            path = Path(ready_file).absolute()
            _clear_way(path)
            stack.callback(_remove_own, path)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(server.run(ready_file, announce))


def _check_place(ready_file: str | None) -> None:
    """Refuse a place that cannot be written."""
    if ready_file is None:
        return
    path = Path(ready_file).absolute()
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OSError(errno.EACCES, "cannot be written there", f"ready file {path}")


def _clear_way(path: Path) -> None:
    """Remove what a server said that is gone; refuse to if it still runs.

    The data directory is ours by now, so it is one with another directory, whose lock
    names it.
    """
    ready = _read_ready(path)
    lock = Layout(str(ready.get("data", ""))).lock
    if ready and holder_pid(lock) == ready.get("pid") != os.getpid() and is_held(lock):
        who = f"ready file {path} of the server with pid {ready['pid']}"
        raise OSError(errno.EEXIST, "another server runs", who)
    path.unlink(missing_ok=True)


def _remove_own(path: Path) -> None:
    """Take back what this process said, but not what another one has said since."""
    if _read_ready(path).get("pid") == os.getpid():
        path.unlink(missing_ok=True)


def _read_ready(path: Path) -> dict[str, object]:
    try:
        ready = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return ready if isinstance(ready, dict) else {}


def _bind(settings: Settings, stack: ExitStack) -> dict[str, socket.socket]:
    """A socket for every listener that is on; raises OSError, DirectoryLocked."""
    sockets = {}
    listen = settings.listen
    for field in listen.__slots__:
        port, name = getattr(listen, field), field.removesuffix("_port")
        if port is not None and (name not in SECURE or _has_certificate(settings)):
            try:
                sock = bind(settings.server.host, port, name)
            except OSError:
                # A server that has the directory most likely has its ports, too.
                _check_free(settings.server.data)
                raise
            sockets[name] = stack.enter_context(sock)
    return sockets


def _check_free(directory: str) -> None:
    lock = Layout(directory).lock
    if is_locked(lock):
        raise DirectoryLocked(directory, holder_pid(lock))


def _check_users(settings: Settings) -> None:
    """Raises InvalidOption if certificates shall name users and there are none."""
    how = settings.tls.cert_users
    if how != "off" and settings.server.users_file is None:
        limit = "off, unless server.users_file has the users"
        raise InvalidOption("cert_users", how, limit)


def _has_certificate(settings: Settings) -> bool:
    """Whether ports for TLS can be; raises InvalidOption if one was asked for."""
    if settings.tls.cert_file is not None:
        return True
    if settings.origins.get("listen.mqtts_port", "default") != "default":
        limit = "off, unless tls.cert_file names a certificate"
        raise InvalidOption("mqtts_port", settings.listen.mqtts_port, limit)
    return False


def _keys(directory: str, now_ms: int) -> Tokens:
    """The tokens, with that of the admin; raises BadTokenFile, OSError."""
    file = KeyFile(directory)
    file.begin(now_ms)  # nothing, if HTTP has made it
    return Tokens(file)


class Server:
    def __init__(
        self,
        settings: Settings,
        broker: Broker,
        state: MazeState,
        sockets: dict[str, socket.socket],
    ) -> None:
        self._settings = settings
        self._broker = broker
        self._state = state
        self._sockets = sockets
        has_certificate = settings.tls.cert_file is not None
        self._certificates = Certificates(settings.tls) if has_certificate else None
        self._stop = asyncio.Event()

    async def run(self, ready_file: str | None, announce: Announce) -> int:
        """Startup, run, shutdown."""
        options = self._settings.server
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        engine = Engine(self._broker, clock, loop, sync_wait_s=options.sync_wait_s)
        users = None if options.users_file is None else Users.load(options.users_file)
        accounts = self._broker.accounts
        accounts.defaults = self._settings.quota
        if users is not None:
            accounts.look_up = users.quota_of
            users.warn()
        attempts = self._settings.http.login_attempts
        cert_users = self._settings.tls.cert_users
        listeners = Listeners(engine, options, users, attempts, cert_users)
        process = ServerProcessInfo(engine, self._as_bound())
        desk = Desk(self._broker, Figures(self._broker, process))
        certificates = self._certificates
        ports = Ports(
            *(self._settings, self._broker, desk, self._state, self._sockets),
            certificates,
            None if users is None else users.rights_of,
        )
        web = Web(self._settings, engine, desk, clock, listeners, certificates)
        if HTTP in self._sockets:
            speaks_mqtt = self._settings.listen.mqtt_port is not None
            mqtt = partial(ports.mqtt, authenticate=users is not None)
            web.prepare(self._sockets[HTTP], mqtt if speaks_mqtt else None)
        listeners.keys = _keys(options.data, int(clock.now_s() * 1000))
        self._catch_signals(loop)
        try:
            for port in ports.ports(authenticate=users is not None):
                listeners.listen(port)
            await web.start()
            self._say_ready(ready_file, announce, web)
            logger.info(
                "the server is ready (pid %d)",
                os.getpid(),
                extra={"action": "server_ready"},
            )
            garbage = Garbage()
            await self._tick(engine, ports, self._upkeep(), listeners, web, garbage)
        finally:
            listeners.close()
            web.close()
        try:
            await self._drain(engine, web)
        finally:
            listeners.end()
        await engine.stop()
        self._broker.throttle.close()
        self._broker.chains.close()
        self._broker.log.close()
        logger.info("the server has stopped", extra={"action": "server_stopped"})
        return 0

    def _as_bound(self) -> Settings:
        """The settings with the ports that were found for 0."""
        ports = {f"{name}_port": port for name, port in self._ports().items()}
        return replace(self._settings, listen=replace(self._settings.listen, **ports))

    def _ports(self) -> dict[str, int]:
        return {
            name: sock.getsockname()[1]
            for name, sock in self._sockets.items()
            if name != LOCAL
        }

    def _upkeep(self) -> Upkeep:
        return Upkeep(self._broker.log, self._broker.chains)

    async def _tick(
        self,
        engine: Engine,
        ports: Ports,
        upkeep: Upkeep,
        listeners: Listeners,
        web: Web,
        garbage: Garbage,
    ) -> None:
        """What time brings, until told to stop."""
        seconds = 0.0
        while not self._stop.is_set():
            engine.tick()
            upkeep.index(idle=engine.idle)
            seconds += TICK_S
            if seconds >= 1:
                seconds = 0.0
                now_s = engine.now_s()
                if self._certificates is not None:
                    self._certificates.check()
                listeners.check_idle(now_s)
                ports.tick(now_s)
                await web.tick()
                garbage.tick(engine.loop.time(), listeners.closed)
                upkeep.step(now_s, idle=engine.idle)
            try:
                await asyncio.wait_for(self._stop.wait(), TICK_S)
            except TimeoutError:
                continue

    async def _drain(self, engine: Engine, web: Web) -> None:
        """Finish what was begun: commit it, and let the answers go out."""
        for connection in list(engine.connections.values()):
            connection.stop_reading()
        try:
            async with asyncio.timeout(self._settings.server.drain_s):
                # At the same time: no part waits for a slow client of another.
                async with asyncio.TaskGroup() as parts:
                    parts.create_task(web.drain())
                    parts.create_task(self._part(engine))
                await engine.drain()  # what HTTP has done meanwhile
        except TimeoutError:
            logger.warning(
                "connections were cut off: not drained within %g s",
                self._settings.server.drain_s,
                extra={"action": "drain_timeout"},
            )
        for connection in list(engine.connections.values()):
            connection.abort()
        await web.abort()

    async def _part(self, engine: Engine) -> None:
        """Commit what was begun, say so, and wait until all have gone."""
        await engine.drain()
        for connection in list(engine.connections.values()):
            connection.finish()
        await engine.deserted.wait()

    def _catch_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)

    def _signalled(self) -> None:
        if self._stop.is_set():
            # At once: whatever was confirmed is on disk.
            os._exit(1)
        self._stop.set()

    def _say_ready(self, ready_file: str | None, announce: Announce, web: Web) -> None:
        ready = Ready(
            pid=os.getpid(),
            data=str(Path(self._settings.server.data).absolute()),
            host=self._settings.server.host,
            ports=self._ports(),
            login=web.login,
            tls=tuple(filter(self._settings.tls.covers, self._sockets)),
        )
        if ready_file is not None:
            path = Path(ready_file).absolute()
            # For the owner's eyes only: it may hold what logs a browser in.
            replace_file(PrivateFiles(), str(path), ready.to_json())
        announce(ready)
