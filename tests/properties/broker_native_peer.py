"""A client of the native protocol: dedup ids, competing consumers, the desk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.desk.desk import Desk
from penstock.gateway.native import NativeGateway
from penstock.gateway.options import NativeOptions
from penstock.model.policy import Order, Policy
from penstock.wire.native import (
    Answer,
    Ask,
    ChannelMoved,
    ClientMessage,
    Ended,
    Events,
    FrameSplitter,
    Hello,
    Publish,
    Published,
    Refuse,
    RequestRefused,
    ServerMessage,
    Settle,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
    decode_server,
    encode,
)
from tests.properties.broker_json_peers import User
from tests.properties.broker_model import SENT, Key, Sub
from tests.properties.broker_peers import Peer

if TYPE_CHECKING:
    from tests.properties.broker_simulation import Simulation

NAMES = ("n1", "n2", "x", None)
DEDUP_IDS = ("d1", "d2", "d3", None)

Handler = Callable[[ServerMessage], None]


class NativePeer(Peer):
    def __init__(self, sim: Simulation) -> None:
        super().__init__(sim)
        self.native = NativeGateway(sim.broker, Desk(sim.broker), NativeOptions())
        self.gateway = self.native
        self.splitter = FrameSplitter(1 << 24)
        self.seq = 0
        self.handlers: dict[int, Handler] = {}
        self.channels: dict[int, Key] = {}
        self.last_channel = 0
        self.held: list[tuple[int, int]] = []
        self.ends: list[int] = []
        self.moves: list[ChannelMoved] = []

    def __str__(self) -> str:
        return f"native {self.native._number}"

    def start(self) -> None:
        super().start()
        self.say(Hello(None, None, "simulated"))

    def say(self, message: ClientMessage) -> None:
        self.receive(encode(message))

    def ask(self, handler: Handler) -> int:
        self.seq += 1
        self.handlers[self.seq] = handler
        return self.seq

    def introduce(self) -> None:
        self.subscribe(self.sim.some_topic(), self.sim.random.choice(NAMES))

    def act(self) -> None:
        r = self.sim.random
        draw, topic = r.random(), self.sim.some_topic()
        if draw < 0.3:
            self.publish(topic)
        elif draw < 0.37:
            self.subscribe(topic, r.choice(NAMES))
        elif draw < 0.42 and self.channels:
            busy = [channel for channel, _ in self.held] or list(self.channels)
            self.unsubscribe(r.choice(busy))
        elif draw < 0.45:
            self.ask_settled()
        elif draw < 0.65 and self.held:
            self.refuse(*r.choice(self.held))
        elif self.held:
            self.settle(r.sample(self.held, min(len(self.held), r.choice([1, 2, 9]))))

    def respond(self) -> None:
        self.settle(list(self.held))

    def publish(self, topic: str) -> None:
        r = self.sim.random
        count = r.choice([1, 1, 3])
        payloads = [self.sim.payload(topic) for _ in range(count)]
        ids = r.choice([None, [r.choice(DEDUP_IDS) for _ in range(count)]])
        priorities = r.choice([None, [r.choice([0, 3]) for _ in range(count)]])
        stored = self._originals(topic, payloads, ids)
        confirms = [self.sim.confirm(topic, payload) for payload in stored]
        seq = self.ask(lambda answer: self._published(answer, confirms))
        self.say(Publish(seq, topic, payloads, priorities=priorities, dedup_ids=ids))
        self._note_dedup(topic, payloads, ids, stored)

    def _originals(
        self, topic: str, payloads: list[bytes], ids: list[str | None] | None
    ) -> list[bytes]:
        """The payload that is stored for each: its own, or that of an earlier one."""
        now_ms = int(self.sim.now_s * 1000)
        oldest_ms = now_ms - self.sim.broker.options.dedup_age_s * 1000
        first: dict[str, bytes] = {}
        found = []
        for payload, id_ in zip(payloads, ids or [None] * len(payloads), strict=True):
            original = payload
            if id_ is not None:
                known = self.sim.world.dedup.get((topic, id_))
                if known is not None and known[1] >= oldest_ms:
                    original = self.sim.at(topic, known[0]).payload
                else:
                    original = first.setdefault(id_, payload)
            found.append(original)
        return found

    def _note_dedup(
        self,
        topic: str,
        payloads: list[bytes],
        ids: list[str | None] | None,
        stored: list[bytes],
    ) -> None:
        now_ms = int(self.sim.now_s * 1000)
        for payload, id_, original in zip(
            payloads, ids or [None] * len(payloads), stored, strict=True
        ):
            row = self.sim.appended.get((topic, payload))
            if payload != original:
                self.sim.met["dedup id again"] += 1
                self.sim.expect(row is None, f"{topic} {id_} was stored again")
            elif row is not None and id_ is not None:
                offset = self.sim.offset(topic, payload)
                assert offset is not None
                self.sim.world.dedup[topic, id_] = (offset, now_ms, row.group)

    def _published(self, answer: Any, confirms: list[Callable[[bytes], None]]) -> None:
        if isinstance(answer, RequestRefused):
            return
        assert isinstance(answer, Published), answer
        offsets = answer.offsets
        if isinstance(offsets, int):
            offsets = list(range(offsets, offsets + len(confirms)))
        for offset, confirm in zip(offsets, confirms, strict=True):
            confirm(b"published %d" % offset)

    def subscribe(self, topic: str, name: str | None) -> None:
        r = self.sim.random
        timeout_s, tries = r.choice([(None, None), (None, 2), (15.0, 4), (None, 6)])
        starts: list[str | int] = ["latest", "earliest", 2]
        order: Order = r.choice(["log", "log", "priority"])
        policy = Policy(
            order=order,
            window=r.choice([1, 3, 100, 100]),
            ack_timeout_s=timeout_s,
            tries=tries,
            qos=0 if r.random() < 0.1 else 1,
            in_order=order == "log" and r.random() < 0.3,
        )
        other = self.sim.world.subs.get((name or "", topic))
        if other is not None and other.holders and other.policy.order == "log":
            # Who wants in order what somebody has is refused, but for its quality.
            wanted = replace(other.policy, in_order=True)
            policy = r.choice([policy, wanted])
        self.subscribe_as(topic, name, r.choice(starts), policy)

    def subscribe_as(
        self, topic: str, name: str | None, start: str | int, policy: Policy
    ) -> None:
        end = self.sim.world.end(topic)
        place = min(start, end) if isinstance(start, int) else end
        if start == "earliest":
            place = 0
        number = self.last_channel + 1
        key = name or f"$native-{self.native._number}-{number}", topic
        if key in self.channels.values():
            return

        def done(answer: ServerMessage) -> None:
            self.sim.expect(isinstance(answer, Subscribed), f"{answer}")
            promise(b"")

        def refused(answer: ServerMessage) -> None:
            self.sim.expect(isinstance(answer, RequestRefused), f"{answer}")

        known = self.sim.broker.log.has_topic(topic)
        if known:
            known = self.join(key, policy, place, temporary=name is None) is not None
        promise = self.sim.promise(key)
        seq = self.ask(done if known else refused)
        if known:
            self.last_channel = number
            self.channels[number] = key
            self.sim.users.setdefault(key[0], User()).shared.add(topic)
        self.say(
            Subscribe(
                seq,
                topic,
                name,
                start,
                policy.order,
                policy.window,
                policy.ack_timeout_s,
                policy.tries,
                policy.qos == 0,
                in_order=policy.in_order,
            )
        )

    def unsubscribe(self, channel: int) -> None:
        key = self.channels.pop(channel)
        here = [offset for one, offset in self.held if one == channel]
        unbegun = self.sim.random.sample(here, len(here) // 2)
        self.held = [one for one in self.held if one[0] != channel]
        promise: Callable[[bytes], None] | None = None
        seq = self.ask(lambda _: promise(b"") if promise is not None else None)
        self.say(Unsubscribe(seq, channel, unbegun))
        for offset in unbegun:
            self.sim.world.subs[key].put_back(offset, self)
            self.sim.met["put back"] += 1
        self.part(key, ends=False)
        promise = self.sim.promise(key)

    def ask_settled(self) -> None:
        keys = set(self.channels.values())
        known = {
            key: set(self.sim.world.subs[key].settled)
            for key in keys
            if not self.sim.world.subs[key].temporary
        }

        def done(answer: ServerMessage) -> None:
            self.sim.expect(isinstance(answer, Answer), f"{answer}")
            for key, epoch, offsets in marks:
                if self.sim.epochs[key] == epoch:
                    self.sim.answered.setdefault(key, set()).update(offsets)

        marks = [(key, self.sim.epochs[key], some) for key, some in known.items()]
        self.say(Ask(self.ask(done), "settled", {}))

    def settle(self, chosen: list[tuple[int, int]]) -> None:
        for channel in {channel for channel, _ in chosen}:
            offsets = [offset for one, offset in chosen if one == channel]
            self.say(Settle(channel, offsets))
            sub = self.sim.world.subs[self.channels[channel]]
            for offset in offsets:
                self.held.remove((channel, offset))
                if sub.held(offset, self) is not None:
                    sub.settle(offset)

    def refuse(self, channel: int, offset: int) -> None:
        self.held.remove((channel, offset))
        sub = self.sim.world.subs[self.channels[channel]]
        debt = sub.held(offset, self)
        final = self.sim.random.random() < 0.5
        self.say(Refuse(channel, offset, "no", "ValueError", final=final))
        if debt is not None and debt.stage == SENT:
            then = sub.fail(offset, "ValueError", final=final)
            self.sim.met["final refusal"] += final
            self.sim.follow(sub, {offset: (then, debt)})

    def output(self, data: bytes) -> None:
        for body in self.splitter.feed(data):
            self.message(decode_server(body))

    def message(self, message: ServerMessage) -> None:
        match message:
            case Welcome():
                pass
            case Events():
                self.events(message)
            case ChannelMoved():
                self.sim.expect(message in self.moves, f"{message}")
                self.moves.remove(message)
            case Ended():
                self.sim.expect(message.channel in self.ends, f"{message}")
                self.ends.remove(message.channel)
            case _:
                handler = self.handlers.pop(message.seq, None)
                self.sim.expect(handler is not None, f"{self}: {message}")
                assert handler is not None
                handler(message)

    def events(self, events: Events) -> None:
        key = self.channels.get(events.channel)
        self.sim.expect(key is not None, f"{self}: events of a channel that ended")
        assert key is not None
        for at, offset in enumerate(events.offsets):
            found = self.sim.deliver(self, key, events.payloads[at])
            self.sim.expect(found == offset, f"{self}: {found}, not {offset}")
            debt = self.sim.world.subs[key].owed.get(offset)
            tries = 1 if events.tries is None else events.tries[at]
            if debt is not None:
                self.sim.expect(tries == debt.tries, f"{tries}, not {debt.tries} tries")
                self.held.append((events.channel, offset))

    def moved(self, sub: Sub) -> None:
        for channel, key in list(self.channels.items()):
            if key == (sub.name, sub.topic):
                self.last_channel += 1
                self.channels[self.last_channel] = self.channels.pop(channel)
                self.held = [one for one in self.held if one[0] != channel]
                self.moves.append(ChannelMoved(channel, self.last_channel))
                self.sim.met["moved"] += 1

    def ended(self, sub: Sub, reason: str) -> None:
        for channel, key in list(self.channels.items()):
            if key == (sub.name, sub.topic):
                del self.channels[channel]
                self.held = [one for one in self.held if one[0] != channel]
                self.ends.append(channel)
