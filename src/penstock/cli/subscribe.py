"""``penstock subscribe``: events of a topic on standard output, as they come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress

import click
from click.core import ParameterSource

from penstock.cli.connect import as_json, ask, connected, json_option, server_options
from penstock.cli.delayed import DelayedAcks
from penstock.cli.duration import Duration
from penstock.cli.interrupts import unbroken
from penstock.cli.jsonl import line_of
from penstock.cli.output import StandardOutput, say
from penstock.cli.refusal import Refusal
from penstock.cli.start import start_of
from penstock.client import Client, Subscription
from penstock.client.deliveries import deliveries
from penstock.desk.views.subscriptions import SubscriptionPage
from penstock.model.policy import MAX_WINDOW
from penstock.wire.native import Events

LINE_S = 1.0


class RateCounter:
    """Counts events; says how many there were, and how fast they came."""

    def __init__(
        self,
        say: Callable[[str], None] = say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = 0
        self._say = say
        self._clock = clock
        self._began_s = self._reported_s = clock()
        self._reported = 0

    def add(self, events: int) -> None:
        """Take note of events; a line if the last one is a while ago.

        While none come there is nothing to say.
        """
        self.total += events
        now_s = self._clock()
        if now_s - self._reported_s >= LINE_S:
            if self.total > self._reported:
                rate = (self.total - self._reported) / (now_s - self._reported_s)
                self._say(f"{self.total} events, {rate:.0f}/s")
            self._reported_s, self._reported = now_s, self.total

    def end(self) -> None:
        """The last line: of the whole time."""
        elapsed_s = self._clock() - self._began_s
        rate = self.total / elapsed_s if elapsed_s > 0 else 0.0
        self._say(f"{self.total} events in {elapsed_s:.1f} s, {rate:.0f}/s")


def show_rates(
    acks: DelayedAcks, count: int | None, *, ack: bool, rates: RateCounter
) -> None:
    """Take events, ``count`` of them at most, and acknowledge them."""
    try:
        while count is None or rates.total < count:
            batch = acks.next_batch(LINE_S)
            offsets = [] if batch is None else list(batch.offsets)
            if count is not None:
                offsets = offsets[: count - rates.total]
            if ack and offsets:
                acks.settle(offsets)
            rates.add(len(offsets))
    finally:
        acks.end()
        rates.end()


WINDOW = 1000


@click.command()
@click.argument("topic", metavar="TOPIC")
@click.option(
    "--as",
    "subscriber",
    metavar="NAME",
    help="Go on where NAME was. Default: a temporary subscriber.",
)
@click.option(
    "--from",
    "start",
    default="latest",
    show_default=True,
    metavar="WHERE",
    help="earliest, latest, an offset, or a time, where NAME is new.",
)
@click.option(
    "--ack/--no-ack",
    default=True,
    help="Settle events once they are printed, or leave them unsettled.",
)
@click.option(
    "--ack-delay",
    "ack_delay_s",
    type=Duration(),
    metavar="TIME",
    help="Settle each event so long after it came, for example 50ms.",
)
@click.option("--count", type=click.IntRange(min=1), help="End after this many events.")
@click.option(
    "--window",
    type=click.IntRange(1, MAX_WINDOW),
    default=WINDOW,
    show_default=True,
    help="Events on their way that are not settled, at most.",
)
@click.option(
    "--order",
    type=click.Choice(["log", "priority", "key"]),
    default="log",
    show_default=True,
    help="As published, the highest priority first, or as published and the events of "
    "one key to one of several consumers at a time.",
)
@click.option(
    "--rates", is_flag=True, help="Print how fast events come, instead of the events."
)
@server_options
@json_option('Print one JSON object per event, as "penstock log export" does.')
def subscribe(
    topic: str,
    subscriber: str | None,
    start: str,
    ack_delay_s: float | None,
    count: int | None,
    window: int,
    order: str,
    *,
    ack: bool,
    rates: bool,
    **_: object,
) -> None:
    """Print the events of a topic, the payload of each on a line of its own.

    Waits for more until --count is reached or Ctrl-C is pressed. An event is settled
    when it has been printed; with --no-ack none is, so they all come again the next
    time, and it ends after --window of them.

    \b
    Examples:
      penstock subscribe orders --from earliest --count 10
      penstock subscribe orders --as billing --json | jq .payload
      penstock subscribe orders --as billing --no-ack
      penstock subscribe orders --as stress --window 10000 --rates
      penstock subscribe orders --as stress --rates --ack-delay 50ms
    """
    if not ack and ack_delay_s is not None:
        raise Refusal("--ack-delay and --no-ack exclude each other")
    if not ack:
        count = min(count or window, window)
    if count is not None:
        window = min(window, count)
    place = start_of(start)
    with suppress(KeyboardInterrupt), connected() as client:
        known = _known(client, subscriber, topic) if _from_is_given() else None
        with client.subscribe(
            topic, subscriber, start=place, order=order, window=window
        ) as subscription:
            _note_where(subscription, place, known)
            if rates:
                acks = DelayedAcks(subscription, ack_delay_s or 0.0)
                show_rates(acks, count, ack=ack, rates=RateCounter())
            elif ack_delay_s is not None:
                _print_slowly(
                    subscription, DelayedAcks(subscription, ack_delay_s), count
                )
            else:
                _print(subscription, count, ack=ack)


def _from_is_given() -> bool:
    source = click.get_current_context().get_parameter_source("start")
    return source is ParameterSource.COMMANDLINE


def _known(client: Client, subscriber: str | None, topic: str) -> str | None:
    """The subscriber, if its subscription exists already."""
    if subscriber is None:
        return None
    wanted = {"subscriber": subscriber, "topic": topic, "limit": 1}
    page = ask(client, SubscriptionPage, "subscriptions", **wanted)
    return subscriber if page.subscriptions else None


def _note_where(
    subscription: Subscription, place: str | int, known: str | None
) -> None:
    """Say where it begins, if that is not where it was asked to."""
    position = subscription.position
    if known is not None:
        goes_on = f"subscriber {known} goes on at offset {position}"
        rule = "--from counts for a new subscription only"
        say(f"note: {goes_on}; {rule}", err=True)
    elif isinstance(place, int) and place > position:
        end = f"{subscription.topic} ends at offset {position}"
        say(f"note: {end}; it begins there, not at {place}", err=True)


def _print(subscription: Subscription, count: int | None, *, ack: bool) -> None:
    left = count
    while left is None or left > 0:
        batch = subscription.next_batch()
        assert batch is not None, "without a limit it waits for one"
        offsets = batch.offsets[:left]
        # What is printed is settled: Ctrl-C comes before both, or behind them.
        with unbroken():
            StandardOutput().write(_text(subscription.topic, batch, left))
            sys.stdout.flush()
            if ack:
                subscription.settle(offsets)
                subscription.flush()
        if left is not None:
            left -= len(offsets)


def _print_slowly(
    subscription: Subscription, acks: DelayedAcks, count: int | None
) -> None:
    """The same, with acks that come later; at the end they all come at once."""
    left = count
    try:
        while left is None or left > 0:
            batch = acks.next_batch()
            assert batch is not None, "without a limit it waits for one"
            offsets = list(batch.offsets[:left])
            with unbroken():
                StandardOutput().write(_text(subscription.topic, batch, left))
                sys.stdout.flush()
                acks.settle(offsets)
            if left is not None:
                left -= len(offsets)
    finally:
        acks.end()


def _text(topic: str, batch: Events, limit: int | None) -> bytes:
    if not as_json():
        return b"".join(payload + b"\n" for payload in batch.payloads[:limit])
    found = list(deliveries(topic, batch))[:limit]
    return b"".join(line_of(one.event) for one in found)
