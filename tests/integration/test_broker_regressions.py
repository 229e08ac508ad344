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
from penstock.errors import WriteFailed
from penstock.gateway.line import LineGateway
from penstock.gateway.options import LineOptions
from penstock.log import Columns, Log, LogOptions
from penstock.model.failure import refused
from penstock.model.policy import Policy
from penstock.testing import CrashDisk

MANY = 100


class Quiet:
    """An outlet that nobody reads."""

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        """Nothing."""

    def moved(self, consumer: Consumer) -> None: ...

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

    assert (one.lag(), one.owed.in_flight) == (0, 0)


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


def test_a_lost_dead_letter_brings_nothing_back_to_a_subscription_that_was_moved(
    clock: ManualClock,
) -> None:
    disk = CrashDisk()
    broker = Broker(partial(Log.open, "/data", files=disk, clock=clock))
    broker.create_topic("t")
    one = broker.subscribe("s", "t", Policy(tries=1))
    consumer = broker.attach(one, Quiet())
    publish(broker, b"1")
    broker.take(consumer, clock.now_s(), MANY)
    broker.refuse(consumer, 0, refused("wrong"), clock.now_s())

    broker.seek("s", "t", 0)
    disk.fail(lambda what, _: OSError("simulated") if what == "write" else None)
    with pytest.raises(WriteFailed):
        broker.log.commit()

    assert one.lag() == 1
    assert [portion.tries for portion in broker.take(consumer, 0.0, MANY)] == [1]


def test_an_ack_finds_the_event_in_flight_behind_one_that_a_seek_took_away(
    broker: Broker, clock: ManualClock
) -> None:
    line = LineGateway(broker, LineOptions())
    line.receive(b"as s\nsub t\n" + b'pub t {"id": 7, "msg": 1}\n' * 2, 0.0)
    broker.log.commit()
    assert b'"msg":1' in b"".join(line.output(0.0, 1 << 20))

    broker.seek("s", "t", 1)
    line.output(0.0, 1 << 20)
    line.receive(b"ack t 7\n", 0.0)
    broker.log.commit()

    answer = b"".join(line.output(0.0, 1 << 20))
    assert answer == b"acknowledged from current session\r\nno available message\r\n"
