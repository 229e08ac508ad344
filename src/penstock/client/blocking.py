"""The blocking client: for scripts, threads that wait, and the command line.

    with connect("penstock-data") as client:
        client.publish("orders", [b"one", b"two"])
        subscription = client.subscribe("orders", "billing", start="earliest")
        for delivery in subscription:
            print(delivery.payload)
            subscription.ack(delivery)

A client belongs to one thread. What it waits for arrives within ``timeout_s``, or the
connection counts as lost; waiting for events has no limit but the one you give.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from penstock.client.blocking_subscription import Subscription
from penstock.client.deliveries import Offsets
from penstock.client.fetching import FETCH_BYTES, Range, checked
from penstock.client.outgoing import Outgoing, Publishable, StagedEvents, traced
from penstock.client.session import NativeSession, SubscribeOptions, refusal
from penstock.client.tls import Tls, failed
from penstock.errors import Backlogged, ConnectionLost, PenstockError, ServerRefused
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
# A server that has too much to write is asked again after this.
RETRY_S = 0.01
# How long a server that has closed the connection is listened to.
LAST_WORDS_S = 1.0
# Of a socket that is not waited for.
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def connect(
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
) -> Client:
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
    client = Client(where, _open(where, timeout_s), timeout_s)
    client._tracing, client._name = tracing, name
    try:
        client._wait(client._session.hello(name, user, password, token))
    except BaseException:
        client.close()
        raise
    return client


class Client:
    """Made by ``connect``; close it, or use it as a context manager."""

    def __init__(
        self, where: ServerAddress, sock: socket.socket, timeout_s: float
    ) -> None:
        self._where = where
        self._socket = sock
        self._timeout_s = timeout_s
        self._session = NativeSession(str(where))
        self._tracing: Tracing | None = None
        self._name = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def server_version(self) -> str:
        return self._session.version

    @property
    def is_ended(self) -> bool:
        """Whether the server has said that it ends the connection."""
        return self._session.farewell is not None

    def close(self) -> None:
        """Send acks that were saved up and go; what is in flight is sent again."""
        try:
            self._session.flush_acks()
            self._send()
        except PenstockError:
            pass  # it is gone already
        finally:
            self._socket.close()

    def publish(
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
            return self._publish_all(topic, events)
        with traced(self._tracing, topic, events, self._name) as events:
            return self._publish_all(topic, events)

    def _publish_all(self, topic: str, events: Outgoing) -> Offsets:
        return Offsets.joined([self._publish(topic, part) for part in events.parts()])

    def subscribe(
        self,
        topic: str,
        subscriber: str | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> Subscription:
        """Consume a topic.

        The name of a subscriber keeps position and unsettled events; without one the
        subscription is temporary. ``options`` say more, see ``SubscribeOptions``: where
        it starts, its order, window, tries and so on.
        Raises ServerRefused, ConnectionLost.
        """
        seq = self._session.subscribe(topic, subscriber, **options)
        message = self._wait(seq)
        assert isinstance(message, Subscribed), "what Subscribe is answered by"
        inbox = self._session.inbox(message.channel)
        auto_ack = options.get("auto_ack", False)
        return Subscription(self, inbox, message.position, auto_ack=auto_ack)

    def fetch(
        self, topic: str, offset: int, end: int, max_bytes: int = FETCH_BYTES
    ) -> Range:
        """Events from ``offset`` to in front of ``end``, as many as fit; see Range.

        Raises ServerRefused (UnknownTopic, OffsetOutOfRange), ConnectionLost.
        """
        seq = self._session.fetch(topic, offset, end, max_bytes)
        return self._range(seq, topic, offset, end)

    def fetch_all(
        self, topic: str, offset: int, end: int, max_bytes: int = FETCH_BYTES
    ) -> Iterator[Range]:
        """All of a range, part by part; the next is on its way while one is used."""
        part = self.fetch(topic, offset, end, max_bytes)
        while (offset := part.next_offset) < min(end, part.end_offset):
            seq = self._session.fetch(topic, offset, end, max_bytes)
            try:
                self._send()
                yield part
            except BaseException:
                self._session.give_up(seq)
                raise
            part = self._range(seq, topic, offset, end)
        yield part

    def stage(
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
            self._wait(self._session.stage(place, piece, topic, part))
            piece += 1
        return piece

    def store(
        self, stages: Sequence[StagedEvents], commit: Mapping[str, object]
    ) -> object:
        """Stage events and commit their epoch; what ``sinks.commit`` answers.

        All in one go, if each part is one piece: a commit fails for a part that is not
        there. Of several pieces some may be missing, which would not be noticed.
        Raises InvalidBatch, ServerRefused, ConnectionLost.
        """
        parts = [(one, list(one.events.pieces())) for one in stages]
        at_once = all(len(pieces) == 1 for _, pieces in parts)
        staged = []
        for one, pieces in parts:
            for piece, events in enumerate(pieces):
                seq = self._session.stage(one.place, piece, one.topic, events)
                if at_once:
                    staged.append(seq)
                else:
                    self._wait(seq)
        seq = self._session.ask("sinks.commit", dict(commit))
        try:
            message = self._wait(seq)
        except ServerRefused:
            for earlier in staged:  # then it was refused because of that
                self._session.answer(earlier)
            raise
        for earlier in staged:
            self._session.forget(earlier)
        assert isinstance(message, Answer), "what Ask is answered by"
        return message.result

    def ask(self, verb: str, **arguments: object) -> object:
        """Ask the desk; see docs/protocols/native.md. Raises ServerRefused."""
        message = self._wait(self._session.ask(verb, arguments))
        assert isinstance(message, Answer), "what Ask is answered by"
        return message.result

    def _publish(self, topic: str, part: Outgoing) -> Offsets:
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            try:
                message = self._wait(self._session.publish(topic, part))
            except Backlogged:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(RETRY_S)
                continue
            assert isinstance(message, Published), "what Publish is answered by"
            return Offsets.of(message, len(part.payloads), part.columns.ids)

    def _range(self, seq: int, topic: str, offset: int, end: int) -> Range:
        message = self._wait(seq)
        assert isinstance(message, Fetched), "what Fetch is answered by"
        return checked(message, topic, offset, end)

    # Waiting

    def _wait(self, seq: int) -> ServerMessage:
        """The answer to what was just put into the session."""
        found: list[ServerMessage] = []

        def answered() -> bool:
            message = self._session.answer(seq)
            if message is not None:
                found.append(message)
            return bool(found)

        if not self._until(answered, self._timeout_s):
            reason = f"no answer within {self._timeout_s:g} s"
            raise ConnectionLost(str(self._where), reason)
        return found[0]

    def _until(self, ready: Callable[[], bool], timeout_s: float | None) -> bool:
        """Send, and read until ``ready``; False if time ran out."""
        self._session.flush_acks()
        self._send()
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not ready():
            left_s = None if deadline_s is None else deadline_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return False
            self._socket.settimeout(left_s)
            try:
                data = self._socket.recv(READ_BYTES)
            except TimeoutError:
                return False
            except OSError as error:
                raise self._ended(error) from error
            if not data:
                raise self._lost(CLOSED)
            self._session.receive(data)
        return True

    def _send(self) -> None:
        unsent = memoryview(self._session.output())
        try:
            self._socket.settimeout(0)
            while unsent:
                try:
                    unsent = unsent[self._socket.send(unsent) :]
                except _NOT_NOW:
                    self._make_room()
        except OSError as error:
            self._hear_out()
            raise self._ended(error) from error

    def _make_room(self) -> None:
        """Wait until more can be sent; the server may want us to read first."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLOUT)
        ready = poll.poll(self._timeout_s * 1000)
        if not ready:
            raise TimeoutError("timed out")
        if ready[0][1] & select.POLLIN:
            try:
                data = self._socket.recv(READ_BYTES)
            except _NOT_NOW:
                return  # a part of what TLS will make something of
            if not data:
                raise ConnectionResetError(CLOSED)
            self._session.receive(data)

    def _hear_out(self) -> None:
        """Read what the server said before it closed; raises ServerRefused."""
        with suppress(OSError):
            self._socket.settimeout(LAST_WORDS_S)
            while data := self._socket.recv(READ_BYTES):
                self._session.receive(data)

    def _ended(self, error: OSError) -> PenstockError:
        return failed(self._where, error) or self._lost(reason_of(error))

    def _lost(self, reason: str) -> ConnectionLost | ServerRefused:
        said = self._session.farewell
        if said is not None:
            return refusal(said)
        return lost(self._where, reason, welcome=bool(self._session.version))


def _open(where: ServerAddress, timeout_s: float) -> socket.socket:
    try:
        if isinstance(where, Local):
            return _open_local(where.directory, timeout_s)
        sock = socket.create_connection((where.host, where.port), timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock if where.tls is None else _secured(sock, where.tls, where.host)
    except OSError as error:
        raise not_running(where, error) from error


def _secured(sock: socket.socket, tls: Tls, host: str) -> socket.socket:
    try:
        return tls.context().wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _open_local(directory: str, timeout_s: float) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        with socket_path(directory) as path:
            sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock
