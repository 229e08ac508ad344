"""What both sides of the JSON gateway have in common: lines, logins, refusals.

Lines that make no sense go to the topic for them, and to the dead letters. A client
that may not publish to that topic gets a dead letter alone.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from penstock.access.grants import Grants
from penstock.broker.broker import Broker
from penstock.errors import InvalidPayload, PenstockError
from penstock.gateway.gateway import LOGIN_BYTES, WRONG_LINES
from penstock.gateway.held_lines import NEW_TOPICS, HeldLines
from penstock.gateway.options import JsonOptions
from penstock.gateway.outbox import Outbox
from penstock.log import Columns
from penstock.wire.jsonq import LineRefusal, Login, parse_login, replies
from penstock.wire.lines import TOO_LONG, LineSplitter

logger = logging.getLogger(__name__)

_REASONS = {
    LineRefusal.INVALID_JSON: "invalid JSON",
    LineRefusal.UNKNOWN_COMMAND: "unknown command",
}


class RawLetters:
    """Keeps the raw lines of one connection."""

    def __init__(self, broker: Broker, options: JsonOptions) -> None:
        self._broker = broker
        self._topic = options.dead_letter_topic
        self._limit = options.max_line_bytes
        broker.bound(self._topic)

    def add(self, line: bytes, side: str, refusal: LineRefusal, sender: Grants) -> None:
        """Keep a line that could not be understood."""
        self._keep(line, side, _REASONS[refusal], sender)

    def add_overlong(self, side: str, sender: Grants) -> None:
        """Keep the fact of a line that was too long to be kept."""
        self._keep(b"", side, f"line exceeds {self._limit} bytes", sender)

    def _keep(self, line: bytes, side: str, reason: str, sender: Grants) -> None:
        raw = line.rstrip(b"\r\n")
        payload = msgspec.json.encode(raw.decode(errors="replace"))
        headers = {"reason": reason, "gateway": f"json {side}"}
        columns = Columns([payload], self._broker.log.now_ms(), headers=[headers])
        try:
            if sender.may_publish(self._topic):
                # No account has the topic; if that is too much, the letter is enough.
                with self._broker.accounts.acting(None), suppress(InvalidPayload):
                    self._broker.publish(self._topic, columns)
            self._broker.dead_letter(gateway=f"json {side}", reason=reason, raw=raw)
        except PenstockError as error:
            # The sender is answered anyway; it knows what it sent.
            self._broker.throttle.log(
                logger,
                logging.ERROR,
                "a line that makes no sense is not kept: %s",
                error,
                extra={"action": "letter_lost"},
            )


JsonPacket = TypeVar("JsonPacket")
AnswerMark = TypeVar("AnswerMark")


class JsonGateway(HeldLines, Generic[JsonPacket, AnswerMark]):
    """One connection: until it is settled its lines are logins, then packets."""

    side: str
    """As the dead letters call it."""
    commands: bytes
    """What ``help`` is answered with."""

    def __init__(
        self,
        broker: Broker,
        options: JsonOptions,
        *,
        settled: bool,
        login_bytes: int = LOGIN_BYTES,
    ) -> None:
        self.closing = False
        self.login = None
        self.settled = settled
        self._broker = broker
        self._options = options
        limit = options.max_line_bytes
        self._splitter = LineSplitter(limit if settled else min(limit, login_bytes))
        self._letters = RawLetters(broker, options)
        self._outbox: Outbox[AnswerMark] = Outbox(broker.log)
        self._attempts = 0
        self._wrong = 0
        """Lines of this read that were no packets."""
        self._held: list[bytes] = []
        self._helped = False
        """Whether a client that is not logged in has been told how to."""

    def receive(self, data: bytes, now_s: float) -> None:
        self._wrong = 0
        self._lines(self._splitter.feed(data), now_s)
        if not self.settled and not self.closing and self._splitter.overlong:
            self._give_up()

    def eof(self, now_s: float) -> None:
        if self.settled and self._splitter.rest.strip():
            self._line(self._splitter.rest, now_s)
        self.closing = True

    def logged_in(self, ok: bool, now_s: float) -> None:
        request, self.login = self.login, None
        assert request is not None, "it is called after a login was asked for"
        if ok:
            self._enter(request.user, now_s)
        else:
            self._not_in()
        held, self._held = self._held, []
        self._lines(held, now_s)

    def cut_off(self, reason: str, now_s: float) -> None:
        self._outbox.now(replies.error(reason))
        self.closing = True

    def _parse(self, line: bytes) -> JsonPacket | LineRefusal:
        raise NotImplementedError

    def _packet(self, packet: JsonPacket, now_s: float) -> None:
        raise NotImplementedError

    def _try_login(self, login: Login | None, now_s: float) -> None:
        """Carry out a login line; None is a line that is no login."""
        raise NotImplementedError

    def _enter(self, user: str, now_s: float) -> None:
        """Let a user in whose password is right."""
        raise NotImplementedError

    def _is_named(self, login: Login) -> bool:
        """Whether the peer's certificate spares it the password."""
        return login.password is None and self.is_vouched(login.user)

    def _settle(self) -> None:
        """From now on lines may be as long as packets are."""
        self.settled = True
        self._splitter.max_bytes = self._options.max_line_bytes

    def _give_up(self) -> None:
        """No login is so long."""
        self._outbox.now(replies.LOGIN_FAILED)
        self.closing = True

    def _not_in(self) -> None:
        self._attempts += 1
        self.closing = self._attempts >= self._options.login_attempts
        answer = replies.LOGIN_FAILED if self.closing else replies.PLEASE_LOGIN
        refusal, self.refusal = self.refusal, None
        self._outbox.now(answer if refusal is None else replies.error(str(refusal)))

    def _lines(self, lines: list[bytes], now_s: float) -> None:
        log = self._broker.log
        most = log.topic_count + NEW_TOPICS
        for at, line in enumerate(lines):
            if self.closing:
                return
            if self.login is not None or log.topic_count >= most:
                self._held = lines[at:]
                return
            if line.strip() == replies.HELP and self._help():
                continue
            if self.settled:
                self._line(line, now_s)
            elif line == TOO_LONG:
                self._give_up()
            else:
                self._try_login(parse_login(line), now_s)

    def _help(self) -> bool:
        """List the commands; once only to a client that has not logged in."""
        if self.settled:
            self._outbox.now(self.commands)
            self._wrong += 1
            self.closing |= self._wrong >= WRONG_LINES
            return True
        again, self._helped = self._helped, True
        if not again:
            self._outbox.now(replies.LOGIN_HELP + self.commands)
        return not again

    def _line(self, line: bytes, now_s: float) -> None:
        if line == TOO_LONG:
            self._letters.add_overlong(self.side, self.grants)
            self._outbox.now(replies.INVALID_JSON)
            return
        packet = self._parse(line)
        if isinstance(packet, LineRefusal):
            self._letters.add(line, self.side, packet, self.grants)
            self._outbox.now(packet.value)
            self._wrong += 1
            self.closing |= self._wrong >= WRONG_LINES
            return
        try:
            self._packet(packet, now_s)
        except PenstockError as error:
            self._outbox.now(replies.error(error.for_client))
