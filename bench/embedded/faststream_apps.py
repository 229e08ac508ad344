"""FastStream over NATS JetStream and over Redis Streams, on uvloop.

The settings are those that were fastest of the sensible ones: types are not applied to
the handler, nothing is logged, many events are fetched at once. An event is
acknowledged after its handler, as FastStream does by itself.
"""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from faststream import AckPolicy
from faststream.nats import JStream, NatsBroker, PullSub
from faststream.redis import RedisBroker, StreamSub
from nats.js.api import ConsumerConfig

from bench.embedded.player import Countdown, Player, Watch
from bench.rounds import Sample, payloads

LOOK_S = 0.002
FILL_EVENTS = 500


class Nats(Player):
    def play(self) -> Sample:
        return uvloop.run(self._play())

    async def _play(self) -> Sample:
        port = self.task.place.ports["nats"]
        name, subject = f"S{self.turn}", f"s.{self.turn}"
        countdown = Countdown(self.task.events)
        broker = NatsBroker(f"nats://127.0.0.1:{port}", apply_types=False, logger=None)
        batch = self.option("fetch", 500)
        pull: dict[str, Any] = {}
        if self.task.options.get("consumer", "pull") == "pull":
            pull["pull_sub"] = PullSub(batch_size=batch, timeout=1.0)
        if self.option("workers", 1) > 1:
            pull["max_workers"] = self.option("workers", 1)

        @broker.subscriber(
            subject,
            stream=JStream(name, declare=False),
            durable="handler",
            config=ConsumerConfig(max_ack_pending=2 * batch),
            ack_policy=AckPolicy.NACK_ON_ERROR,
            **pull,
        )
        async def handle(message: bytes) -> None:
            countdown.one()

        await broker.connect()
        try:
            connection: Any = await broker.connect()
            stream = connection.jetstream(timeout=60)
            await stream.add_stream(name=name, subjects=[subject])
            events = payloads(self.task.events, self.task.payload_bytes)
            for first in range(0, len(events), FILL_EVENTS):
                part = events[first : first + FILL_EVENTS]
                await asyncio.gather(*(stream.publish(subject, one) for one in part))
            watch = Watch(self.task)
            await broker.start()
            await countdown.done.wait()
            while True:
                info = await stream.consumer_info(name, "handler")
                if not info.num_ack_pending and not info.num_pending:
                    break
                await asyncio.sleep(LOOK_S)
            sample = watch.stop()
            await stream.delete_stream(name)
            return sample
        finally:
            await broker.stop()


class Redis(Player):
    def play(self) -> Sample:
        return uvloop.run(self._play())

    async def _play(self) -> Sample:
        port = self.task.place.ports["redis"]
        key = f"s{self.turn}"
        countdown = Countdown(self.task.events)
        quiet: dict[str, Any] = {"logger": None}  # as it says of itself elsewhere
        broker = RedisBroker(f"redis://127.0.0.1:{port}", apply_types=False, **quiet)
        more: dict[str, Any] = {}
        if self.option("workers", 1) > 1:
            more["max_workers"] = self.option("workers", 1)

        @broker.subscriber(
            stream=StreamSub(
                key,
                group="group",
                consumer="handler",
                max_records=self.option("fetch", 500),
                polling_interval=100,
                last_id=">",
            ),
            ack_policy=AckPolicy.NACK_ON_ERROR,
            **more,
        )
        async def handle(message: Any) -> None:
            countdown.one()

        client: Any = await broker.connect()
        try:
            await client.xgroup_create(key, "group", id="0", mkstream=True)
            # One as FastStream writes it, and the others like it.
            await broker.publish(b"." * self.task.payload_bytes, stream="model")
            [(_, fields)] = await client.xrange("model")
            await client.delete("model")
            for first in range(0, self.task.events, FILL_EVENTS):
                async with client.pipeline(transaction=False) as pipe:
                    for _ in range(min(FILL_EVENTS, self.task.events - first)):
                        pipe.xadd(key, fields)
                    await pipe.execute()
            watch = Watch(self.task)
            await broker.start()
            await countdown.done.wait()
            while True:
                left = await client.xpending(key, "group")
                if not left["pending"]:
                    break
                await asyncio.sleep(LOOK_S)
            sample = watch.stop()
            await client.delete(key)
            return sample
        finally:
            await broker.stop()
