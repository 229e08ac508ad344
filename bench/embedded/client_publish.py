"""Publishing with the peers' own asyncio clients: one event, one answer."""

from __future__ import annotations

import nats
import redis.asyncio
import uvloop

from bench.embedded.player import Player, Watch, publish_from_many
from bench.rounds import Sample, payloads


class Redis(Player):
    """XADD; a connection for each publisher, as redis-py has no other way."""

    def play(self) -> Sample:
        return uvloop.run(self._play())

    async def _play(self) -> Sample:
        events = payloads(self.task.events, self.task.payload_bytes)
        port = self.task.place.ports["redis"]
        client = redis.asyncio.Redis(
            port=port, max_connections=2 * self.task.publishers
        )
        key = f"s{self.turn}"
        try:
            await publish_from_many(
                lambda payload: client.xadd("warm", {"m": payload}),
                events[: self.task.publishers],
                self.task.publishers,
            )
            watch = Watch(self.task)
            await publish_from_many(
                lambda payload: client.xadd(key, {"m": payload}),
                events,
                self.task.publishers,
            )
            return watch.stop()
        finally:
            await client.aclose()


class Nats(Player):
    """JetStream's publish, which awaits the stream's answer; one connection."""

    def play(self) -> Sample:
        return uvloop.run(self._play())

    async def _play(self) -> Sample:
        events = payloads(self.task.events, self.task.payload_bytes)
        port = self.task.place.ports["nats"]
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        try:
            stream = client.jetstream(timeout=60)
            subject = f"s.{self.turn}"
            await stream.add_stream(name=f"S{self.turn}", subjects=[subject])
            watch = Watch(self.task)
            await publish_from_many(
                lambda payload: stream.publish(subject, payload),
                events,
                self.task.publishers,
            )
            return watch.stop()
        finally:
            await client.close()
