"""Whatever happens, the event that goes next is the highest, then the oldest.

A broker beside a plain dictionary of what is unsettled: random publishes, settlements,
disconnects, restarts and seeks, with blocks, pages and windows small enough that each
of them is crossed. Everything is drawn from a seed.
"""

from __future__ import annotations

import errno
from functools import partial
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.broker.broker import Broker
from penstock.clock import ManualClock
from penstock.delivery import levels, pages
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.delivery.subscription import Subscription
from penstock.errors import WriteFailed
from penstock.log import Columns, Log, LogOptions
from penstock.model.policy import Order, Policy
from penstock.testing import CrashDisk

NOW_S = 1000.0
# Small enough that a few dozen events take checkpoints and are written out.
OPTIONS = LogOptions(
    journal_file_bytes=4096,
    checkpoint_bytes=4096,
    write_out_bytes=1024,
    tail_cache_bytes=512,
)
SEEDS = st.integers(min_value=0, max_value=1 << 32)
ORDERS = pytest.mark.parametrize("order", ["priority", "log"])


class Outlet:
    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        raise AssertionError("nobody speaks QoS 2 here")

    def moved(self, consumer: Consumer) -> None: ...

    def ended(self, consumer: Consumer, reason: str) -> None:
        raise AssertionError(reason)


class Simulation:
    """One topic, one subscription, one or two consumers, and what they must see."""

    def __init__(self, seed: int, order: Order) -> None:
        self.random = Random(seed)
        self.order = order
        self.policy = Policy(order=order, window=self.random.choice([1, 2, 5, 20]))
        self.where = f"seed {seed}, window {self.policy.window}"
        self.disk = CrashDisk()
        self.cache_bytes = self.random.choice([1, 4000, 1 << 20])
        self.levels = self.random.choice([[0, 5], [0, 0, 0, 1], [7], range(9)])
        self.plain = self.random.randint(0, 10)
        """So many publishes have no priority."""
        self.unsettled: dict[int, int] = {}
        """Offset -> priority."""
        self.flying: dict[int, Consumer] = {}
        self.start = self.end = 0
        self.broker = self._open()
        self.broker.create_topic("t")
        self.consumers: list[Consumer] = []
        self.attach()
        self.broker.log.commit()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choices(STEPS, WEIGHTS)[0](self)
        while self.unsettled:
            self.take()
            assert self.flying, f"{self.where}: {self.unsettled} is never sent"
            self.settle()
        self.take()  # forgets what retention took before it could be sent again
        assert self.subscription.drained, self.where
        assert self.subscription.lag() == 0, self.where

    @property
    def subscription(self) -> Subscription:
        return self.broker.subscription("ann", "t")

    # Steps

    def publish(self) -> None:
        count = self.random.choice([1, 1, 2, 3, 9])
        priorities = [self.random.choice(self.levels) for _ in range(count)]
        self.plain -= 1
        if self.plain > 0:
            priorities = [0] * count
        columns = Columns([b"x" * 40] * count, priorities=priorities)
        self.broker.publish("t", columns)
        self.broker.log.commit()
        for priority in priorities:
            self.unsettled[self.end] = priority
            self.end += 1

    def fail(self) -> None:
        """A full disk: these events were never there, the settlements are kept."""
        self.broker.publish("t", Columns([b"lost"] * 3, priorities=[9, 0, 5]))
        self.disk.fail(lambda what, path: OSError(errno.ENOSPC, "simulated"))
        with pytest.raises(WriteFailed):
            self.broker.log.commit()
        self.disk.fail(None)

    def take(self) -> None:
        consumer = self.random.choice(self.consumers)
        limit = self.random.choice([1, 3, 100])
        for portion in self.broker.take(consumer, NOW_S, limit):
            for index in range(portion.lo, portion.hi):
                offset = portion.page.batch.offset_of(index)
                wanted = self._next()
                assert offset == wanted, f"{self.where}: {offset}, not {wanted}"
                self.flying[offset] = consumer
        room = self.policy.window - len(self.flying)
        assert room >= 0, self.where
        waiting = len(self.unsettled) - len(self.flying)
        assert self.subscription.lag() >= len(self.unsettled), self.where
        if limit == 100 and len(self.consumers) == 1:
            assert not room or not waiting, f"{self.where}: {waiting} wait"

    def settle(self) -> None:
        if self.flying:
            offset = self.random.choice(list(self.flying))
            assert self.subscription.settle(offset), self.where
            del self.flying[offset], self.unsettled[offset]

    def attach(self) -> None:
        if len(self.consumers) < 2:
            one = self.broker.subscribe("ann", "t", self.policy, 0)
            self.consumers.append(self.broker.attach(one, Outlet()))

    def disconnect(self) -> None:
        gone = self.consumers.pop(self.random.randrange(len(self.consumers)))
        self.broker.detach(gone)
        self.flying = {o: c for o, c in self.flying.items() if c is not gone}
        self._drop_trimmed()
        self.attach()

    def restart(self) -> None:
        self.broker.log.commit()
        if self.random.random() < 0.5:
            self.broker.log.abandon()
        else:
            self.broker.log.close()
        self._begin_anew()

    def checkpoint(self) -> None:
        self.broker.log.checkpoint()

    def trim(self) -> None:
        """Retention takes what is in front; what is in flight can be settled."""
        self.start = self.random.randint(self.start, self.end)
        self.broker.log.trim("t", self.start)
        self._drop_trimmed()

    def seek(self) -> None:
        offset = self.random.randint(self.start, self.end)
        self.broker.seek("ann", "t", offset)
        read = [
            (one, priority)
            for batch in self.broker.log.read("t", offset)
            for one, priority in zip(batch.offsets(), batch.priorities(), strict=True)
        ]
        self.unsettled, self.flying = dict(read), {}

    def _drop_trimmed(self) -> None:
        self.unsettled = {
            offset: priority
            for offset, priority in self.unsettled.items()
            if offset >= self.start or offset in self.flying
        }

    def _next(self) -> int:
        waiting = [o for o in self.unsettled if o not in self.flying]
        assert waiting, f"{self.where}: nothing is to be sent"
        if self.order == "log":
            return min(waiting)
        return min(waiting, key=lambda offset: (-self.unsettled[offset], offset))

    def _begin_anew(self) -> None:
        self.broker = self._open()
        self.consumers, self.flying = [], {}
        self._drop_trimmed()
        self.attach()

    def _open(self) -> Broker:
        open_log = partial(
            Log.open, "/data", OPTIONS, files=self.disk, clock=ManualClock()
        )
        broker = Broker(open_log)
        broker.pages._max_bytes = self.cache_bytes
        return broker


WEIGHTED = {
    Simulation.publish: 8,
    Simulation.fail: 0.5,
    Simulation.take: 10,
    Simulation.settle: 10,
    Simulation.attach: 1,
    Simulation.disconnect: 1,
    Simulation.restart: 1,
    Simulation.checkpoint: 1,
    Simulation.trim: 0.3,
    Simulation.seek: 0.3,
}
STEPS, WEIGHTS = list(WEIGHTED), list(WEIGHTED.values())


@ORDERS
@given(seed=SEEDS)
@example(seed=77052740)  # a snapshot between the end of a consumer and a settlement
@example(seed=10318320)  # retention takes all priorities, and others come
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_goes_next_is_the_highest_then_the_oldest(
    monkeypatch: pytest.MonkeyPatch, order: Order, seed: int
) -> None:
    monkeypatch.setattr(levels, "BLOCK", 4)
    monkeypatch.setattr(levels, "_REMEMBERED", 3)
    monkeypatch.setattr(pages, "READ_BYTES", 400)

    Simulation(seed, order).run(120)
