"""The publishers' side of the JSON gateway: QoS 2 inwards.

PUBREC means that the message is durable as pending, PUBCOMP that it is durable in its
topic. A repeated PUBREL finds nothing pending and is answered PUBCOMP, as soon as what
the first one did is durable.
"""

from __future__ import annotations

from typing import assert_never

from penstock.broker.acceptance import accepted_topic
from penstock.broker.broker import Broker
from penstock.errors import PenstockError
from penstock.gateway.gateway import Gateway, LoginRequest
from penstock.gateway.json_letters import RawLetters
from penstock.gateway.options import JsonOptions
from penstock.gateway.outbox import Outbox
from penstock.wire.jsonq import (
    Pub,
    PublisherPacket,
    Pubrel,
    Refusal,
    parse_login,
    parse_publisher,
    replies,
)
from penstock.wire.lines import TOO_LONG, LineSplitter

_LOST = replies.error("not stored: the write failed, send it again")


class PublisherGateway(Gateway):
    """One connection of a publisher."""

    def __init__(
        self, broker: Broker, options: JsonOptions, *, authenticate: bool = False
    ) -> None:
        self.closing = False
        self.login: LoginRequest | None = None
        self.settled = not authenticate
        self._broker = broker
        self._options = options
        self._splitter = LineSplitter(options.max_line_bytes)
        self._letters = RawLetters(broker, options)
        self._outbox: Outbox[None] = Outbox(broker.log)
        self._attempts = 0
        self._held: list[bytes] = []

    def connected(self, now_s: float) -> None:
        """No greeting, unless a login is needed."""
        if not self.settled:
            self._outbox.now(replies.PLEASE_LOGIN)

    def receive(self, data: bytes, now_s: float) -> None:
        self._lines(self._splitter.feed(data), now_s)

    def eof(self, now_s: float) -> None:
        if self.settled and self._splitter.rest.strip():
            self._line(self._splitter.rest, now_s)
        self.closing = True

    def logged_in(self, ok: bool, now_s: float) -> None:
        self.login = None
        if ok:
            self.settled = True
            self._outbox.now(replies.LOGGED_IN)
        else:
            self._not_in()
        held, self._held = self._held, []
        self._lines(held, now_s)

    def output(self, now_s: float, room: int) -> list[bytes]:
        out = [data for data, _ in self._outbox.take()]
        if self._outbox:
            self._broker.waiting[self] = None
        return out

    def disconnected(self, now_s: float) -> None:
        """Pending messages stay: the PUBREL may come over another connection."""

    def _lines(self, lines: list[bytes], now_s: float) -> None:
        for at, line in enumerate(lines):
            if self.closing:
                return
            if self.login is not None:
                self._held = lines[at:]
                return
            if self.settled:
                self._line(line, now_s)
            else:
                self._login_line(line)

    def _login_line(self, line: bytes) -> None:
        login = None if line == TOO_LONG else parse_login(line)
        if login is None or login.password is None:
            self._not_in()
        else:
            self.login = LoginRequest(login.user, login.password)

    def _not_in(self) -> None:
        self._attempts += 1
        self.closing = self._attempts >= self._options.login_attempts
        answer = replies.LOGIN_FAILED if self.closing else replies.PLEASE_LOGIN
        self._outbox.now(answer)

    def _line(self, line: bytes, now_s: float) -> None:
        if line == TOO_LONG:
            self._letters.add_overlong("publisher")
            self._outbox.now(replies.INVALID_JSON)
            return
        packet = parse_publisher(line)
        if isinstance(packet, Refusal):
            self._letters.add(line, "publisher", packet)
            self._outbox.now(packet.value)
            return
        try:
            self._packet(packet, now_s)
        except PenstockError as error:
            self._outbox.now(replies.error(str(error)))

    def _packet(self, packet: PublisherPacket, now_s: float) -> None:
        match packet:
            case Pub():
                topic = accepted_topic(packet.topic)
                msg_id = self._broker.pending.add(topic, packet.payload, now_s)
                done = replies.pubrec(msg_id)
                self._outbox.after(self._broker.promised, done, _LOST)
            case Pubrel(msg_id):
                message = self._broker.pending.get(msg_id)
                if message is not None:
                    self._broker.release(message, now_s)
                elif self._broker.pending.was_given_up(msg_id):
                    reason = "waited too long for its PUBREL and is a dead letter"
                    self._outbox.now(replies.error(f"message {msg_id} {reason}"))
                    return
                done = replies.pubcomp(msg_id)
                self._outbox.after(self._broker.promised, done, _LOST)
            case _:
                assert_never(packet)
