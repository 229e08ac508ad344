"""``penstock.open``: a broker in this process, or one that is reached by its URL."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from penstock.client.address import PORT, check_plain, remote
from penstock.client.tls import Tls
from penstock.clock import Clock
from penstock.embedded.aio import AsyncBroker
from penstock.embedded.blocking import BlockingBroker, LoopThread
from penstock.embedded.link import Link
from penstock.embedded.local import LocalLink
from penstock.embedded.local_broker import LocalOptions
from penstock.embedded.remote import RemoteLink, Target
from penstock.errors import InvalidOption, NotRunning
from penstock.files import FileSystem

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing

SCHEME, SECURE = "penstock", "penstock+tls"
_URL = re.compile(rf"{SCHEME}:|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_LIMIT = (
    "penstock://[USER:PASSWORD@]HOST[:PORT], the same with penstock+tls, "
    "or penstock:///DIRECTORY"
)


def open(
    target: str | os.PathLike[str],
    *,
    name: str = "",
    token: str | None = None,
    options: LocalOptions | None = None,
    clock: Clock | None = None,
    files: FileSystem | None = None,
    tracing: Tracing | None = None,
    ca_file: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
) -> Opening:
    """A broker: ``async with`` or ``with`` opens it.

    ``target`` is a data directory, which is made if need be and belongs to this
    process then; or the URL of a server, ``penstock://HOST:PORT``,
    ``penstock+tls://HOST:PORT`` over TLS, or ``penstock:///DIRECTORY`` for one on this
    machine. ``name`` is who publishes. ``token`` is one of scope admin, for a program
    that administers a server by its port: deletes topics, changes schemas, works on
    dead letters. ``tracing`` is made by ``penstock.tracing``. ``ca_file``,
    ``cert_file`` and ``key_file`` are as with ``penstock.client.connect``.
    """
    secure = Tls(ca_file=ca_file, cert_file=cert_file, key_file=key_file)
    return Opening(
        *(target, name, options or LocalOptions(), clock, files, tracing),
        token=token,
        secure=secure,
    )


class Opening:
    """A broker that is about to be opened, for one kind of program or the other."""

    def __init__(
        self,
        target: str | os.PathLike[str],
        name: str,
        options: LocalOptions,
        clock: Clock | None,
        files: FileSystem | None,
        tracing: Tracing | None = None,
        token: str | None = None,
        secure: Tls | None = None,
    ) -> None:
        self._secure = secure
        self._target = os.fspath(target)
        # A Path is one, whatever it looks like.
        self._is_url = isinstance(target, str) and _URL.match(target) is not None
        self._name = name
        self._options = options
        self._clock = clock
        self._files = files
        self._tracing = tracing
        self._token = token
        self._aio: AsyncBroker | None = None
        self._blocking: BlockingBroker | None = None

    async def __aenter__(self) -> AsyncBroker:
        self._aio = AsyncBroker(await self._link(), self._name, self._tracing)
        return self._aio

    async def __aexit__(self, *_: object) -> None:
        assert self._aio is not None, "entered before"
        await self._aio.close()

    def __enter__(self) -> BlockingBroker:
        thread = LoopThread()
        try:
            broker = thread.wait(self.__aenter__())
        except BaseException:
            thread.stop()
            raise
        self._blocking = BlockingBroker(broker, thread)
        return self._blocking

    def __exit__(self, *_: object) -> None:
        assert self._blocking is not None, "entered before"
        self._blocking.close()

    async def _link(self) -> Link:
        if self._is_url:
            try:
                target = target_of(self._target, self._name, self._secure)
                return await RemoteLink.open(replace(target, token=self._token))
            except NotRunning as error:
                error.hint = "start it, or give penstock.open another URL"
                raise
        check_plain(self._target, self._secure)
        link = await LocalLink.open(
            self._target, self._options, clock=self._clock, files=self._files
        )
        link.producer = self._name or None
        link.broker.traffic.tracing = self._tracing
        return link


def target_of(url: str, name: str, secure: Tls | None = None) -> Target:
    """What a URL says; raises InvalidOption."""
    try:
        parts = urlsplit(url)
        port = parts.port or PORT
    except ValueError:
        raise InvalidOption("url", url, _LIMIT) from None
    known = parts.scheme in (SCHEME, SECURE)
    if not known or parts.query or parts.fragment:
        raise InvalidOption("url", url, _LIMIT)
    user = None if parts.username is None else unquote(parts.username)
    password = None if parts.password is None else unquote(parts.password)
    if parts.hostname is None:
        if not parts.path or parts.scheme == SECURE:
            raise InvalidOption("url", url, _LIMIT)
        check_plain(url, secure)
        return Target(unquote(parts.path), user, password, name)
    if parts.path not in ("", "/"):
        raise InvalidOption("url", url, _LIMIT)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    where = remote(f"{parts.scheme}://{host}:{port}", secure)
    return Target(str(where), user, password, name, where.tls)
