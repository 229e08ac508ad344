"""Faults that the simulation of a broker has found, each in a few steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.clock import ManualClock
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.log import Columns, Log, LogOptions
from penstock.model.policy import Policy

MANY = 100


class Quiet:
    """An outlet that nobody reads."""

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        """Nothing."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        """Nothing."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(tmp_path: Path, clock: ManualClock) -> Iterator[Broker]:
    open_log = partial(Log.open, tmp_path, LogOptions(), clock=clock)
    with Broker(open_log) as broker:
        broker.create_topic("t")
        yield broker


def publish(broker: Broker, *payloads: bytes) -> None:
    broker.publish("t", Columns(payloads, 0))
    broker.log.commit()


def test_a_delivery_times_out_though_its_timeout_was_taken_away(
    broker: Broker, clock: ManualClock
) -> None:
    one = broker.subscribe("s", "t", Policy(ack_timeout_s=5.0))
    consumer = broker.attach(one, Quiet())
    publish(broker, b"1")
    assert broker.take(consumer, clock.now_s(), MANY)

    broker.subscribe("s", "t", Policy())
    clock.advance(6.0)
    broker.tick(clock.now_s())

    assert [portion.tries for portion in broker.take(consumer, clock.now_s(), MANY)]


def test_an_event_that_comes_again_without_acks_is_settled_by_being_sent(
    broker: Broker, clock: ManualClock
) -> None:
    one = broker.subscribe("s", "t", Policy())
    consumer = broker.attach(one, Quiet())
    publish(broker, b"1")
    broker.take(consumer, clock.now_s(), MANY)
    broker.detach(consumer)

    broker.subscribe("s", "t", Policy(qos=0))
    broker.take(broker.attach(one, Quiet()), clock.now_s(), MANY)

    assert (one.lag(), one.flying) == (0, 0)


def test_a_consumer_that_sends_no_acks_is_woken_until_it_has_all(
    broker: Broker, clock: ManualClock
) -> None:
    one = broker.subscribe("s", "t", Policy(qos=0, window=2))
    outlet = Quiet()
    consumer = broker.attach(one, outlet)
    publish(broker, b"1", b"2", b"3", b"4", b"5")

    while outlet in broker.awake:
        del broker.awake[outlet]
        broker.take(consumer, clock.now_s(), MANY)

    assert one.lag() == 0
