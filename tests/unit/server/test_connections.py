from __future__ import annotations

from pathlib import Path

from penstock.access.peer import Peer
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.gateway.line import LineGateway
from penstock.gateway.options import LineOptions
from penstock.log import Columns
from penstock.model.policy import Policy
from penstock.server.process_info import connection_counts, connection_rows
from tests.unit.server.scene import house, run


class Stream:
    """A member of the engine that consumes."""

    def __init__(self) -> None:
        self.peer = Peer("http", 5.0, "127.0.0.1", "watcher")

    def flush(self, now_s: float) -> None: ...
    def released(self, consumer: Consumer, owed: list[Owed]) -> None: ...
    def ended(self, consumer: Consumer, reason: str) -> None: ...
    def moved(self, consumer: Consumer) -> None: ...


def test_a_connection_tells_what_it_consumes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(lambda: LineGateway(one.broker, LineOptions(window=2)))
            client = await one.connect()
            await client.lines(1)
            one.broker.create_topic("t")
            await client.send(b"as billing\nsub t\n")
            await client.lines(2)

            (row,) = connection_rows(one.engine)

            assert (row.gateway, row.peer, row.name) == ("test", "127.0.0.1", "billing")
            assert row.bytes_in == len(b"as billing\nsub t\n")
            assert row.bytes_out > 0
            (share,) = row.subscriptions
            assert (share.subscriber, share.topic, share.window) == ("billing", "t", 2)
            assert connection_counts(one.engine) == {"test": 1}

    run(scene())


def test_whoever_has_gone_is_not_there(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(lambda: LineGateway(one.broker, LineOptions()))
            client = await one.connect()
            await client.lines(1)
            client.close()

            await one.until(lambda: not one.engine.connections)

            assert connection_rows(one.engine) == []
            assert connection_counts(one.engine) == {}

    run(scene())


def test_members_that_have_peers_are_there_too(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            one.broker.publish("t", Columns([b"a", b"b"], 0))
            one.broker.log.commit()
            stream = Stream()
            one.engine.members[stream] = stream
            one.engine.members["silent"] = stream  # one that has none
            policy = Policy(window=5)
            shared = one.broker.subscribe("s", "t", policy, "earliest")
            consumers = [one.broker.attach(shared, who) for who in (stream, Stream())]
            one.broker.take(consumers[0], one.clock.now_s(), 10)
            one.clock.advance(1.0)
            one.broker.tick(one.clock.now_s())

            (row,) = connection_rows(one.engine)

            assert (row.gateway, row.name, row.since_ms) == ("http", "watcher", 5000)
            assert row.subscriptions[0].in_flight == 2
            assert row.subscriptions[0].lag == 2
            assert row.rate == 1.0  # two share what the subscription takes

    run(scene())
