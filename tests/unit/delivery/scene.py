"""A broker on a disk in memory: published to, taken from, failed and started again."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from functools import partial

import pytest

from penstock.broker.broker import Broker
from penstock.broker.options import BrokerOptions
from penstock.clock import ManualClock
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed, Portion
from penstock.delivery.subscription import Subscription
from penstock.errors import WriteFailed
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.model.policy import Policy
from penstock.testing import CrashDisk

RESTARTS = pytest.mark.parametrize("restart", ["close", "kill"])
# Write-outs fall due after a few events.
SMALL = LogOptions(write_out_bytes=1024)
LOG = Policy(order="log")
PRIORITY = Policy(order="priority")


class Outlet:
    """Whoever sends deliveries on; here it only remembers what it was told."""

    def __init__(self) -> None:
        self.pubrels: list[int] = []
        self.endings: list[str] = []
        self.moves = 0

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        self.pubrels += [one.offset for one in owed]

    def moved(self, consumer: Consumer) -> None:
        self.moves += 1

    def ended(self, consumer: Consumer, reason: str) -> None:
        self.endings.append(reason)


class Scene:
    """A broker with one topic ``t``; what is published is committed at once."""

    def __init__(
        self, options: BrokerOptions | None = None, log: LogOptions | None = None
    ) -> None:
        self.disk = CrashDisk()
        self.clock = ManualClock(1000.0)
        self._options = options
        self._log_options = log
        self.broker = self._open()
        self.broker.create_topic("t")
        self.commit()

    @property
    def log(self) -> Log:
        log = self.broker.log
        assert isinstance(log, Log)
        return log

    @property
    def now_s(self) -> float:
        return self.clock.now_s()

    def publish(self, *priorities: int, topic: str = "t") -> None:
        """One frame of events with these priorities."""
        payloads = [b"%d" % priority for priority in priorities]
        levels = priorities if any(priorities) else None
        columns = Columns(payloads, self.log.now_ms(), priorities=levels)
        self.broker.publish(topic, columns)
        self.commit()

    def keyed(self, *keys: bytes) -> None:
        """A sealed segment of events with these keys, the key their payload."""
        self.broker.publish("t", Columns(keys, keys=keys))
        self.commit()
        self.log.roll("t")

    def commit(self) -> None:
        self.log.commit()

    def fail_commit(self) -> None:
        """Have the open group fail."""
        self.disk.fail(lambda what, path: OSError(errno.ENOSPC, "simulated"))
        with pytest.raises(WriteFailed):
            self.log.commit()
        self.disk.fail(None)

    def refuse_appends(self) -> None:
        """Have segments fail until the log takes no more events; needs SMALL."""
        self.disk.fail(
            lambda what, path: (
                OSError(errno.ENOSPC, "simulated") if ".seg" in path else None
            )
        )
        self.broker.publish("t", Columns([bytes(4 * SMALL.write_out_bytes)]))
        self.commit()

    def restart(self, how: str = "kill") -> None:
        """Close the broker, or kill it, and open it again."""
        if how == "kill":
            self.log.abandon()
        else:
            self.log.close()
        self.broker = self._open()

    def subscribe(
        self,
        policy: Policy = LOG,
        start: str | int = "earliest",
        *,
        name: str = "ann",
        topic: str = "t",
        temporary: bool = False,
    ) -> Consumer:
        """A consumer of a new or known subscription."""
        one = self.broker.subscribe(name, topic, policy, start, temporary=temporary)
        return self.broker.attach(one, Outlet())

    def subscription(self, name: str = "ann", topic: str = "t") -> Subscription:
        return self.broker.subscription(name, topic)

    def take(self, consumer: Consumer, limit: int = 1000) -> list[int]:
        return offsets(self.broker.take(consumer, self.now_s, limit))

    def drain(self, consumer: Consumer) -> list[int]:
        """Take and settle until there is nothing more."""
        found: list[int] = []
        while taken := self.take(consumer):
            found += taken
            for offset in taken:
                consumer.subscription.settle(offset)
        return found

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.broker.tick(self.now_s)

    def letters(self) -> list[bytes]:
        """The dead letters so far."""
        self.commit()
        if not self.log.has_topic("$dead-letters"):
            return []
        batches = self.log.read("$dead-letters", 0)
        return [payload for batch in batches for payload in batch.payloads()]

    def _open(self) -> Broker:
        open_log = partial(
            Log.open,
            "/data",
            self._log_options,
            files=self.disk,
            clock=self.clock,
            entropy=bytes,
        )
        return Broker(open_log, self._options, TopicOptions())


def outlet(consumer: Consumer) -> Outlet:
    assert isinstance(consumer.outlet, Outlet)
    return consumer.outlet


def offsets(portions: Iterable[Portion]) -> list[int]:
    """The events of some portions, in the order they go."""
    return [
        portion.page.batch.offset_of(index)
        for portion in portions
        for index in range(portion.lo, portion.hi)
    ]
