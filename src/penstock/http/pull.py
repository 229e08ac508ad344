"""Consuming by long polls: a request brings acks, the answer brings events.

Clients that pull under a name share one consumer, which stays attached for a while
after each pull; then what was not acknowledged goes back. An answer promises that the
acks of its request are on disk. Events that an answer could not bring to its client
come again when their time to be acknowledged has passed.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, cast

import msgspec
from msgspec import Meta, Raw
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from penstock.delivery.owed import Portion
from penstock.http.answers import json_answer
from penstock.http.call import Call
from penstock.http.event_json import EventJson, portion_json, with_tries
from penstock.http.following import WINDOW, FollowTerms, start_in
from penstock.http.house import House
from penstock.http.opened import Guest
from penstock.http.options import MAX_WAIT_S
from penstock.http.pacing import paced
from penstock.http.pull_consumers import PullConsumer
from penstock.http.reading import json_body
from penstock.http.stream_consumer import StreamConsumer, offsets_of
from penstock.http.watching import PeerWatch, watched
from penstock.model.failure import REFUSED, Failure
from penstock.model.policy import MAX_WINDOW, Policy, settings_in

MAX_EVENTS = 10_000
# Of a body: a window of acks with the longest offsets, or nacks with their errors.
MAX_BYTES = 4 << 20
# Events that no client acknowledges go to others after this.
ACK_TIMEOUT_S = 30.0

_DEFAULT = Policy(window=WINDOW, ack_timeout_s=ACK_TIMEOUT_S)

PullOffset = Annotated[int, Meta(ge=0)]


class Nack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event that could not be handled; ``final``: it is not to be tried again."""

    offset: PullOffset
    error: str = ""
    kind: str = ""
    final: bool = False


# As many as can be in flight.
AckOffsets = Annotated[list[PullOffset], Meta(max_length=MAX_WINDOW)]
Nacks = Annotated[list[Nack], Meta(max_length=MAX_EVENTS)]


class Pull(FollowTerms, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was done with earlier events, and how many more are wanted.

    ``wait_s``: how long to wait if there are none. ``start`` counts for a subscription
    that is new: ``latest``, ``earliest``, an offset, or ``time:`` with milliseconds.
    The terms of following change what the subscription had. The order ``key`` gives the
    next event of a key only when the one before it is settled.
    """

    max: Annotated[int, Meta(ge=0, le=MAX_EVENTS)] = 100
    wait_s: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] = 0.0
    ack: AckOffsets = []
    nack: Nacks = []
    start: str | PullOffset = "latest"

    @property
    def terms(self) -> FollowTerms:
        return FollowTerms(**settings_in(self, FollowTerms.__struct_fields__))


class PulledEvent(EventJson, kw_only=True):
    """An event, and the try that this is: 1 is the first."""

    tries: int


class Pulled(msgspec.Struct, kw_only=True):
    """Events to be handled; ``settled`` acks and nacks were about events in flight.

    ``ended``: why there is no such subscription any more; a pull begins it anew.
    """

    events: list[PulledEvent]
    settled: int
    ended: str | None


async def pull(call: Call) -> Response:
    """Settle, and get more; raises what subscribing raises."""
    house, topic = call.house, call.path["topic"]
    subscriber = call.path["subscriber"]
    call.need_as(topic, subscriber)
    wanted = await json_body(call, Pull, "pull", MAX_BYTES)
    with house.opened.one(call.still, call.account) as guest:
        puller = await house.pullers.taken(
            *(house, subscriber, topic, wanted.terms, _DEFAULT, _start(wanted)),
            account=call.account,
        )
        with puller.pulling():
            return await _pull(call, guest, puller, wanted)


async def _pull(
    call: Call, guest: Guest, puller: PullConsumer, wanted: Pull
) -> Response:
    house, consumer = call.house, puller.consumer
    if wanted.nack:  # each is written
        await paced(call.account, house.options.body_s)
        call.check_still()
    with house.broker.accounts.acting(call.account):
        settled = _settle(house, consumer, wanted)
    group = house.broker.promised
    async with watched(call.request.receive, guest, consumer.notifier) as watch:
        portions = await _taken(consumer, wanted, watch)
        try:
            if wanted.ack or wanted.nack:  # also those that an earlier request brought
                await house.promises.kept_at_last(group)
            await asyncio.sleep(0)  # we hear whether the client is still there
            if watch.gone:
                raise ClientDisconnect
        except BaseException:
            # The client does not get them: they are for the next pull.
            consumer.put_back(offsets_of(portions))
            raise
    events = [Raw(event) for one in portions for event in _events(one)]
    return json_answer(
        Pulled(
            # JSON already, which the encoder takes as it is.
            events=cast("list[PulledEvent]", events),
            settled=settled,
            ended=consumer.ended_by,
        )
    )


def _settle(house: House, consumer: StreamConsumer, wanted: Pull) -> int:
    """Carry out acks and nacks; how many were about events in flight."""
    settled = consumer.settle(wanted.ack)
    now_s = house.promises.now_s()
    for one in wanted.nack:
        settled += refused(house, consumer, one, now_s)
    return settled


def refused(house: House, consumer: StreamConsumer, nack: Nack, now_s: float) -> bool:
    """A client could not handle an event; False if it has no such event."""
    failure = Failure(0, 0, nack.kind or REFUSED, nack.error)
    done = consumer.ended_by is None and house.broker.refuse(
        consumer.attached, nack.offset, failure, now_s, final=nack.final
    )
    house.promises.kick()
    return done


async def _taken(
    consumer: StreamConsumer, wanted: Pull, watch: PeerWatch
) -> list[Portion]:
    """Up to as many events as are wanted, as soon as there is one."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + wanted.wait_s
    while True:
        portions = consumer.take(wanted.max) if wanted.max else []
        left_s = until_s - loop.time()
        if portions or watch.over or consumer.ended_by is not None or left_s <= 0:
            return portions
        await consumer.notifier.wait(left_s)


def _events(portion: Portion) -> list[bytes]:
    return with_tries(portion_json(portion), portion.tries)


def _start(wanted: Pull) -> str | int:
    return wanted.start if isinstance(wanted.start, int) else start_in(wanted.start)
