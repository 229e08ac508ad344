"""The publishers' side of the JSON gateway: QoS 2 inwards.

PUBREC means that the message is durable as pending, PUBCOMP that it is durable in its
topic. A repeated PUBREL finds nothing pending and is answered PUBCOMP, as soon as what
the first one did is durable. What does not fit the schema of its topic is refused at
its PUB; if the schema came in between, at its PUBREL, and is a dead letter then.
"""

from __future__ import annotations

from typing import assert_never

from penstock.broker.broker import Broker
from penstock.errors import InvalidPayload
from penstock.gateway.gateway import LOGIN_BYTES, LoginRequest
from penstock.gateway.json_lines import JsonGateway
from penstock.gateway.options import JsonOptions
from penstock.wire.jsonq import (
    LineRefusal,
    Login,
    Pub,
    PublisherPacket,
    Pubrel,
    parse_publisher,
    replies,
)

_LOST = replies.error("not stored: the write failed, send it again")


class JsonPublisherGateway(JsonGateway[PublisherPacket, None]):
    """One connection of a publisher."""

    side = "publisher"
    commands = replies.PUBLISHER_HELP

    def __init__(
        self,
        broker: Broker,
        options: JsonOptions,
        *,
        authenticate: bool = False,
        login_bytes: int = LOGIN_BYTES,
    ) -> None:
        super().__init__(
            broker, options, settled=not authenticate, login_bytes=login_bytes
        )

    def connected(self, now_s: float) -> None:
        """No greeting, unless a login is needed."""
        if not self.settled:
            self._outbox.now(replies.PLEASE_LOGIN)

    def output(self, now_s: float, room: int) -> list[bytes]:
        out = [data for data, _ in self._outbox.take()]
        if self._outbox:
            self._broker.waiting[self] = None
        return out

    def disconnected(self, now_s: float) -> None:
        """Pending messages stay: the PUBREL may come over another connection."""
        self._held = []

    def _parse(self, line: bytes) -> PublisherPacket | LineRefusal:
        return parse_publisher(line)

    def _try_login(self, login: Login | None, now_s: float) -> None:
        if login is not None and self._is_named(login):
            self._enter(login.user, now_s)
        elif login is None or login.password is None:
            self._not_in()
        else:
            self.login = LoginRequest(login.user, login.password)

    def _enter(self, user: str, now_s: float) -> None:
        self._settle()
        self._outbox.now(replies.LOGGED_IN)

    def _packet(self, packet: PublisherPacket, now_s: float) -> None:
        match packet:
            case Pub():
                topic = packet.topic
                self._broker.check_topic(topic)
                self.grants.check_publish(topic)
                self._broker.check_payloads(topic, [packet.payload])
                times, size = packet.times(), len(packet.payload)
                self._broker.accounts.admit_pending(topic, size)
                msg_id = self._broker.pending.add(topic, packet.payload, now_s, times)
                self._broker.accounts.charge(1, size)
                done = replies.pubrec(msg_id)
                self._outbox.after(self._broker.promised, done, _LOST)
            case Pubrel(msg_id):
                done = self._released(msg_id, now_s)
                self._outbox.after(self._broker.promised, done, _LOST)
            case _:
                assert_never(packet)

    def _released(self, msg_id: int, now_s: float) -> bytes:
        """Publish what is pending under this id, if it is; the answer."""
        message = self._broker.pending.get(msg_id)
        if message is not None:
            self.grants.check_publish(message.topic)
            try:
                self._broker.release(message, now_s)
            except InvalidPayload as error:
                return replies.error(f"{_given_up(msg_id)}: {error.for_client}")
        elif self._broker.pending.was_given_up(msg_id):
            return replies.error(_given_up(msg_id))
        return replies.pubcomp(msg_id)


def _given_up(msg_id: int) -> str:
    return f"message {msg_id} was given up and is a dead letter"
