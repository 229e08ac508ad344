"""The async client: the twin of the blocking one, for programs with an event loop.

    async with await connect("penstock-data") as client:
        await client.publish("orders", [b"one", b"two"])
        subscription = await client.subscribe("orders", "billing", start="earliest")
        async for delivery in subscription:
            print(delivery.payload)
            subscription.ack(delivery)

Many coroutines may use one client at a time: what they ask is on its way together.
One task reads for all of them; it ends with the client.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self, Unpack

from penstock.client.address import (
    CLOSED,
    Local,
    ServerAddress,
    address_of,
    lost,
    not_running,
    reason_of,
    socket_path,
)
from penstock.client.aio_subscription import AsyncSubscription
from penstock.client.deliveries import Inbox, Offsets
from penstock.client.fetching import FETCH_BYTES, Range, checked
from penstock.client.outgoing import Outgoing, Publishable, traced
from penstock.client.session import NativeSession, SubscribeOptions, refusal
from penstock.client.sharing import Manner, PublishCall, Result, Sharing
from penstock.client.tls import Tls, failed
from penstock.errors import ConnectionLost, PenstockError, ServerRefused
from penstock.model.columns import PublishColumns
from penstock.wire.native import (
    Answer,
    Fetched,
    Published,
    ServerMessage,
    Subscribed,
)

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing

READ_BYTES = 1 << 18
TIMEOUT_S = 60.0
# Acks that are sent together, at most.
MAX_ACKS = 1000
# How long a server that has closed the connection is listened to.
LAST_WORDS_S = 1.0


async def connect(
    address: str | os.PathLike[str] | ServerAddress | None = None,
    *,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    name: str = "",
    timeout_s: float = TIMEOUT_S,
    tracing: Tracing | None = None,
    ca_file: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
) -> AsyncClient:
    """A client of the server at a data directory, or at ``HOST:PORT``.

    Without an address, of the server that ``$PENSTOCK_SERVER`` names.

    Over TLS it is ``penstock+tls://HOST:PORT``: ``ca_file`` has the certificates that
    vouch for the server's (default: the system's), ``cert_file`` and ``key_file`` are
    the client's own, if the server asks for one. ``name`` is what events are published
    by. ``token``, instead of user and password, is one of scope admin. Raises
    NotRunning, TlsFailed, ServerRefused.
    """
    secure = Tls(ca_file=ca_file, cert_file=cert_file, key_file=key_file)
    where = address_of(address, secure)
    try:
        async with asyncio.timeout(timeout_s):
            streams = await _open(where)
    except OSError as error:  # TimeoutError is one
        raise not_running(where, error) from error
    client = AsyncClient(where, *streams, timeout_s)
    client._tracing, client._name = tracing, name
    try:
        await client._answer(client._session.hello(name, user, password, token))
    except BaseException:
        await client.close()
        raise
    return client


def _offsets(
    topic: str, calls: list[Outgoing], counts: list[int], answer: Published
) -> Iterator[Offsets]:
    """Where the events of each call are."""
    events = Outgoing.joined(calls)
    return Offsets.of(answer, sum(counts), events.columns.ids).cut(counts)


_BATCHES = Manner(Outgoing.joined, _offsets)


class AsyncClient:
    """Made by ``connect``; close it, or use it as an async context manager."""

    def __init__(
        self,
        where: ServerAddress,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        timeout_s: float,
    ) -> None:
        self._where = where
        self._reader = reader
        self._writer = writer
        self._timeout_s = timeout_s
        self._session = NativeSession(str(where))
        self._loop = asyncio.get_running_loop()
        self._flushing = False
        self._sharing = Sharing(self._session, self.flush_soon, str(where), timeout_s)
        self._answers: dict[int, asyncio.Future[None]] = {}
        self._arrivals: dict[Inbox, asyncio.Event] = {}
        """An event for each subscription: something came, or it is over."""
        self._error: PenstockError | None = None
        self._tracing: Tracing | None = None
        self._name = ""
        self._task = asyncio.create_task(self._read())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def lost(self) -> bool:
        """Whether the connection has ended."""
        return self._error is not None

    @property
    def server_version(self) -> str:
        return self._session.version

    async def close(self) -> None:
        """Send acks that were saved up and go; what is in flight is sent again."""
        try:
            self._session.flush_acks()
            await self._send()
        except PenstockError:
            pass  # it is gone already
        finally:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._sharing.end(self._error or self._lost("it was closed"))
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()

    async def publish(
        self,
        topic: str,
        items: Publishable | Iterable[Publishable],
        *,
        dedup_ids: Sequence[str | None] | None = None,
        **columns: Unpack[PublishColumns],
    ) -> Offsets:
        """Publish payloads or events; where they are, once they are durable.

        ``columns`` say more of payloads, see ``PublishColumns``: ids, keys and so on.

        A large batch goes in several messages: if one fails, those before it are
        stored. Raises InvalidBatch, ServerRefused, ConnectionLost.
        """
        events = Outgoing.of(items, dedup_ids=dedup_ids, **columns)
        if self._tracing is None:
            return await self._publish_all(topic, events)
        with traced(self._tracing, topic, events, self._name) as events:
            return await self._publish_all(topic, events)

    async def _publish_all(self, topic: str, events: Outgoing) -> Offsets:
        return Offsets.joined(
            [await self._publish(topic, part) for part in events.parts()]
        )

    def publish_shared(
        self,
        manner: Manner[PublishCall, Result],
        topic: str,
        call: PublishCall,
        count: int,
        size: int,
        *,
        once: bool = False,
    ) -> asyncio.Future[Result]:
        """As ``publish``, a call of another manner; see penstock.client.sharing.

        It is of ``count`` events and ``size`` bytes; ``once``: it has dedup ids.
        """
        self._check()
        return self._sharing.publish(manner, topic, call, count, size, once=once)

    async def subscribe(
        self,
        topic: str,
        subscriber: str | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> AsyncSubscription:
        """Consume a topic.

        The name of a subscriber keeps position and unsettled events; without one the
        subscription is temporary. ``options`` say more, see ``SubscribeOptions``: where
        it starts, its order, window, tries and so on.
        Raises ServerRefused, ConnectionLost.
        """
        seq = self._session.subscribe(topic, subscriber, **options)
        message = await self._answer(seq)
        assert isinstance(message, Subscribed), "what Subscribe is answered by"
        inbox = self._session.inbox(message.channel)
        auto_ack = options.get("auto_ack", False)
        return AsyncSubscription(self, inbox, message.position, auto_ack=auto_ack)

    async def fetch(
        self, topic: str, offset: int, end: int, max_bytes: int = FETCH_BYTES
    ) -> Range:
        """Events from ``offset`` to in front of ``end``, as many as fit; see Range.

        Raises ServerRefused (UnknownTopic, OffsetOutOfRange), ConnectionLost.
        """
        seq = self._session.fetch(topic, offset, end, max_bytes)
        message = await self._answer(seq)
        assert isinstance(message, Fetched), "what Fetch is answered by"
        return checked(message, topic, offset, end)

    async def stage(
        self,
        query: str,
        epoch: int,
        partition: int,
        attempt: int,
        topic: str,
        items: Publishable | Iterable[Publishable],
        *,
        piece: int = 0,
        **columns: Unpack[PublishColumns],
    ) -> int:
        """Leave events with the server until ``sinks.commit`` stores their epoch.

        Returns the number of the next piece, to be given with what follows. No other
        try of the partition may have the same ``attempt``.
        Raises InvalidBatch, ServerRefused, ConnectionLost.
        """
        events = Outgoing.of(items, **columns)
        place = (query, epoch, partition, attempt)
        for part in events.pieces():
            await self._answer(self._session.stage(place, piece, topic, part))
            piece += 1
        return piece

    async def ask(self, verb: str, **arguments: object) -> object:
        """Ask the desk; see docs/protocols/native.md. Raises ServerRefused."""
        message = await self._answer(self._session.ask(verb, arguments))
        assert isinstance(message, Answer), "what Ask is answered by"
        return message.result

    def _publish(self, topic: str, part: Outgoing) -> asyncio.Future[Offsets]:
        count, size = len(part.payloads), sum(map(len, part.payloads))
        once = part.dedup_ids is not None
        return self.publish_shared(_BATCHES, topic, part, count, size, once=once)

    # Waiting

    async def _answer(self, seq: int) -> ServerMessage:
        """The answer to what was just put into the session."""
        future = self._answers[seq] = asyncio.get_running_loop().create_future()
        try:
            # Callers that ask in this turn of the loop share a write.
            await asyncio.sleep(0)
            self._session.flush_acks()
            await self._send()
            async with asyncio.timeout(self._timeout_s):
                await future
        except TimeoutError:
            reason = f"no answer within {self._timeout_s:g} s"
            raise ConnectionLost(str(self._where), reason) from None
        finally:
            self._answers.pop(seq, None)
            if future.done() and not future.cancelled():
                future.exception()  # it was seen: sending has failed with it too
        message = self._session.answer(seq)
        assert message is not None, "the future was set for it"
        return message

    async def _arrival(self, inbox: Inbox) -> None:
        """Wait until something came for a channel."""
        self._session.flush_acks()
        await self._send()
        arrived = self._arrivals.setdefault(inbox, asyncio.Event())
        while not inbox.batches and inbox.ended is None:
            arrived.clear()
            self._check()
            await arrived.wait()

    def flush_soon(self) -> None:
        """Have what was said sent, once for all of this turn of the loop."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send what was said; whether it arrives is seen by its answers."""
        self._flushing = False
        if self._error is None:
            self._session.flush_acks()
            if data := self._session.output():
                self._writer.write(data)

    async def _send(self) -> None:
        self._check()
        data = self._session.output()
        if data:
            self._writer.write(data)
            try:
                await self._writer.drain()
            except OSError as error:
                # What the server said before it closed is still to be read.
                await asyncio.wait([self._task], timeout=LAST_WORDS_S)
                self._check()
                raise self._ended(error) from error

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    async def _read(self) -> None:
        """Read for all callers, until the connection ends."""
        try:
            while data := await self._reader.read(READ_BYTES):
                for seq in self._session.receive(data):
                    if seq in self._answers:
                        _wake(self._answers[seq], None)
                    elif not self._sharing.answered(seq):
                        self._session.forget(seq)  # the caller has gone
                for inbox, arrived in self._arrivals.items():
                    if inbox.batches or inbox.ended is not None:
                        arrived.set()
            self._end(self._lost(CLOSED))
        except PenstockError as error:
            self._end(error)
        except OSError as error:
            self._end(self._ended(error))

    def _end(self, error: PenstockError) -> None:
        self._error = error
        self._sharing.end(error)
        for future in self._answers.values():
            _wake(future, error)
        for arrived in self._arrivals.values():
            arrived.set()

    def _ended(self, error: OSError) -> PenstockError:
        return failed(self._where, error) or self._lost(reason_of(error))

    def _lost(self, reason: str) -> ConnectionLost | ServerRefused:
        said = self._session.farewell
        if said is not None:
            return refusal(said)
        return lost(self._where, reason, welcome=bool(self._session.version))


def _wake(future: asyncio.Future[None], error: PenstockError | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


async def _open(
    where: ServerAddress,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(where, Local):
        with socket_path(where.directory) as path:
            return await asyncio.open_unix_connection(path, limit=READ_BYTES)
    if where.tls is None:
        return await asyncio.open_connection(where.host, where.port, limit=READ_BYTES)
    return await asyncio.open_connection(
        where.host,
        where.port,
        limit=READ_BYTES,
        ssl=where.tls.context(),
        ssl_shutdown_timeout=LAST_WORDS_S,
    )
