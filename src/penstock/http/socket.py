"""Events over a WebSocket: sent within a window, settled by the client's acks.

The server sends ``{"events": […]}``, each event with the try that it is. The client
sends ``{"ack": [offsets]}`` and ``{"nack": [{"offset", "error", "final"}]}``, both at
any time, in any order. One message holds all that a turn of the broker brought. A
subscription that is moved or ends takes its socket with it: acks of before must not
count for what comes after.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from penstock.access.account import Account
from penstock.http.access import Access
from penstock.http.call import SocketCall
from penstock.http.event_json import portion_json, with_tries
from penstock.http.following import (
    WINDOW,
    FollowTerms,
    FollowWindow,
    address_of,
    follow,
    start_in,
)
from penstock.http.house import House
from penstock.http.notifier import Notifier
from penstock.http.opened import Guest
from penstock.http.pacing import paced
from penstock.http.pull import AckOffsets, Nacks, refused
from penstock.http.reading import query_of, typed
from penstock.http.stream_consumer import StreamConsumer
from penstock.model.policy import Order, Policy
from penstock.wire.json_text import NOT_JSON

# Why a socket is closed, for programs; the reason says it to people.
GOING_AWAY = 1001
BAD_MESSAGE = 1008
REVOKED = 1008
ENDED = 4000
MOVED = 4001
# Longer ones do not fit into a close frame.
MAX_REASON_BYTES = 123

_DEFAULT = Policy(window=WINDOW)


class SocketQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """``window``: how many events may be without an ack. ``start``: where to begin.

    ``subscriber``: a name that keeps its place and what it owes.
    """

    subscriber: str | None = None
    window: FollowWindow | None = None
    start: str | None = None
    order: Order | None = None


class FromClient(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What became of events."""

    ack: AckOffsets = []
    nack: Nacks = []


_decode = msgspec.json.Decoder(FromClient).decode


async def socket(call: SocketCall) -> None:
    """Serve one socket; raises what subscribing raises before it is accepted."""
    query = typed(query_of(call.socket.scope["query_string"]), SocketQuery, "socket")
    house, topic = call.house, call.path["topic"]
    if query.subscriber is not None:
        call.need_as(topic, query.subscriber)
    with ExitStack() as stack:
        guest = stack.enter_context(house.opened.one(call.still, call.account))
        consumer = await follow(
            house,
            topic,
            query.subscriber,
            start=start_in(query.start),
            terms=FollowTerms(window=query.window, order=query.order),
            default=_DEFAULT,
            address=address_of(call.socket),
            account=call.account,
        )
        stack.callback(consumer.close)
        await call.socket.accept()
        may_refuse = call.who.may(Access.CONSUME, topic)
        serving = _Serving(
            *(house, guest, call.socket, consumer, call.account), may_refuse=may_refuse
        )
        await serving.run()


class _Serving:
    def __init__(
        self,
        house: House,
        guest: Guest,
        socket: WebSocket,
        consumer: StreamConsumer,
        account: Account | None,
        *,
        may_refuse: bool,
    ) -> None:
        self._house = house
        self._guest = guest
        self._socket = socket
        self._consumer = consumer
        self._account = account
        self._may_refuse = may_refuse
        self._wrong: str | None = None
        """What the client has said that makes no sense."""
        self._failure: Exception | None = None
        self._gone = False

    async def run(self) -> None:
        tasks = [
            asyncio.create_task(self._listen()),
            asyncio.create_task(self._until_ended(self._consumer.notifier)),
        ]
        try:
            await self._talk()
            if not self._gone:
                await self._say_goodbye()
        except WebSocketDisconnect:
            return
        finally:
            for task in tasks:
                task.cancel()

    async def _talk(self) -> None:
        consumer, guest = self._consumer, self._guest
        idle_s = self._house.options.stream_idle_s
        while not (self._gone or self._wrong or consumer.moves or guest.over):
            if self._failure is not None:
                raise self._failure
            if consumer.ended_by is not None:
                return
            portions = consumer.take()
            if not portions:
                await consumer.notifier.wait(idle_s)
                continue
            events = [
                event
                for one in portions
                for event in with_tries(portion_json(one), one.tries)
            ]
            text = b'{"events":[%b]}' % b",".join(events)
            try:
                async with asyncio.timeout(idle_s):
                    await self._socket.send_text(text.decode())
                consumer.peer.bytes_out += len(text)
            except TimeoutError:  # it does not read, so it would not read a farewell
                self._gone = True
            await asyncio.sleep(0)  # others have a turn

    async def _listen(self) -> None:
        """Take in what the client says, until it is gone or talks nonsense."""
        consumer = self._consumer
        try:
            while self._wrong is None:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    self._gone = True
                    break
                said = message.get("text") or message.get("bytes") or b""
                await self._settle(said)
        except NOT_JSON as error:
            self._wrong = str(error)
        except WebSocketDisconnect:
            self._gone = True
        except Exception as error:  # a mistake of ours: ``_talk`` closes with it
            self._failure = error
        finally:
            consumer.notifier.notify()

    async def _settle(self, said: str | bytes) -> None:
        message = _decode(said)
        if message.nack and not self._may_refuse:  # it would leave dead letters
            raise ValueError("this token may not refuse events")
        if message.nack:  # each is written
            await paced(self._account)
        if self._consumer.moves:
            return  # it was about what counts no more
        self._consumer.settle(message.ack)
        now_s = self._house.promises.now_s()
        with self._house.broker.accounts.acting(self._account):
            for nack in message.nack:
                refused(self._house, self._consumer, nack, now_s)

    async def _until_ended(self, notifier: Notifier) -> None:
        await self._guest.ended.wait()
        notifier.notify()

    async def _say_goodbye(self) -> None:
        consumer = self._consumer
        if self._wrong is not None:
            await self._close(BAD_MESSAGE, self._wrong)
        elif consumer.ended_by is not None:
            await self._close(ENDED, consumer.ended_by)
        elif consumer.moves:
            await self._close(MOVED, "the subscription was moved: connect again")
        elif self._guest.revoked is not None:
            await self._close(REVOKED, str(self._guest.revoked))
        else:
            await self._close(GOING_AWAY, "the server ends")

    async def _close(self, code: int, reason: str) -> None:
        text = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        await self._socket.close(code, text)
