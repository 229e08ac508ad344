"""The line gateway: the manners of ``pub``, ``sub``, ``ack`` and their answers.

One read may hold thousands of lines. Runs of ``pub`` become one batch per topic, runs
of ``ack`` one answer, and events go out as slices of pages that were rendered once for
all subscribers.

Promises: with ``confirm on`` a publisher hears ``published`` after the commit; a named
subscriber hears that an ack counts after the commit, and the next event after that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import count

from penstock.broker.broker import Broker
from penstock.broker.names import accepted_subscriber
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.delivery.subscription import Subscription
from penstock.errors import PenstockError, RemoteProtocolError
from penstock.gateway.gateway import LOGIN_BYTES, WRONG_LINES, LoginRequest
from penstock.gateway.held_lines import NEW_TOPICS, HeldLines
from penstock.gateway.line_pub import LinePublishing
from penstock.gateway.line_share import LineShare
from penstock.gateway.options import LineOptions
from penstock.gateway.outbox import Outbox
from penstock.model.policy import MAX_WINDOW, Policy
from penstock.wire.line import (
    ARITY,
    Command,
    CommandWords,
    command_run,
    ids_of,
    publishes,
    replies,
    split,
    text,
    unknown,
)
from penstock.wire.lines import TOO_LONG, LineSplitter

_connections = count(1)
# Lines of an unknown client that are no login: each earns an answer, which it may not
# read. A person who finds out how to log in needs fewer.
STRAY_LINES = 16


@lru_cache(maxsize=8)
def words_of(options: LineOptions) -> CommandWords:
    """What clients say for the commands, by the settings."""
    return CommandWords(
        pub=options.pub_word.encode(),
        sub=options.sub_word.encode(),
        unsub=options.unsub_word.encode(),
        ack=options.ack_word.encode(),
    )


class LineGateway(HeldLines):
    """One connection of the line protocol."""

    def __init__(
        self,
        broker: Broker,
        options: LineOptions,
        *,
        authenticate: bool = False,
        login_bytes: int = LOGIN_BYTES,
    ) -> None:
        self.closing = False
        self.login: LoginRequest | None = None
        self.settled = not authenticate
        self._broker = broker
        self._options = options
        self._words = words_of(options)
        limit = options.max_line_bytes
        self._splitter = LineSplitter(
            min(limit, login_bytes) if authenticate else limit
        )
        self._name: str | None = None
        self._number = next(_connections)
        self._window = options.window
        self._shares: dict[str, LineShare] = {}
        self._ready: dict[Consumer, None] = {}
        """Those for whom there may be something to take."""
        self._outbox: Outbox[LineShare] = Outbox(broker.log)
        self._publisher = LinePublishing(broker, self._outbox)
        self._held: list[bytes] = []
        self._attempts = 0
        self._strays = 0
        self._wrong = 0
        """Lines of this read that were no commands."""

    def connected(self, now_s: float) -> None:
        self._outbox.now(replies.GREETING)

    def receive(self, data: bytes, now_s: float) -> None:
        self._wrong = 0
        block = self._splitter.block(data)
        if block is None:
            self._lines(self._splitter.feed(data), now_s)
        elif block and not (self.settled and self._run(block, now_s)):
            self._lines(block[:-1].split(b"\n"), now_s)
        if not self.settled and self._splitter.overlong:
            self._too_long()

    def eof(self, now_s: float) -> None:
        """A line without an end is carried out too, as a person's last one may be."""
        rest = self._splitter.rest
        if rest.strip():
            self._lines([rest], now_s)
        self.closing = True

    def logged_in(self, ok: bool, now_s: float) -> None:
        request, self.login = self.login, None
        assert request is not None, "it is called after a login was asked for"
        if ok:
            self._enter(request.user)
        else:
            self._attempts += 1
            self.closing = self._attempts >= self._options.login_attempts
            wrong = f"wrong password for {request.user}"
            self._outbox.now(replies.error(str(self.refusal or wrong)))
            self.refusal = None
        held, self._held = self._held, []
        self._lines(held, now_s)

    def cut_off(self, reason: str, now_s: float) -> None:
        self._outbox.now(replies.error(reason))
        self.closing = True

    def output(self, now_s: float, room: int) -> list[bytes]:
        out: list[bytes] = []
        for data, share in self._outbox.take():
            out.append(data)
            if share is not None:
                share.blocked -= 1
                if not share.blocked and not share.ended:
                    out += share.next(now_s) or [replies.NO_MESSAGE] * share.asked
                    share.asked = False
        room -= sum(map(len, out))
        if self._ready:
            self._serve(out, now_s, room)
        if self._outbox:
            self._broker.waiting[self] = None
        return out

    def _serve(self, out: list[bytes], now_s: float, room: int) -> None:
        """Add events, about ``room`` bytes; who gets none comes first the next time."""
        for consumer in list(self._ready):
            if room <= 0:
                break
            share = self._shares.get(consumer.subscription.topic)
            if share is None or share.consumer is not consumer:
                del self._ready[consumer]
            elif not share.blocked:
                sent = share.push(now_s)
                room -= sum(map(len, sent))
                out += sent

    def disconnected(self, now_s: float) -> None:
        for share in self._shares.values():
            self._broker.detach(share.consumer)
        self._shares.clear()
        self._ready.clear()
        self._held = []

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        raise AssertionError("this protocol has no PUBREL")

    def moved(self, consumer: Consumer) -> None:
        """What comes next is sent as if nothing had been."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        topic = consumer.subscription.topic
        share = self._shares.pop(topic)
        share.ended = True
        self._outbox.now(replies.error(f"subscription to {topic} ended: {reason}"))

    # Commands

    def _run(self, block: bytes, now_s: float) -> bool:
        """Carry out lines that are all alike at once; False if they are not."""
        run = command_run(block, self._words)
        if run is None:
            return False
        word, name, rests = run
        try:
            topic = name.decode()
        except UnicodeDecodeError:
            return False
        if word == Command.PUB:
            return self._publisher.publish_run(topic, rests, now_s)
        share, ids = self._shares.get(topic), ids_of(rests)
        if share is None or ids is None or not share.ack_run(ids):
            return False
        self._answer_acks(replies.ACKNOWLEDGED * len(ids), [share])
        return True

    def _lines(self, lines: list[bytes], now_s: float) -> None:
        at, end = 0, len(lines)
        log = self._broker.log
        most = log.topic_count + NEW_TOPICS
        while at < end and not self.closing:
            if self.settled:
                topics, events, _ = publishes(lines, at, self._words)
                if events:
                    at += self._publisher.publish(topics, events, now_s)
                at = self._acks(lines, at, now_s)
            if at < end and log.topic_count < most:
                self._command(lines[at], now_s)
                at += 1
                if not self.settled and self.login is None:
                    self._strays += 1
                    self.closing |= self._strays >= STRAY_LINES
            if self.login is not None or log.topic_count >= most:
                self._held = lines[at:]
                return

    def _too_long(self) -> None:
        """The connection goes on with the next line, once it is known whose it is."""
        self._outbox.now(replies.line_too_long(self._splitter.max_bytes))
        self.closing |= not self.settled

    def _command(self, line: bytes, now_s: float) -> None:
        if line == TOO_LONG:
            self._too_long()
            return
        parts = split(line)
        word = self._words.meant.get(parts[0])
        if word == Command.AS and len(parts) in (2, 3):
            self._guarded(self._as, parts)
        elif word is None or ARITY[word] != len(parts):
            self._no_command(parts)
        elif word == Command.HELP:
            self._outbox.now(replies.help_text(self._words))
        elif not self.settled:
            self._outbox.now(replies.error("log in first: as <name> <password>"))
        elif word == Command.PUB:
            self._publisher.publish([parts[1]], [parts[2]], now_s)
        elif word == Command.ACK:
            self._acks([line], 0, now_s)
        elif word == Command.SUB:
            self._guarded(self._sub, parts)
        elif word == Command.UNSUB:
            self._guarded(self._unsub, parts)
        elif word == Command.CONFIRM and parts[1] in (b"on", b"off"):
            self._publisher.confirm = parts[1] == b"on"
            on = self._publisher.confirm
            self._outbox.now(replies.CONFIRM_ON if on else replies.CONFIRM_OFF)
        elif word == Command.WINDOW:
            self._guarded(self._set_window, parts)
        else:
            self._no_command(parts)

    def _no_command(self, parts: list[bytes]) -> None:
        self._outbox.now(unknown(parts))
        self._wrong += 1
        self.closing |= self._wrong >= WRONG_LINES

    def _guarded(
        self, command: Callable[[list[bytes]], None], parts: list[bytes]
    ) -> None:
        try:
            command(parts)
        except RemoteProtocolError as error:
            self._outbox.now(replies.error(error.text))
        except PenstockError as error:
            self._outbox.now(replies.error(error.for_client))

    def _as(self, parts: list[bytes]) -> None:
        if self._shares:
            raise RemoteProtocolError("line", "as must come before the first sub")
        name = accepted_subscriber(text("name", parts[1]))
        if len(parts) == 2 and not self.settled and self.is_vouched(name):
            self._enter(name)
        elif len(parts) == 3 and not self.settled:
            self.login = LoginRequest(name, text("password", parts[2]))
        elif len(parts) == 3 or not self.settled:
            needs = "as <name>" if self.settled else "as <name> <password>"
            raise RemoteProtocolError("line", f"say it as: {needs}")
        else:
            self._name_subscriber(name)

    def _enter(self, user: str) -> None:
        self.settled = True
        self._splitter.max_bytes = self._options.max_line_bytes
        self._publisher.grants = self.grants
        self._name_subscriber(user)

    def _name_subscriber(self, name: str) -> None:
        self._name = self.who = name
        self._outbox.now(replies.subscriber(name))

    def _set_window(self, parts: list[bytes]) -> None:
        digits = parts[1].isdigit() and len(parts[1]) <= len(str(MAX_WINDOW))
        if not digits or not 1 <= int(parts[1]) <= MAX_WINDOW:
            shown = text("window", parts[1])[:80]
            limit = f"must be an integer from 1 to {MAX_WINDOW}"
            raise RemoteProtocolError("line", f"window is {shown}: {limit}")
        self._window = int(parts[1])
        for share in self._shares.values():
            self._subscribe(share.topic)
        self._outbox.now(replies.window(self._window))

    def _sub(self, parts: list[bytes]) -> None:
        topic = text("topic", parts[1])
        self.grants.check_subscribe(topic, self._name)
        if not self._broker.log.has_topic(topic):
            if not self._options.create_on_sub:
                self._outbox.now(replies.no_topic(topic))
                return
            self._broker.create_topic(topic)
        done = replies.subscribed(topic)
        if topic in self._shares:
            self._outbox.now(done)
            return
        end = self._broker.log.topic(topic).next_offset
        consumer = self._broker.attach(self._subscribe(topic), self)
        share = LineShare(self._broker, consumer, end, self._ready)
        self._shares[topic] = share
        self._promise(done, share)

    def _subscribe(self, topic: str) -> Subscription:
        name = self._name or f"$line-{self._number}"
        policy = Policy(order="priority", window=self._window)
        return self._broker.subscribe(name, topic, policy, temporary=not self._name)

    def _unsub(self, parts: list[bytes]) -> None:
        topic = text("topic", parts[1])
        share = self._shares.pop(topic, None)
        if share is not None:
            share.ended = True
            self._broker.unsubscribe(share.consumer)
        elif self._name:
            self.grants.check_subscribe(topic, self._name)
            self._broker.deactivate(self._name, topic)
        done = replies.unsubscribed(topic)
        if not self._name:
            self._outbox.now(done)
        else:
            self._outbox.after(self._broker.promised, done)

    def _acks(self, lines: list[bytes], at: int, now_s: float) -> int:
        """Settle a run of ``ack`` lines; where it ends."""
        answers: list[bytes] = []
        asked: dict[str, LineShare] = {}
        while at < len(lines):
            parts = split(lines[at])
            if parts[0] != self._words.ack or len(parts) != 3:
                break
            at += 1
            try:
                topic, id_ = parts[1].decode(), parts[2].decode()
            except UnicodeDecodeError:
                answers.append(replies.error("ack is not valid UTF-8"))
                continue
            share = self._shares.get(topic)
            if share is None:
                answers.append(replies.not_a_subscriber(topic))
                continue
            answer = share.ack(id_)
            if answer is None:
                answers.append(replies.no_event(id_))
            else:
                answers.append(answer)
                asked[topic] = share
        if answers:
            self._answer_acks(b"".join(answers), list(asked.values()))
        return at

    def _answer_acks(self, data: bytes, shares: list[LineShare]) -> None:
        if not shares:
            self._outbox.now(data)
            return
        self._promise(data, shares[0])
        for share in shares[1:]:
            self._promise(b"", share)
        for share in shares:
            share.asked = True
            subscription = share.consumer.subscription
            if (
                len(subscription.consumers) > 1
            ):  # there is room in the window for others
                self._broker.wake(subscription)

    def _promise(self, data: bytes, share: LineShare) -> None:
        """An answer that the next event of the share has to follow."""
        share.blocked += 1
        if share.consumer.subscription.temporary:
            self._outbox.now(data, share)
        else:
            self._outbox.after(self._broker.promised, data, mark=share)
