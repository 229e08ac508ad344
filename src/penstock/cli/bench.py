"""``penstock bench``: what a server does on the machine and disk that it is on."""

from __future__ import annotations

import os
import secrets
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import msgspec

from penstock.cli import show
from penstock.cli.connect import (
    as_json,
    connected,
    json_option,
    server_options,
    show_json,
    whereabouts,
)
from penstock.cli.duration import Duration
from penstock.cli.output import say
from penstock.cli.refusal import Refusal
from penstock.client import Client, Subscription
from penstock.client.address import Local
from penstock.errors import PenstockError, UnknownTopic
from penstock.log import Layout, holder_pid

BATCHES = (1, 100, 1000)
# Events that are there to be read, at most: a backlog of some seconds.
MAX_BACKLOG = 1_000_000
WINDOW = 10_000
PATIENCE_S = 30.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_HEADINGS = ("WHAT", "EVENTS/S", "HALF WITHIN", "99 OF 100", "SERVER CPU")


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement; times of one call. CPU is not known of a server elsewhere."""

    what: str
    events: int
    seconds: float
    p50_ms: float | None
    p99_ms: float | None
    cpu_us_per_event: float | None

    @property
    def rate(self) -> float:
        return self.events / self.seconds


@click.command()
@click.option(
    "--for",
    "seconds",
    metavar="TIME",
    type=Duration(),
    default=3.0,
    show_default="3s",
    help="Measure each row for so long.",
)
@click.option(
    "--size",
    type=click.IntRange(0, 1 << 20),
    default=100,
    show_default=True,
    metavar="BYTES",
    help="Bytes of a payload.",
)
@click.option(
    "--durability",
    type=click.Choice(["sync", "os"]),
    default="sync",
    show_default=True,
    help="When a publish is confirmed: synced, or written.",
)
@server_options
@json_option("Print one JSON array.")
def bench(seconds: float, size: int, durability: str, **_: object) -> None:
    """Measure a running server: publishing, delivery, and how long they take.

    One client in Python publishes to a topic of its own, which is deleted in the end,
    and reads it again. Every publish is confirmed when it is durable. Rates of large
    batches are bounded by this client, and by the core it shares with the server; the
    CPU of the server is counted where it runs on this machine.

    \b
    Examples:
      penstock serve --background && penstock bench
      penstock bench --size 1000 --durability os --for 10s
      penstock bench --server broker.example:8410 --user anna
    """
    with connected() as client, _topic(client, durability) as topic:
        run = BenchRun(client, topic, bytes(size), seconds, _pid())
        _show(list(run.rows()))


def _show(rows: list[Measurement]) -> None:
    if as_json():
        show_json(rows)
        return
    for line in show.table([_HEADINGS, *map(_cells, rows)]):
        say(line)


@dataclass(frozen=True, slots=True)
class BenchRun:
    client: Client
    topic: str
    payload: bytes
    seconds: float
    pid: int | None
    """The process of the server, if it is here."""

    def rows(self) -> Iterator[Measurement]:
        for count in BATCHES:
            what = "one at a time" if count == 1 else f"{count} in a batch"
            publish = partial(self._publish, [self.payload] * count)
            yield self._timed(f"published, {what}", publish)
        yield self._there_and_back()
        yield self._read_again()

    def _publish(self, payloads: list[bytes]) -> int:
        self.client.publish(self.topic, payloads)
        return len(payloads)

    def _there_and_back(self) -> Measurement:
        with self.client.subscribe(self.topic, start="latest") as subscription:

            def once() -> int:
                self.client.publish(self.topic, self.payload)
                return _taken(subscription)

            return self._timed("published and delivered", once)

    def _read_again(self) -> Measurement:
        with self.client.subscribe(
            self.topic, start="earliest", window=WINDOW, auto_ack=True
        ) as subscription:
            take = partial(_taken, subscription)
            row = self._timed("delivered, from the backlog", take, self._backlog())
        # They come by thousands: how long one call took says nothing.
        return msgspec.structs.replace(row, p50_ms=None, p99_ms=None)

    def _backlog(self) -> int:
        shown: dict[str, int] = self.client.ask("topics.show", name=self.topic)  # type: ignore[assignment]  # the view of a topic
        return min(int(shown["end_offset"]), MAX_BACKLOG)

    def _timed(
        self, what: str, once: Callable[[], int], most: int | None = None
    ) -> Measurement:
        """Call it for the time, or until so many events are through."""
        took_s: list[float] = []
        events = 0
        cpu_s = self._cpu_s()
        begun_s = now_s = time.perf_counter()
        while now_s - begun_s < self.seconds and (most is None or events < most):
            events += once()
            before_s, now_s = now_s, time.perf_counter()
            took_s.append(now_s - before_s)
        used_s = self._cpu_s()
        return Measurement(
            what=what,
            events=events,
            seconds=now_s - begun_s,
            p50_ms=_percentile_ms(took_s, 50),
            p99_ms=_percentile_ms(took_s, 99),
            cpu_us_per_event=(
                None
                if cpu_s is None or used_s is None
                else (used_s - cpu_s) / max(events, 1) * 1e6
            ),
        )

    def _cpu_s(self) -> float | None:
        if self.pid is None:
            return None
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_bytes()
        except OSError:
            return None
        user, system = stat.rpartition(b") ")[2].split()[11:13]
        return (int(user) + int(system)) / TICKS_PER_S


def _taken(subscription: Subscription) -> int:
    """Take and settle what has come, and say how much; raises Refusal if none does."""
    events = subscription.next_batch(PATIENCE_S)
    if events is None:
        raise Refusal(f"nothing was delivered for {PATIENCE_S:g} s")
    subscription.settle(events.offsets)
    return len(events.offsets)


@contextmanager
def _topic(client: Client, durability: str) -> Iterator[str]:
    """A topic that no other client has, for as long as it takes."""
    name = f"penstock-bench-{secrets.token_hex(4)}"
    _check_deletes(client, name)
    client.ask("topics.create", name=name, durability=durability)
    try:
        yield name
    finally:
        _delete(client, name)


def _check_deletes(client: Client, name: str) -> None:
    """Raises ServerRefused, before there is a topic, if it would have to stay."""
    with suppress(UnknownTopic):
        client.ask("topics.delete", name=name)


def _delete(client: Client, name: str) -> None:
    try:
        client.ask("topics.delete", name=name)
    except PenstockError as error:
        hint = f"delete it with 'penstock topics delete {name}'"
        raise Refusal(f"topic {name} is left behind: {error}", hint) from error


def _pid() -> int | None:
    where, *_ = whereabouts()
    return (
        holder_pid(Layout(where.directory).lock) if isinstance(where, Local) else None
    )


def _percentile_ms(took_s: list[float], percent: int) -> float:
    if len(took_s) < 2:
        return sum(took_s) * 1000
    return statistics.quantiles(took_s, n=100)[percent - 1] * 1000


def _cells(row: Measurement) -> tuple[str, ...]:
    cpu = row.cpu_us_per_event
    return (
        row.what,
        f"{row.rate:,.0f}".replace(",", " ").rjust(9),
        _shown_ms(row.p50_ms),
        _shown_ms(row.p99_ms),
        "-" if cpu is None else f"{cpu:.1f} µs an event",
    )


def _shown_ms(ms: float | None) -> str:
    return "-" if ms is None else f"{ms:.2f} ms"
