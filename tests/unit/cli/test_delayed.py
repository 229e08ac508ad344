from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.delayed import DelayedAcks
from penstock.client import Client, Subscription, connect
from tests.local_server import local_server


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        client.publish("t", [b"%d" % number for number in range(10)])
        yield client


@pytest.fixture
def subscription(client: Client) -> Iterator[Subscription]:
    with client.subscribe("t", "me", start="earliest", window=4) as found:
        yield found


def position(client: Client) -> int:
    found: Any = client.ask("subscriptions", subscriber="me")
    at: int = found["subscriptions"][0]["position"]
    return at


def test_events_are_settled_some_time_after_they_came(
    client: Client, subscription: Subscription
) -> None:
    clock = Clock()
    acks = DelayedAcks(subscription, 0.05, clock)
    batch = acks.next_batch()
    assert batch is not None
    acks.settle(list(batch.offsets))

    clock.now_s = 0.04
    acks._settle_due()
    subscription.flush()
    early = position(client)
    clock.now_s = 0.05
    acks._settle_due()
    subscription.flush()

    assert (early, position(client)) == (0, len(batch.offsets))


def test_whoever_waits_for_more_is_woken_by_acks_that_are_due(
    client: Client, subscription: Subscription
) -> None:
    acks = DelayedAcks(subscription, 0.02)
    seen: list[int] = []

    while len(seen) < 10:  # more than a window: none come without acks
        batch = acks.next_batch()
        assert batch is not None
        acks.settle(list(batch.offsets))
        seen += batch.offsets
    acks.end()

    assert seen == list(range(10))
    assert position(client) == 10


def test_a_wait_has_an_end(subscription: Subscription) -> None:
    acks = DelayedAcks(subscription, 3600.0)
    batch = acks.next_batch(30.0)
    assert batch is not None
    acks.settle(list(batch.offsets))

    assert acks.next_batch(0.01) is None


def test_at_the_end_all_are_settled(client: Client, subscription: Subscription) -> None:
    acks = DelayedAcks(subscription, 3600.0)
    batch = acks.next_batch()
    assert batch is not None
    acks.settle(list(batch.offsets))

    acks.end()

    assert position(client) == len(batch.offsets)
